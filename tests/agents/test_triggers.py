"""Waking an agent from outside."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from harken.agents import FileWatcher, wake
from harken.agents.triggers import differences, look
from support.stage import contents, open_stage

ECHO = {"root": {"otherwise": "I have seen it."}}


def test_anything_can_wake_an_agent(tmp_path: Path) -> None:
    root, session = open_stage(tmp_path / "log", ECHO)
    with session:
        assert "I have seen it." == asyncio.run(wake(root, "The bell rang."))
        assert ("The bell rang.", "injected", "trigger") == (
            root.transcript[0]["content"],
            root.transcript[0]["source"],
            root.transcript[0]["origin"],
        )


def test_an_agent_in_the_middle_of_a_turn_may_answer_in_that_turn(tmp_path: Path) -> None:
    async def two() -> list[str]:
        first = asyncio.create_task(wake(root, "one"))
        await napping.wait()
        second = asyncio.create_task(wake(root, "two"))
        return [await first, await second]

    async def nap() -> str:
        """Long enough to be told something meanwhile."""
        napping.set()
        while "two" not in contents(root, "user"):
            await asyncio.sleep(0)
        return "rested"

    napping = asyncio.Event()

    parts = {"root": [{"call": {"tool": "nap", "arguments": {}}}, "Both heard.", "never"]}
    root, session = open_stage(tmp_path / "log", parts, tools=[nap])
    with session:
        assert ["Both heard.", "Both heard."] == asyncio.run(two())
        assert ["one", "two"] == contents(root, "user")


def test_differences_are_told_one_by_one() -> None:
    before, after = {"a/x": (1, 1, 1), "a/y": (1, 1, 2)}, {"a/x": (2, 1, 1), "a/z": (1, 1, 3)}

    assert ["File created: z", "File changed: x", "File deleted: y"] == differences(before, after)


def test_a_folder_is_watched_with_the_files_in_it(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a").write_text("1")
    os.symlink("nowhere", tmp_path / "dangling")

    assert [str(tmp_path / "a")] == list(look([tmp_path, tmp_path / "missing"]))


def test_a_watcher_wakes_for_what_changed_since_it_last_looked(tmp_path: Path) -> None:
    async def watch() -> list[list[str]]:
        watcher = FileWatcher(root, [tmp_path / "data.json"])
        seen = [await watcher.check()]
        (tmp_path / "data.json").write_text("[]")
        seen.append(await watcher.check())
        (tmp_path / "data.json").write_text("[1]")
        seen.append(await watcher.check())
        (tmp_path / "data.json").unlink()
        seen.append(await watcher.check())
        return seen

    root, session = open_stage(tmp_path / "log", ECHO)
    with session:
        replies = asyncio.run(watch())

        assert [0, 1, 1, 1] == [len(some) for some in replies]
        assert ["File created: data.json", "File changed: data.json", "File deleted: data.json"] == contents(
            root, "user"
        )


def test_replies_come_as_files_change(tmp_path: Path) -> None:
    async def first() -> str:
        watcher = FileWatcher(root, [tmp_path / "x"], interval=0.01)
        asyncio.get_running_loop().call_later(0.03, (tmp_path / "x").write_text, "1")
        async for reply in watcher.replies():
            return reply
        return ""

    root, session = open_stage(tmp_path / "log", ECHO)
    with session:
        assert "I have seen it." == asyncio.run(asyncio.wait_for(first(), 10))
