"""Operations over the wire: answers, many answers, errors, and in whose name something is done."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import harken
from harken.api import OPERATIONS, stats
from harken.api import commits as commit_operations
from harken.api.secret_rules import OwnRule
from harken.events import Prompt
from harken.events.cbor import encode_events
from harken.service import operations
from harken.service.answering import encode
from harken.service.routing import API
from harken.service.running import RunningService
from harken.service.settings import ServiceSettings
from support.contexts import keep, turn
from support.service import client, lines, problem, replace_operation, serving, token

BODY = base64.b64encode(encode_events(turn(7))).decode()


def test_one_answer_is_json_as_the_command_line_has_it(reader: httpx.Client) -> None:
    answer = reader.post(f"{API}/show", json={"ref": "review"})

    assert "application/json" == answer.headers["content-type"]
    assert ["review"] == answer.json()["names"]


def test_many_answers_are_one_object_a_line(service: RunningService, reader: httpx.Client) -> None:
    answer = reader.post(f"{API}/log", json={"ref": "s"})

    assert "application/x-ndjson" == answer.headers["content-type"].partition(";")[0]
    assert 2 == len(lines(answer))
    assert [] == lines(reader.post(f"{API}/names", json={"kind": "tag"}))


def test_a_request_may_be_empty(reader: httpx.Client) -> None:
    assert lines(reader.post(f"{API}/sessions")) == lines(reader.post(f"{API}/sessions", json={}))


def test_bytes_are_base64_both_ways(writer: httpx.Client) -> None:
    made = writer.post(f"{API}/checkpoint", json={"body": BODY, "format": "events-v1", "session_id": "bytes"})
    told = writer.post(f"{API}/materialize", json={"ref": made.json()["id"], "format": "events-v1"})

    assert 200 == made.status_code
    assert BODY == told.json()["body"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("{", "bad_request"),
        ('{"nothing": 1}', "bad_request"),
        ('{"ref": 3}', "bad_request"),
        ("[]", "bad_request"),
        ("{}", "bad_request"),
        ("\xff", "bad_request"),
        ("[" * 100_000, "bad_request"),
        ('{"ref": "nowhere"}', "not_found"),
        ('{"ref": "\\ud800"}', "not_found"),
        ('{"ref": "\\u0000"}', "not_found"),
    ],
)
def test_a_bad_question_is_told_what_is_wrong_with_it(reader: httpx.Client, body: str, code: str) -> None:
    answer = reader.post(f"{API}/show", content=body.encode("latin-1"), headers={"content-type": "application/json"})

    assert code in problem(answer)
    assert answer.status_code in (400, 404)


def test_an_error_before_the_first_line_has_the_status_of_its_class(reader: httpx.Client) -> None:
    assert (404, "not_found") == problem(reader.post(f"{API}/log", json={"ref": "nowhere"}))


@pytest.fixture
def breaking(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`stats` with a store that breaks in the middle of an answer."""
    from harken.errors import Corrupt

    def broken(repo: object, request: stats.StatsRequest) -> Iterator[commit_operations.DiffStart]:
        yield commit_operations.DiffStart(ancestor=None, ancestor_short=None, unread=0, here=0, there=0, common=None)
        raise Corrupt("the disk has lost something", hint="run `harken fsck`")

    replace_operation(monkeypatch, "stats", broken)
    yield


def test_an_error_in_the_middle_is_the_last_line(reader: httpx.Client, breaking: None) -> None:
    answer = reader.post(f"{API}/stats", json={})
    first, last = lines(answer)

    assert 200 == answer.status_code
    assert 0 == first["unread"]
    assert {"error": {"code": "corrupt", "message": "the disk has lost something", "hint": "run `harken fsck`"}} == last


def test_a_fault_of_ours_says_nothing_of_its_inside(reader: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(repo: object, request: object) -> object:
        raise RuntimeError("/home/somebody/secret")

    replace_operation(monkeypatch, "show", broken)
    answer = reader.post(f"{API}/show", json={"ref": "s"})

    assert (500, "harken_error") == problem(answer)
    assert "secret" not in answer.text


def test_what_utf8_cannot_say_is_escaped() -> None:
    assert {"text": "\ud800", "big": 2**70, "odd": None} == json.loads(
        encode({"text": "\ud800", "big": 2**70, "odd": float("inf")})
    )


def test_every_served_operation_is_one_of_ours(service: RunningService) -> None:
    names = [
        route.path.removeprefix(f"{API}/") for route in service.app.table.routes if route.label.startswith(f"{API}/")
    ]

    assert len(set(names) & set(OPERATIONS)) > 50


# -- in whose name -----------------------------------------------------------------------------------------------------


def test_a_checkpoint_is_made_in_the_name_of_the_token(writer: httpx.Client) -> None:
    made = writer.post(f"{API}/checkpoint", json={"body": BODY, "format": "events-v1", "session_id": "named"})
    shown = writer.post(f"{API}/show", json={"ref": made.json()["id"]}).json()

    assert ("ci", "runner-1") == (shown["principal"], shown["machine"])


@pytest.mark.parametrize("field", ["principal", "machine"])
def test_only_an_admin_may_name_somebody_else(writer: httpx.Client, admin: httpx.Client, field: str) -> None:
    asked = {"body": BODY, "format": "events-v1", "session_id": f"other-{field}", field: "somebody"}

    assert (403, "not_allowed") == problem(writer.post(f"{API}/checkpoint", json=asked))
    made = admin.post(f"{API}/checkpoint", json=asked).json()
    assert "somebody" == admin.post(f"{API}/show", json={"ref": made["id"]}).json()[field]


def test_a_token_may_name_itself(writer: httpx.Client) -> None:
    asked = {"body": BODY, "format": "events-v1", "session_id": "self", "principal": "ci", "machine": "runner-1"}

    assert 200 == writer.post(f"{API}/checkpoint", json=asked).status_code


def test_a_remark_and_a_branch_are_made_in_the_name_of_the_token(writer: httpx.Client) -> None:
    writer.post(f"{API}/fork", json={"ref": "s", "name": "mine"})
    (move,) = lines(writer.post(f"{API}/moves", json={"name": "mine"}))

    assert "ci" == move["who"]
    assert 403 == writer.post(f"{API}/fork", json={"ref": "s", "name": "yours", "who": "boss"}).status_code


NOT_THEIRS = [
    ("set_name", {"ref": "s", "name": "principals/other/keys/plan", "kind": "branch", "move": True}),
    ("set_name", {"ref": "s", "name": "principals/other/keys/new", "kind": "tag"}),
    ("fork", {"ref": "s", "name": "principals/other/keys/new"}),
    ("checkpoint", {"body": BODY, "format": "events-v1", "parent": "principals/other/keys/plan"}),
    ("compact", {"ref": "principals/other/keys/plan", "summary": "short"}),
    ("snapshot", {"ref": "principals/other/keys/plan"}),
    ("delete_name", {"name": "principals/other/running/night", "kind": "branch"}),
    ("undo", {"name": "principals/other/keys/plan"}),
    ("update_metadata", {"ref": "s", "tags": ["fine", "principals/other/keys/new"]}),
    ("update_metadata", {"ref": "s", "remove_tags": ["live/s"]}),
    ("fork", {"ref": "s", "name": "resumed/s"}),
    ("annotate", {"ref": "s", "key": "superseded_by", "text": "gone"}),
]


def test_what_a_principal_keeps_is_moved_by_nobody_else(service: RunningService, writer: httpx.Client) -> None:
    """Keys and sessions stand on branches, and who may write may move branches."""
    with client(service, token(service, "context/write", principal="other")) as other:
        kept = other.post(f"{API}/put_key", json={"key": "plan", "body": BODY}).json()
        other.post(f"{API}/start_session", json={"session": "night"})
        for name, asked in NOT_THEIRS:
            assert (403, "not_allowed") == problem(writer.post(f"{API}/{name}", json=asked)), (name, asked)

        assert [kept] == lines(other.post(f"{API}/keys", json={}))
        assert ["night"] == [one["session"] for one in lines(other.post(f"{API}/running_sessions", json={}))]


def test_every_field_that_may_name_a_branch_is_looked_at() -> None:
    """Of operations that change something; what they only read, they may read."""
    names, only_read = {"name", "parent", "ref", "tags", "remove_tags"}, {("annotate", "ref"), ("pin", "ref")}
    only_read |= {(name, "ref") for name in ("fork", "set_name", "update_metadata")}
    fields = {
        (name, field)
        for name, grant in operations.SERVED.items()
        if grant == operations.WRITE
        for field in names.intersection(operations.described(name).request.__struct_fields__)
    }

    assert fields - only_read == {(name, field) for name, told in operations.MOVED.items() for field in told}


def test_asking_about_a_principal_is_no_speaking_as_one(reader: httpx.Client, writer: httpx.Client) -> None:
    writer.post(f"{API}/checkpoint", json={"body": BODY, "format": "events-v1", "session_id": "asked"})

    assert 200 == reader.post(f"{API}/resolve", json={"principal": "ci"}).status_code


# -- waiting -----------------------------------------------------------------------------------------------------------


def test_whoever_waits_for_a_change_takes_no_thread_from_others(service: RunningService, reader: httpx.Client) -> None:
    from concurrent.futures import ThreadPoolExecutor

    last = reader.post(f"{API}/changes", json={}).json()
    asked = {"after": last["last"], "epoch": last["epoch"], "wait": 20}
    waiting = service.app.settings.workers + 8
    with client(service, token(service, "context/read")) as asking, ThreadPoolExecutor(waiting) as pool:
        answers = [pool.submit(asking.post, f"{API}/changes", json=asked) for _ in range(waiting)]
        assert 200 == reader.post(f"{API}/sessions", json={}).status_code
        service.app.repo.annotate("s", "news")
        told = [one.result(15).json() for one in answers]

    assert [[last["last"] + 1]] * waiting == [[change["number"] for change in one["changes"]] for one in told]


def test_waiting_ends_when_nothing_comes(reader: httpx.Client) -> None:
    last = reader.post(f"{API}/changes", json={}).json()["last"]

    assert [] == reader.post(f"{API}/changes", json={"after": last, "wait": 0.05}).json()["changes"]


# -- bytes -------------------------------------------------------------------------------------------------------------


def test_an_artifact_goes_in_and_comes_out(writer: httpx.Client) -> None:
    data = bytes(range(256)) * 20_000
    kept = writer.put(f"{API}/artifacts", content=data)
    told = kept.json()

    assert (201, len(data)) == (kept.status_code, told["size"])
    assert told["ref"].removeprefix("art-") == told["artifact"][:12]
    for ref in (told["ref"], told["artifact"]):
        got = writer.get(f"{API}/artifacts/{ref}")
        assert data == got.content
        assert "application/octet-stream" == got.headers["content-type"]
        assert "attachment" == got.headers["content-disposition"]
    head = writer.head(f"{API}/artifacts/{told['ref']}")
    assert (200, str(len(data)), b"") == (head.status_code, head.headers["content-length"], head.content)


def test_an_artifact_that_is_not_there_is_told_so(reader: httpx.Client) -> None:
    assert (404, "not_found") == problem(reader.get(f"{API}/artifacts/art-ffffffffffff"))


def test_a_policy_that_is_none_is_refused(writer: httpx.Client) -> None:
    assert (400, "bad_request") == problem(writer.put(f"{API}/artifacts?policy=never", content=b"x"))
    assert (400, "bad_request") == problem(writer.put(f"{API}/artifacts?expires=soon", content=b"x"))


def test_a_checkpoint_may_be_made_of_an_artifact(writer: httpx.Client) -> None:
    kept = writer.put(f"{API}/artifacts", content=encode_events(turn(9))).json()
    asked = {"artifact": kept["artifact"], "format": "events-v1", "session_id": "from-artifact"}

    assert 200 == writer.post(f"{API}/checkpoint", json=asked).status_code


RECORDED = Path(__file__).parents[1] / "recorded"


def test_a_session_log_is_taken_in_and_known_again_when_it_has_grown(
    service: RunningService, writer: httpx.Client
) -> None:
    file = sorted(RECORDED.glob("*/compacted/projects/*/*.jsonl"))[0]
    whole = file.read_bytes()
    cut = whole[: whole.index(b"\n", len(whole) // 2) + 1]

    first, *_ = lines(writer.put(f"{API}/session-logs/{file.name}", content=cut))
    again, *_ = lines(writer.put(f"{API}/session-logs/{file.name}", content=cut))
    grown, *_, report = lines(writer.put(f"{API}/session-logs/{file.name}", content=whole))

    assert ["new", "unchanged", "grown"] == [one["status"] for one in (first, again, grown)]
    assert first["session"] == grown["session"]
    assert 0 == report["report"]["failed"]
    left = [path for path in Path(service.app.repo.store.location).parent.rglob("*") if path.name == file.name]
    assert [] == left


def test_an_uploaded_logs_commits_are_of_the_tokens_principal_and_machine(service: RunningService) -> None:
    file = sorted(RECORDED.glob("*/plain/projects/*/*.jsonl"))[0]
    with client(service, token(service, "context/write", principal="agent-7", machine="runner-7")) as agent:
        taken, *_ = lines(agent.put(f"{API}/session-logs/{file.name}", content=file.read_bytes()))
        commits = lines(agent.post(f"{API}/history", json={"ref": taken["session"]}))

    assert "new" == taken["status"]
    assert {("agent-7", "runner-7")} == {(one["principal"], one["machine"]) for one in commits}


def test_a_name_that_leads_elsewhere_takes_no_log(writer: httpx.Client) -> None:
    for name in ("..", "%2e%2e", "a%20b", "x" * 200):
        assert writer.put(f"{API}/session-logs/{name}", content=b"x").status_code in (400, 404, 405)
    assert 404 == writer.put(f"{API}/session-logs/a%2Fb", content=b"x").status_code


# -- what the owner has set --------------------------------------------------------------------------------------------


def test_the_owners_rules_for_secrets_hold_for_everybody(tmp_path: Path) -> None:
    rules = (OwnRule(name="acme", prefix="acme_", pattern="acme_[0-9]+"),)
    with harken.open(tmp_path / "store.db") as repo:
        keep(repo, [Prompt(content="use acme_12345", message_id="m1")], session_id="s")
        with (
            serving(repo, settings=ServiceSettings(usual={"own_rules": rules})) as service,
            client(service, token(service, "context/read")) as asking,
        ):
            *pieces, report = lines(asking.post(f"{API}/export", json={"ref": "s", "to": "txt"}))
            told = asking.post(f"{API}/export", json={"ref": "s", "to": "txt", "reveal": True})

    assert ["acme"] == [one["rule"] for one in report["report"]["masked"]]
    assert b"acme_12345" not in b"".join(base64.b64decode(piece["body"]) for piece in pieces)
    assert (403, "not_allowed") == problem(told)


def test_an_import_looks_where_the_owners_runtimes_keep_their_sessions(tmp_path: Path) -> None:
    file = sorted(RECORDED.glob("*/plain/projects/*/*.jsonl"))[0]
    folder = tmp_path / "home" / ".claude" / "projects" / "-home-sam-project"
    folder.mkdir(parents=True)
    (folder / file.name).write_bytes(file.read_bytes())
    usual = {"environ": {"HOME": str(tmp_path / "home")}}
    with (
        harken.open(tmp_path / "store.db") as repo,
        serving(repo, settings=ServiceSettings(usual=usual)) as service,
        client(service, token(service, "admin")) as asking,
    ):
        one, _ = lines(asking.post(f"{API}/import_sessions", json={}))

    assert ("new", file.stem) == (one["status"], one["session"])
