"""Records a small session with a recorder, stops in the middle, goes on with it, and says each act once it was
acknowledged: what it is, and its id."""

from __future__ import annotations

import os
import sys
import uuid

from harken.capture import MultiAgentRecorder


def say(what: str, name: str) -> None:
    os.write(1, f"{what} {name}\n".encode())


def first(recorder: MultiAgentRecorder) -> str:
    say("begun", "recording")
    say("call", recorder.call("Read", {"file_path": "clock.py"}, result="tick"))
    say("open", recorder.begin_call("Bash", {"command": "make"}, call_id="slow"))
    sub = recorder.start_sub("developer-01", "Mend the clock")
    say("sub", sub)
    say("message", recorder.message("lead", "developer-01", "feedback", {"content": "Hurry"}))
    say("call", recorder.sub_call(sub, "Edit", {"file_path": "clock.py"}))
    return sub


def second(recorder: MultiAgentRecorder, sub: str) -> None:
    recorder.end_call("slow", result="made")
    say("ended", "slow")
    recorder.finish_sub(sub, "It is mended")
    say("finished", sub)
    say("message", recorder.message("developer-01", "lead", "feedback", {"content": "Done"}))
    recorder.close("success")
    say("closed", "success")


def main(path: str) -> None:
    uuid.uuid4 = lambda: uuid.UUID(int=7)  # so that the name of the file is known that becomes the document
    about = {"task_title": "Clock", "user_prompt": "Mend the clock", "orchestrator": "lead"}
    recorder = MultiAgentRecorder(path, participants=["developer-01"], **about)  # type: ignore[arg-type]
    sub = first(recorder)
    recorder.close("in_progress")
    second(MultiAgentRecorder.resume(path), sub)


main(*sys.argv[1:])
