"""Every demonstration is played, and shows what it says it shows."""

from __future__ import annotations

import asyncio
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from harken import SessionViewer
from support.std_sessions import DEMONSTRATIONS

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def _examples_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))


def load(name: str) -> ModuleType:
    return importlib.import_module(name)


def play(name: str, tmp_path: Path) -> tuple[str, SessionViewer]:
    file = tmp_path / "session.jsonl"
    reply = asyncio.run(load(name).play(file))
    return reply, SessionViewer(file)


def said(viewer: SessionViewer, *names: str) -> list[str]:
    return [f"{viewer.name(line['agent_id'])}: {line['content']}" for line in viewer.extract_dialog(names)]


def heard(viewer: SessionViewer, name: str) -> list[str]:
    return [entry["content"] for entry in viewer.get_transcript(viewer.find_agent(name)) if entry["role"] == "user"]


def results(viewer: SessionViewer, agent_id: str = "agent_001") -> list[dict[str, Any]]:
    return [entry for entry in viewer.get_transcript(agent_id) if entry["role"] == "tool"]


@pytest.mark.parametrize("name", DEMONSTRATIONS)
def test_runs_by_itself(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), str(tmp_path / "x.jsonl")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (0, "") == (done.returncode, done.stderr)
    assert "harken view timeline" in done.stdout


def test_the_list_names_them_all() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", (EXAMPLES / "README.md").read_text(), re.MULTILINE)

    assert DEMONSTRATIONS == listed


CAFE = [
    "Narrator: You share a table in a crowded café. Introduce yourselves.",
    "Jack: *puts down his cup* Hi, I'm Jack. I hire people for a living. You?",
    "Jill: *smiles* Jill. I write. Nothing you will have read, yet.",
    "Narrator: The rain has started. You stay.",
    "Jack: A novel? Whatever about?",
    "Jill: Two strangers who share a table. I do not know how it ends.",
    "Jack: Then I had better be interesting.",
]


def test_the_inner_voice_is_heard_by_jill_alone(tmp_path: Path) -> None:
    _, viewer = play("cafe", tmp_path)

    assert CAFE == said(viewer, "Jack", "Jill")
    advice = "Tell him, but keep the ending to yourself."
    assert viewer.knows("Jill", advice)["knows"]
    assert not viewer.knows("Jack", advice)["knows"]
    assert f"[Received]: {advice}" in viewer.extract_agent_perspective("Jill")


def test_the_fourth_searcher_is_denied(tmp_path: Path) -> None:
    _, viewer = play("resource_hook", tmp_path)

    assert (
        "Error: Action blocked by hook 'ResourceMonitor': Maximum subagents (3) already reached."
        == results(viewer)[-1]["content"]
    )
    assert {"Searcher1", "Searcher2", "Searcher3", "ResourceMonitor", "agent_001"} == set(viewer.list_agents().values())
    assert "[Said]: DENY. Maximum subagents (3) already reached." in viewer.extract_agent_perspective("ResourceMonitor")


def test_the_password_is_said_and_not_heard(tmp_path: Path) -> None:
    _, viewer = play("redaction", tmp_path)

    assert "[Jack]: The router? password: [REDACTED]. Do not pass it on." == heard(viewer, "Jill")[-1]
    assert "Jack: The router? password: 1234. Do not pass it on." in said(viewer, "Jack", "Jill")
    assert not viewer.knows("Jill", "1234")["knows"]
    assert not viewer.knows("agent_001", "1234")["knows"]
    assert {"Redactor"} == {case["hook"] for case in viewer.interventions()}


def test_the_judge_listens_first_and_speaks_last(tmp_path: Path) -> None:
    _, viewer = play("debate", tmp_path)

    assert ["Byron", "Gandhi", "Byron", "Gandhi", "Judge"] == [
        line.split(":")[0] for line in said(viewer, "Byron", "Gandhi", "Judge") if not line.startswith("agent_001")
    ]
    assert 4 == sum(line.startswith(("[Byron]", "[Gandhi]")) for line in heard(viewer, "Judge"))
    assert heard(viewer, "Byron")[-1].startswith("[Judge]: Gandhi, by a little")


def test_an_early_agreement_is_sent_back_and_not_heard(tmp_path: Path) -> None:
    _, viewer = play("steel_man", tmp_path)

    assert "[SteelMan]: You agree too early. First put the strongest case against it." in heard(viewer, "Skeptic")
    assert not viewer.knows("Optimist", "You are right, I agree.")["knows"]
    assert heard(viewer, "Optimist")[1].startswith("[Skeptic]: The strongest case against it")


def test_what_was_told_yesterday_is_known_today(tmp_path: Path) -> None:
    reply, viewer = play("memory", tmp_path)

    assert "Rex" in reply
    assert ["[Memory]: You know: My dog is called Rex. He is three."] == heard(viewer, "agent_001")[1:]
    assert ["My dog is called Rex. He is three."] == heard(SessionViewer(tmp_path / "yesterday.jsonl"), "agent_001")


def test_the_strategist_never_probes(tmp_path: Path) -> None:
    reply, viewer = play("strategist", tmp_path)

    assert "The signal is at 68." == reply
    assert {"task", "discuss"} == {result["name"] for result in results(viewer)}
    steps = results(viewer, viewer.find_agent("Tactician"))
    assert ["higher", "lower", "higher", "lower", "here"] == [step["content"] for step in steps]


def test_characters_know_what_reached_them(tmp_path: Path) -> None:
    _, viewer = play("characters", tmp_path)
    secret = load("characters").SECRET
    before = next(line["message_id"] for line in viewer.extract_dialog(["Watson"]) if "time to name" in line["content"])

    assert [True, False, False] == [
        viewer.knows(name, secret, at=before)["knows"] for name in ("Holmes", "Watson", "Lestrade")
    ]
    assert all(viewer.knows(name, secret)["knows"] for name in ("Holmes", "Watson", "Lestrade"))


def test_the_tutor_asks_instead_of_answering(tmp_path: Path) -> None:
    reply, viewer = play("socratic", tmp_path)

    assert "And can both be true?" == reply
    assert [
        "Does a heavy stone fall faster than a light one?",
        "[Teacher]: Do not answer. Ask a question that lets the student find out.",
        "[Teacher]: That gives the answer away. Ask instead.",
    ] == heard(viewer, "Tutor")[:3]


def test_a_change_of_a_file_wakes_the_watcher(tmp_path: Path) -> None:
    reply, viewer = play("file_watcher", tmp_path)

    assert ["File changed: data.json"] == heard(viewer, "Watcher")
    assert ["[Watcher]: data.json has changed; reload it."] == heard(viewer, "Main")
    assert "Thank you. I shall use the new numbers." == reply


def test_a_discussion_survives_the_death_of_its_process(tmp_path: Path) -> None:
    reply, viewer = play("crash", tmp_path)

    assert "Jack and Jill have met, and Jill has kept the ending to herself." == reply
    assert CAFE == said(viewer, "Jack", "Jill")
    assert 1 == sum("Whatever about?" in line for line in heard(viewer, "Jill"))


class TestTheShow:
    @staticmethod
    def run(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        kept = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
        return subprocess.run(
            [sys.executable, str(EXAMPLES / "show.py")],
            cwd=folder,
            env=kept | environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def test_plays_kills_resumes_and_looks(self, tmp_path: Path) -> None:
        done = self.run(tmp_path, COLUMNS="40", NO_COLOR="1", TERM="dumb")

        assert (0, "") == (done.returncode, done.stderr)
        assert "killed (SIGKILL)" in done.stdout
        assert "\x1b" not in done.stdout
        (file,) = (tmp_path / ".harken-demo").glob("*.jsonl")
        assert CAFE == said(SessionViewer(file), "Jack", "Jill")
        for words in ("view dialog", "view perspective", "view flow", "view heard", "chat --resume"):
            assert words in done.stdout

    def test_a_second_run_begins_anew_and_an_ascii_terminal_is_enough(self, tmp_path: Path) -> None:
        self.run(tmp_path)
        done = self.run(tmp_path, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")

        assert 0 == done.returncode, done.stderr
        assert 2 == len(list((tmp_path / ".harken-demo").glob("*.jsonl")))

    def test_a_folder_that_cannot_be_written_is_no_obstacle(self, tmp_path: Path) -> None:
        folder = Path("/proc") if os.geteuid() == 0 else tmp_path  # where not even root can make a file
        if folder == tmp_path:
            tmp_path.chmod(0o500)

        assert 0 == self.run(folder).returncode


def test_searchers_stop_at_their_limit_and_go_on_with_a_higher_one(tmp_path: Path) -> None:
    reply, viewer = play("searchers", tmp_path)

    assert '{"found": 3, "best": "stars"}' == reply
    assert {"Tides follow the moon.", "Winds turn in autumn.", "Stars have no weather."} == {
        entry["content"] for entry in results(viewer)
    }
    for name in ("Ann", "Bob", "Cleo"):
        assert 2 == len(results(viewer, viewer.find_agent(name))), "nothing was looked up twice"
