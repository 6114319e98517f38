"""A session as one HTML file: the page, and every answer it needs, without secrets."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.api.export import ExportCounts, ExportPiece, ExportReport, ExportRequest, export
from harken.api.secret_rules import OwnRule
from harken.api.transcript import TranscriptRequest, transcript
from harken.errors import BadRequest, NotFound
from harken.events import Image, Prompt, Response, ToolCall, ToolResult
from harken.repo import Repo
from support.claude_lines import MODEL
from support.contexts import keep, memory_repo, turn
from support.hostile import EVIL, PIXEL, evil_events
from support.page_sessions import working_day
from support.page_sessions import write_session as write_page_session
from support.secret_session import KEY, write_session
from support.viewed import cafe, write_log
from support.viewer_file import ViewerFile

MAIN = "11111111-1111-4111-8111-111111111111"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_session(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def repo(path: Path) -> Iterator[Repo]:
    with harken.open("memory:") as opened:
        list(opened.import_sessions([path.parent]))
        yield opened


def whole(repo: Repo, **how: Any) -> tuple[ViewerFile, ExportCounts]:
    """The file and its report."""
    request = ExportRequest(**{"ref": "" if "file" in how else "11111111", "to": "html"} | how)
    *pieces, last = export(repo, request)
    assert isinstance(last, ExportReport)
    data = b"".join(piece.body for piece in pieces if isinstance(piece, ExportPiece))
    assert len(data) == last.report.size
    return ViewerFile(data.decode()), last.report


def test_it_holds_every_row_of_the_session_and_its_sub_agents_uncut(repo: Repo) -> None:
    data = whole(repo, reveal=True)[0].data

    assert [MAIN, f"{MAIN}/abc", f"{MAIN}/def"] == list(data["rows"])
    for name, rows in data["rows"].items():
        told = transcript(repo, TranscriptRequest(session=name))
        assert [(row.n, row.id, row.index, row.kind, row.text) for row in told.rows] == [
            (row["n"], row["id"], row["index"], row["kind"], row["text"]) for row in rows
        ]
        answers = {"session_page", "transcript", "transcript_outline", "lanes", "flow"}
        assert (answers | {"agents"} if name == MAIN else answers) == data["sessions"][name].keys()
    assert MAIN == data["main"]


def test_long_texts_are_whole(tmp_path: Path) -> None:
    repo = memory_repo()
    said = "word " * 20_000
    keep(repo, [Prompt(message_id="1", content=said), Response(message_id="2", content="yes")], session_id="talk")

    assert said == whole(repo, ref="talk")[0].data["rows"]["talk"][0]["text"]


class TestSecrets:
    def test_no_secret_is_in_it_and_they_are_counted(self, repo: Repo) -> None:
        file, report = whole(repo)

        assert KEY[:24] not in file.json.replace("\\u001b[0m", "")
        assert KEY[:24] not in file.text
        assert "[masked: anthropic-key]" in file.json
        assert ["anthropic-key"] == [one.rule for one in report.masked]
        assert report.masked[0].count >= 5

    def test_revealed_it_has_them(self, repo: Repo) -> None:
        assert KEY in whole(repo, reveal=True)[0].json

    def test_rules_of_ones_own_mask_too(self, repo: Repo) -> None:
        rule = OwnRule(name="mine", prefix="look", pattern="look(?:ed)? again")

        assert "look again" not in whole(repo, own_rules=[rule])[0].json

    def test_one_that_a_title_or_an_outline_cuts_off_is_masked_there(self, tmp_path: Path) -> None:
        token = f"eyJ{'a1' * 20}.eyJ{'b2' * 150}.{'c3' * 20}"
        line = {"type": "user", "uuid": "u1", "sessionId": "s1", "message": {"role": "user", "content": f"use {token}"}}
        (tmp_path / "s1.jsonl").write_text(json.dumps(line) + "\n")
        with harken.open("memory:") as repo:
            list(repo.import_sessions([tmp_path / "s1.jsonl"]))
            file, _ = whole(repo, ref="s1")
            from_file, _ = whole(repo, file=str(tmp_path / "s1.jsonl"))

        page = file.data["sessions"]["s1"]["session_page"]
        assert "use [masked: jwt]" == page["title"]
        assert "eyJ" not in file.json + from_file.json


def test_it_is_the_same_every_time_but_for_what_is_running(repo: Repo) -> None:
    assert whole(repo)[0].text == whole(repo)[0].text


def test_it_tells_the_prices_that_are_ones_own(tmp_path: Path) -> None:
    (mine := tmp_path / "mine.toml").write_text(f'[[model]]\nname = "{MODEL}"\ninput = 3000\noutput = 15000\n')
    with harken.open("memory:") as repo:
        list(repo.import_sessions([write_page_session(tmp_path, working_day(), MAIN)]))

        def told(prices: str) -> list[int]:
            answers = whole(repo, prices=prices)[0].data["sessions"][MAIN]
            lanes = sum(lane["price_usd_micros"] or 0 for lane in answers["lanes"]["lanes"])
            return [answers["session_page"]["price_usd_micros"], lanes]

        assert all(own > 100 * usual > 0 for own, usual in zip(told(str(mine)), told(""), strict=True))


def test_without_sub_agents_nothing_leads_to_them(repo: Repo) -> None:
    file, report = whole(repo, agents=False)

    assert [MAIN] == list(file.data["rows"])
    assert {None} == {row["call"]["session"] for row in file.data["rows"][MAIN] if row["call"]}
    assert 0 == report.agents
    assert 2 == whole(repo)[1].agents


def test_a_sub_agent_alone_leads_to_no_session_that_is_not_there(repo: Repo) -> None:
    file, _ = whole(repo, ref=f"{MAIN}/abc")

    assert [f"{MAIN}/abc"] == list(file.data["sessions"])
    assert file.data["sessions"][f"{MAIN}/abc"]["session_page"]["parent"] is None


def test_the_file_of_a_session_gives_what_the_store_gives(repo: Repo, path: Path) -> None:
    of_store, of_file = whole(repo)[0].data, whole(repo, file=str(path))[0].data

    assert of_store["rows"] == of_file["rows"]
    assert of_store["sessions"].keys() == of_file["sessions"].keys()


def test_a_session_log_has_its_flow(tmp_path: Path) -> None:
    log = write_log(tmp_path / "cafe.jsonl", cafe())

    with harken.open("memory:") as repo:
        data = whole(repo, file=str(log))[0].data

    flow = data["sessions"][data["main"]]["flow"]
    assert len(flow["rows"]) == flow["heads"]["all"]["total"]
    assert {"root", "Jack", "Jill"} <= {column["name"] for column in flow["heads"]["none"]["columns"]}


def test_at_an_earlier_commit_only_what_was_there_is_told(repo: Repo) -> None:
    early = repo.history("11111111")[-2]

    file, _ = whole(repo, ref=early.short)

    assert "[masked" in file.json
    assert "and now?" not in file.json
    assert "I looked again" not in file.json
    assert "lanes" not in file.data["sessions"][file.data["main"]]


def test_pictures_are_in_it_and_nothing_else_is_shown_as_one() -> None:
    repo = memory_repo()
    images = (Image(media_type="image/png", data=PIXEL), Image(media_type="image/png", data="PHN2Zz4="))
    keep(repo, [Prompt(message_id="1", content="look", images=images)], session_id="talk")

    file, _ = whole(repo, ref="talk")
    (row,) = file.data["rows"]["talk"]

    assert [f"data:image/png;base64,{PIXEL}", None] == [picture["url"] for picture in row["pictures"]]


def test_the_policy_allows_its_own_script_and_style_and_nothing_else(repo: Repo) -> None:
    file, _ = whole(repo)

    def name(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    assert file.policy.startswith(
        f"default-src 'none'; script-src 'sha256-{name(file.script)}'; style-src 'sha256-{name(file.style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    assert "require-trusted-types-for 'script'" in file.policy
    assert 2 == file.tags.count("script")


def test_whatever_a_session_says_is_data_and_no_part_of_the_page() -> None:
    repo = memory_repo()
    keep(repo, evil_events(), session_id=EVIL[:80], template="claude-code")
    keep(repo, turn(0), session_id="talk", template="claude-code")

    evil, _ = whole(repo, ref=EVIL[:80])
    plain, _ = whole(repo, ref="talk")

    assert plain.tags == evil.tags
    assert (plain.script, plain.style) == (evil.script, evil.style)
    assert "alert(1)" in evil.json


def test_rows_that_cannot_be_read_are_said(path: Path) -> None:
    with harken.open("memory:") as repo:
        list(repo.import_sessions([path.parent]))
        with repo.store.write() as writer:
            writer.evict(repo.commit("11111111/def").artifact)
        file, report = whole(repo)

    assert 1 == report.unread
    assert [f"rows of {MAIN}/def"] == [loss.what for loss in report.losses]
    assert "I looked again" not in file.json
    assert "I looked: [masked" in file.json


def test_it_tells_how_far_it_is(repo: Repo) -> None:
    told: list[tuple[str, int, int]] = []

    list(export(repo, ExportRequest(ref="11111111", to="html"), moved=lambda *now: told.append(now)))

    assert told[-1][1] == told[-1][2] > 0
    assert sorted(told) == told


@pytest.mark.parametrize(("how", "error"), [({"ref": "nowhere"}, NotFound), ({"ref": ""}, BadRequest)])
def test_what_is_not_there_is_refused(repo: Repo, how: dict[str, str], error: type[Exception]) -> None:
    with pytest.raises(error):
        whole(repo, **how)


def test_calls_and_results_are_one_row_with_their_input() -> None:
    repo = memory_repo()
    call = ToolCall(message_id="1", id="c", name="Bash", input=b'{"command": "pytest -q"}')
    keep(repo, [call, ToolResult(message_id="2", id="c", output="2 passed")], session_id="talk")

    (row,) = whole(repo, ref="talk")[0].data["rows"]["talk"]

    assert ({"command": "pytest -q"}, "2 passed") == (row["call"]["input"], row["call"]["result"])
