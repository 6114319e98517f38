"""What the README and the guides tell people to type is what the command line takes, and it does what they say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

import harken
from harken import clock
from harken.cli import harken as cli
from harken.cli import ui
from harken.runtimes.templates import parse_template
from support.claude_lines import assistant, dump, result, user
from support.command import command, printed
from support.recordings import recorded
from support.viewed import cafe, write_log

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)


def blocks(document: Path, *languages: str) -> list[str]:
    """The fenced blocks of a document in one of these languages; the empty one has no name."""
    return [body for language, body in BLOCK.findall(document.read_text("utf-8")) if language in languages]


def commands(document: Path) -> list[str]:
    """Every `harken` command in a block of a document, without its comment."""
    return _commands(blocks(document, "", "sh", "console"))


def _commands(bodies: list[str]) -> list[str]:
    lines = [line.removeprefix("$ ") for body in bodies for line in body.splitlines()]
    said = [part.strip() for line in lines for part in line.split("  #")[0].split(";")]
    return [line for line in said if line.startswith("harken ")]


TYPED = [(document.name, line) for document in DOCUMENTS for line in commands(document)]


def test_the_documents_have_commands() -> None:
    assert {"README.md", "context.md", "import.md", "run-and-resume.md"} <= {name for name, _ in TYPED}


@pytest.mark.parametrize("line", dict.fromkeys(line for _, line in TYPED))
def test_every_command_that_a_document_shows_is_one_that_harken_takes(line: str) -> None:
    """The words are parsed as the command line parses them; nothing is run."""
    words = shlex.split(line)[1:]
    context: click.Context = click.Context(cli)
    found: click.Command = cli
    while isinstance(found, click.Group):
        below = found.get_command(context, words[0])
        assert below is not None, f"there is no command {words[0]!r}"
        found, words = below, words[1:]
        context = click.Context(found, parent=context)

    found.make_parser(context).parse_args(args=list(words))


# -- the README, to the letter -----------------------------------------------------------------------------------------


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, a folder to work in, and no setting of anybody's."""
    home, folder = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    folder.mkdir()
    for name in ("HARKEN_STORE", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(folder)
    return folder


def settle(path: Path, home: Path) -> None:
    """Put a recorded file where its program keeps it."""
    place = home / path.relative_to(next(above for above in path.parents if (above / "recording.json").exists()))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(path.read_bytes())


def test_the_five_minutes_of_the_readme_go_as_it_says(desk: Path) -> None:
    """#8: in an empty home, with one recorded session of each program."""
    first = next(one for one in recorded("claude-code") if one.scenario == "everyday" and one.version == "2.1.325")
    settle(first.path, Path.home() / ".claude")
    other = next(one for one in recorded("codex") if one.scenario == "plain" and one.version == "0.166.0")
    settle(other.path, Path.home() / ".codex")
    shell = [line for line in commands(ROOT / "README.md") if not line.startswith(("harken run", "harken serve"))]
    fence = shell.index("harken view dialog demo.jsonl Jack Jill")
    older = ""

    for line in shell[:fence]:
        if "ctx-" in line and not older:
            older = command("log", first.session, "--json")[1]["short"]
        words = shlex.split(re.sub(r"ctx-\w+", older, line.replace("SESSION", first.session)))[1:]
        printed(*words)

    assert first.path.read_bytes() == (desk / "copy.jsonl").read_bytes()
    assert {first.session, other.session} <= {row["session"] for row in command("sessions", "--json")}
    rollouts = list((Path.home() / ".codex").rglob("rollout-*.jsonl"))
    assert 2 == len(rollouts), "the recorded one, and the one that a turn of the other program goes on in"


KEY = "sk-ant-" + "api03-" + "Ab1" * 30
YESTERDAY = "3f2a91bc-0000-4000-8000-000000000001"


def daily() -> dict[str, list[str]]:
    """The commands of the README's "Every day" by their names, as words."""
    section = (ROOT / "README.md").read_text("utf-8").partition("## Every day\n")[2].partition("\n## ")[0]
    lines = _commands([body for _, body in BLOCK.findall(section)])
    return {line.split()[1]: shlex.split(line.replace("SESSION", YESTERDAY))[1:] for line in lines}


@pytest.mark.parametrize("columns", ["", "60", "80", "120"])
def test_the_days_jobs_are_one_command_each_at_any_width(
    desk: Path, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    """In the order of the README; without columns it is as in a pipe."""
    then = clock.format_instant(clock.now() - 20 * 3600 * 1_000_000)
    ran = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "curl --timeout 5"}}
    said = [user("u", None, f"The key is {KEY}"), assistant("a", "u", [ran], "m"), result("r", "a", "t")]
    place = Path.home() / ".claude/projects/-work-shop" / f"{YESTERDAY}.jsonl"
    place.parent.mkdir(parents=True)
    place.write_bytes(dump(*(one | {"sessionId": YESTERDAY, "cwd": "/work/shop", "timestamp": then} for one in said)))
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    printed("import")
    jobs = daily()

    shown = {name: printed(*jobs[name]).decode() for name in ("sessions", "log", "search", "stats", "export")}
    (hit,) = re.findall(r"harken resume (ctx-\w+)", shown["search"])
    printed(*(hit if word.startswith("ctx-") else word for word in jobs["resume"]))
    printed(*jobs["forget"])

    assert YESTERDAY[:8] in shown["sessions"]
    assert "Bash: curl --timeout 5" in shown["log"]
    assert "/work/shop" in shown["stats"]
    assert "masked: anthropic-key" in Path("session.md").read_text("utf-8")
    assert 1 == len(list((Path.home() / ".codex").rglob("rollout-*.jsonl")))
    assert KEY.encode() not in printed("materialize", YESTERDAY, "--stop", "root")
    if columns:
        assert int(columns) >= max(ui.columns(line) for text in shown.values() for line in text.splitlines())


def test_the_days_jobs_have_json_and_the_last_is_shown_before_it_is_done(desk: Path) -> None:
    jobs = daily()

    assert ["sessions", "log", "search", "resume", "stats", "export", "forget", "watch"] == list(jobs)
    assert b"watch" in printed(*jobs.pop("watch"), "--print")
    for name in jobs:
        found = cli.get_command(click.Context(cli), name)
        assert found is not None and any("--json" in option.opts for option in found.params), name


def test_the_log_of_the_readme_is_written_and_looked_at_as_it_says(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene, asking, _ = blocks(ROOT / "README.md", "python")
    exec(compile(scene.replace("scripted:", f"scripted:{ROOT}/"), "README.md", "exec"), {"__name__": "readme"})
    shell = commands(ROOT / "README.md")
    looks = [line for line in shell[shell.index("harken view dialog demo.jsonl Jack Jill") :] if "view" in line]

    assert 3 == len(looks)
    for line in looks:
        assert b"Jack" in printed(*shlex.split(line)[1:])

    with harken.open() as repo:
        kept = repo.checkpoint([harken.Prompt(content="Hello")], session_id="s").short
    exec(compile(re.sub(r"ctx-\w+", kept, asking), "README.md", "exec"), {"__name__": "readme"})


# -- the guides --------------------------------------------------------------------------------------------------------


def test_the_code_of_the_guide_to_contexts_runs_from_its_first_line_to_its_last(desk: Path) -> None:
    names: dict[str, object] = {
        "__name__": "guide",
        "events": [harken.Prompt(content="Go on."), harken.Response(content="Yes.")],
    }
    for code in blocks(ROOT / "docs/guides/context.md", "python"):
        exec(compile(code, "context.md", "exec"), names)
    repo = names["repo"]
    assert isinstance(repo, harken.Repo)

    assert "me" == repo.commit("run-17").principal
    assert any(row.session.startswith("cafe-") for row in repo.sessions())
    repo.close()


def test_the_code_of_the_guide_to_numbers_runs(desk: Path) -> None:
    (code,) = blocks(ROOT / "docs/guides/numbers.md", "python")
    said = [harken.Prompt(content="Go on."), harken.Response(content="Yes.", model="m")]

    exec(compile(code, "numbers.md", "exec"), names := {"events": said, "others": said})

    assert names["tally"].prompts.human == 1


def test_the_template_of_the_guide_to_runs_is_one() -> None:
    (template,) = blocks(ROOT / "docs/guides/run-and-resume.md", "toml")

    assert "claude-code" == parse_template("reviewer", template.encode()).runtime


def test_the_guide_to_views_shows_what_is_shown(desk: Path) -> None:
    guide = ROOT / "docs/guides/views.md"
    write_log(desk / "cafe.jsonl", cafe())
    (shown,) = blocks(guide, "console")
    line, _, expected = shown.partition("\n")
    (code,) = blocks(guide, "python")
    exec(compile(code, "views.md", "exec"), names := {"__name__": "guide"})

    assert expected == printed(*shlex.split(line)[2:]).decode()
    claims = re.findall(r"^(viewer\.knows.+?) +# (True|False)", code, re.M)
    assert 2 == len(claims)
    for asked, answer in claims:
        assert (answer == "True") is eval(asked, names)
