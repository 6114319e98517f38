"""A worker for the fault sweep: two agents talk in a log that a store keeps, and one of them is folded.

    tracker_worker.py LOG STORE

Each line of output is the id of a message that the log has acknowledged.
"""

import sys

import harken
from harken.errors import HarkenError


def say(*words):
    print(*words, flush=True)


def talk(session):
    def entry(agent, role, content, **more):
        say(session.log_transcript_entry(agent, {"role": role, "content": content, **more}))

    session.log_agent_created("a1", role="root")
    entry("a1", "user", "make Jill")
    calls = [{"id": "c1", "function": {"name": "task", "arguments": "{}"}}]
    made = session.log_transcript_entry("a1", {"role": "assistant", "tool_calls": calls})
    session.log_agent_created("a2", cause=made, name="Jill")
    entry("a2", "user", "hello")
    entry("a2", "assistant", "I am Jill")
    entry("a1", "tool", "done", tool_call_id="c1")
    entry("a1", "assistant", "She is here")
    entry("a1", "user", "and now?")
    entry("a1", "assistant", "now we wait")
    session.log_transcript_edit("a1", "compact", 4, start=1, content="Jill was made")
    entry("a1", "user", "still there?")
    entry("a1", "assistant", "yes")


def main(log, store):
    try:
        with harken.open(store) as repo, repo.session(log, session_id="s") as session:
            talk(session)
    except (HarkenError, OSError) as error:
        say("error", type(error).__name__, error)
        sys.exit(7)
    say("done")


main(*sys.argv[1:])
