"""Repair of what is written in a hurry: other spellings of keys, lists as objects, reviews in words, lost times."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from harken.formats.std.checking.rules import validate_bytes
from harken.formats.std.document import dumps, loads
from harken.formats.std.parts import orchestrator
from harken.formats.std.repairing.repair import Repaired, repair
from support.std_documents import CHECKER, PLANNER, multi, single

Json = dict[str, Any]


def repaired(document: Json) -> tuple[Json, Repaired]:
    """The document after a repair, which a second one must leave as it is."""
    answer = repair(dumps(document), f"{document.get('session_id', 'x')}.json")
    assert answer.data == repair(answer.data, f"{document.get('session_id', 'x')}.json").data
    return loads(answer.data), answer


def said(answer: Repaired, path: str) -> list[tuple[str, bool]]:
    return [(change.message, change.derived) for change in answer.changes if change.path == path]


# -- keys --------------------------------------------------------------------------------------------------------------


def camel(value: Any) -> Any:
    """A value with all of its keys as programs in JavaScript have them, but for what is a tool's own."""
    if isinstance(value, list):
        return [camel(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {}
    for key, below in value.items():
        first, *rest = key.split("_")
        own = key in ("params", "result")
        made[first + "".join(word.title() for word in rest)] = below if own else camel(below)
    return made


@pytest.mark.parametrize("make", [single, multi])
def test_keys_in_camel_case_are_those_of_the_standard_again(make: Any) -> None:
    assert make() == without_time(repaired(camel(make()))[0])


def without_time(document: Json) -> Json:
    return {key: value for key, value in document.items() if key != "updated_at"}


def test_the_type_of_an_agent_that_is_named_by_its_id_alone_is_what_the_id_begins_with() -> None:
    document = multi()
    document["collaboration"] |= {"orchestrator": "architect-main", "participants": ["developer-01", "anna"]}

    made, answer = repaired(document)

    assert {"agent_id": "architect-main", "agent_type": "architect"} == made["collaboration"]["orchestrator"]
    assert [
        {"agent_id": "developer-01", "agent_type": "developer"},
        {"agent_id": "anna", "agent_type": "anna"},
    ] == made["collaboration"]["participants"][:2]
    (told,) = said(answer, "collaboration.participants[0]")
    assert "the text is its id; its type is as that says" in told[0]


def test_an_orchestrator_that_is_named_by_a_text_does_not_become_a_participant() -> None:
    document = multi()
    team = document["collaboration"]
    team["orchestrator"] = team["orchestrator"]["agent_id"]
    names = [one["agent_id"] for one in team["participants"]]
    team["participants"] = list(names)

    made, answer = repaired(document)

    assert answer.is_valid
    assert names == [one["agent_id"] for one in made["collaboration"]["participants"]]


@pytest.mark.parametrize(
    "everybody",
    ["all", {"agent_id": "all"}, {"agent_id": "所有人", "agent_type": "broadcast"}, [{"agent_id": "team"}]],
)
def test_a_message_to_everybody_makes_no_agent_of_that_name_and_becomes_one_to_each(everybody: Any) -> None:
    document = multi()
    document["collaboration"]["participants"] = ["builder", "checker"]
    told = {"message_id": "news", "sequence_number": 99, "to_agent": everybody, "message_type": "feedback"}
    document["messages"].append({**document["messages"][0], **told, "payload": {"content": "Begin."}})

    made, answer = repaired(document)

    assert answer.is_valid
    assert ["builder", "checker"] == [one["agent_id"] for one in made["collaboration"]["participants"]]
    assert [("news", "builder"), ("news-2", "checker")] == [
        (one["message_id"], one["to_agent"]["agent_id"]) for one in made["messages"][-2:]
    ]


def test_an_agent_that_is_called_all_stays_the_one_hearer_of_what_is_told_to_it() -> None:
    document = multi()
    document["collaboration"]["participants"].append({"agent_id": "all"})
    told = {"message_id": "news", "sequence_number": 99, "to_agent": {"agent_id": "all"}, "message_type": "feedback"}
    document["messages"].append({**document["messages"][0], **told, "payload": {"content": "Begin."}})

    made, answer = repaired(document)

    assert (True, "all", 5) == (answer.is_valid, made["messages"][-1]["to_agent"]["agent_id"], len(made["messages"]))


def test_a_task_that_is_given_to_several_agents_stays_an_error() -> None:
    document = multi()
    document["messages"][0]["to_agent"] = ["builder", "checker"]

    made, answer = repaired(document)

    assert (False, document["messages"]) == (answer.is_valid, made["messages"])


def test_a_message_to_several_agents_becomes_one_to_each_and_replies_follow() -> None:
    document = multi()
    first = {**document["messages"][0], "message_type": "feedback", "payload": {"content": "Mind the clock."}}
    first |= {"message_id": "{0}", "sequence_number": 1, "to_agent": ["builder", "checker"]}
    reply = {**first, "message_id": "yes", "sequence_number": 2, "from_agent": CHECKER, "to_agent": PLANNER}
    document["messages"] = [first, reply | {"reply_to": "{0}"}]

    made, answer = repaired(document)

    assert answer.is_valid
    assert [("{0}", 1, "builder"), ("{0}-2", 2, "checker"), ("yes", 3, "lead")] == [
        (one["message_id"], one["sequence_number"], one["to_agent"]["agent_id"]) for one in made["messages"]
    ]
    assert ("{0}-2", ["builder", "checker"]) == (
        made["messages"][2]["reply_to"],
        made["messages"][0]["x_harken_old_to_agent"],
    )
    (told,) = said(answer, "messages[0].to_agent")[:1]
    assert 'a message has one hearer: it stands here once for each of 2 ("{0}", "{0}-2")' in told[0]


def test_numbers_that_the_counts_of_agents_lack_are_counted_or_left_of_the_total() -> None:
    document = multi()
    document["summary"]["agent_counts"] = {"orchestrators": 1, "workers": 1, "specialists": 0, "total": 3}
    made, answer = repaired(document)
    assert (True, 1) == (answer.is_valid, made["summary"]["agent_counts"]["validators"])

    document["summary"]["agent_counts"] = {"orchestrators": 1}
    assert not repaired(document)[1].is_valid

    team = document["collaboration"]
    team["orchestrator"] = team["orchestrator"] | {"role_category": "orchestrator"}
    team["participants"] = [one | {"role_category": "worker"} for one in team["participants"]]
    made, answer = repaired(document)
    assert answer.is_valid
    assert {"orchestrators": 1, "workers": 2, "validators": 0, "specialists": 0, "total": 3} == made["summary"][
        "agent_counts"
    ]


def test_an_orchestrator_that_is_named_by_its_type_is_the_participant_of_that_type() -> None:
    document = loads(dumps(multi()).replace(b'"lead"', b'"architect-main"'))
    document["collaboration"] |= {"orchestrator": "architect", "participants": ["architect-main", "builder"]}

    made, _ = repaired(document)

    assert {"agent_id": "architect-main", "agent_type": "architect"} == made["collaboration"]["orchestrator"]
    assert {"architect-main"} == {orchestrator(data)["agent_id"] for data in (document, made)}


def test_keys_of_a_tool_and_unknown_ones_stay_as_they_are() -> None:
    document = camel(single())
    document["toolCalls"][0]["input"]["params"] = {"sessionId": 1, "filePath": "a"}
    document["toolCalls"][0]["myOwn"] = {"callId": 5}

    call = repaired(document)[0]["tool_calls"][0]

    assert ({"sessionId": 1, "filePath": "a"}, {"callId": 5}) == (call["input"]["params"], call["myOwn"])


def test_a_key_in_both_spellings_stays_in_both_and_a_valid_document_keeps_its_keys() -> None:
    document = single() | {"sessionId": "other", "status": "done"}

    mended, _ = repaired(document)

    assert ("other", single()["session_id"], "success") == (
        mended["sessionId"],
        mended["session_id"],
        mended["status"],
    )
    assert [] == repaired(single() | {"updatedAt": "x"})[1].changes


def test_every_key_that_is_renamed_is_told_and_the_check_names_it() -> None:
    document = camel(single())

    assert "`sessionId` is `session_id` now" in said(repaired(document)[1], "")[0][0]
    findings = validate_bytes(dumps(document), "x.json").findings
    assert '`session_id` is missing; there is "sessionId"' in [one.message for one in findings if one.repairable]


# -- lists that are objects --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "key"), [("tool_calls", "call_id"), ("sub_sessions", "sub_session_id"), ("messages", "message_id")]
)
def test_a_list_as_an_object_by_id_is_the_list(name: str, key: str) -> None:
    document = multi()
    document[name] = {one.pop(key): one for one in document[name]}

    mended, answer = repaired(document)

    assert {one[key]: one for one in multi()[name]} == {one[key]: one for one in mended[name]}
    assert answer.is_valid and said(answer, name)


@pytest.mark.parametrize(
    ("name", "key"), [("toolCalls", "callId"), ("subSessions", "subSessionId"), ("messages", "messageId")]
)
def test_a_list_as_an_object_by_id_has_keys_in_camel_case(name: str, key: str) -> None:
    document = camel(multi())
    document[name] = {one.pop(key): one for one in document[name]}

    assert multi() == without_time(repaired(document)[0])


def test_an_output_of_no_special_kind_and_files_in_camel_case_are_those_of_the_standard() -> None:
    made = multi()
    made["sub_sessions"][0]["output"]["changes"]["files_created"] = [{"path": "src/clock.py", "lines_added": 3}]
    made["sub_sessions"][1]["output"] = {
        "output_type": "generic", "task_id": "task-001", "status": "completed", "summary": "It is."
    }  # fmt: skip

    assert made["sub_sessions"] == repaired(camel(made))[0]["sub_sessions"]


def test_a_sub_session_in_camel_case_inside_its_call_stands_where_the_standard_has_it() -> None:
    document = multi()
    for call, sub in zip(document["tool_calls"][1:], document.pop("sub_sessions"), strict=True):
        call["sub_session"] = sub

    assert multi() == without_time(repaired(camel(document))[0])


def test_a_call_of_a_session_that_goes_on_is_given_no_end() -> None:
    document = single() | {"status": "running"}
    for key in ("ended_at", "duration_ms", "output"):
        del document["tool_calls"][1][key]

    mended, _ = repaired(document)

    assert ("in_progress", document["tool_calls"]) == (mended["status"], mended["tool_calls"])


def test_entries_that_have_ids_of_their_own_keep_them_and_the_names_are_kept_beside() -> None:
    document = multi()
    document["messages"] = {f"{place}": one for place, one in enumerate(document["messages"])}

    mended, _ = repaired(document)

    assert multi()["messages"] == mended["messages"]
    assert document["messages"] == mended["x_harken_old_messages"]


def test_an_object_that_is_one_message_is_the_only_entry() -> None:
    document = multi()
    document["messages"] = document["messages"][0]

    assert multi()["messages"][:1] == repaired(document)[0]["messages"]


# -- times of messages -------------------------------------------------------------------------------------------------


def test_a_message_without_a_time_has_that_of_its_task_where_it_fits() -> None:
    document = multi()
    first = document["messages"][0]
    task = first["payload"]["task"]["task_id"]
    began = next(sub["started_at"] for sub in document["sub_sessions"] if sub["task"]["task_id"] == task)
    del first["timestamp"]

    mended, answer = repaired(document)

    assert answer.is_valid
    assert began == mended["messages"][0]["timestamp"]
    assert [True] == [derived for _, derived in said(answer, "messages[0].timestamp")]


def test_a_message_without_a_time_is_not_earlier_than_the_one_before() -> None:
    document = multi()
    del document["messages"][1]["timestamp"]
    document["messages"][1] |= {"payload": {}, "message_type": "feedback"}

    mended, answer = repaired(document)

    assert document["messages"][0]["timestamp"] == mended["messages"][1]["timestamp"]
    assert "not earlier than the message before" in said(answer, "messages[1].timestamp")[0][0]


def test_times_that_nobody_knows_stay_missing() -> None:
    document = multi()
    for message in document["messages"]:
        del message["timestamp"]
        message["payload"], message["message_type"] = {}, "feedback"

    mended, answer = repaired(document)

    assert not any("timestamp" in message for message in mended["messages"])
    assert not answer.is_valid


# -- reviews -----------------------------------------------------------------------------------------------------------


def reviewed(**output: Any) -> tuple[Json, Repaired]:
    document = multi()
    sub = next(sub for sub in document["sub_sessions"] if sub["agent"]["agent_type"] == "reviewer")
    sub["output"] = {key: value for key, value in {**sub["output"], **output}.items() if value != "-"}
    mended, answer = repaired(document)
    return next(s["output"] for s in mended["sub_sessions"] if s["agent"]["agent_type"] == "reviewer"), answer


@pytest.mark.parametrize(
    ("verdict", "meant"),
    [
        ("通过", "approved"),
        ("需要修改", "changes_requested"),
        ("驳回", "rejected"),
        ("Needs work", "changes_requested"),
    ],
)
def test_a_verdict_in_other_words_is_that_of_the_standard(verdict: str, meant: str) -> None:
    output, answer = reviewed(verdict=verdict)

    assert (meant, True) == (output["verdict"], answer.is_valid)


def test_findings_in_words_are_findings() -> None:
    output, answer = reviewed(
        verdict="changes_requested",
        findings=["[Critical] SQL injection in src/db.py:42", "src/clock.py is named badly: style", "It is wrong"],
    )

    told = [
        [one.get(key) for key in ("finding_id", "severity", "category", "file", "line")] for one in output["findings"]
    ]
    assert [
        ["finding-001", "critical", "security", "src/db.py", 42],
        ["finding-002", "major", "style", "src/clock.py", None],
        ["finding-003", "major", "logic", "src/clock.py", None],
    ] == told
    assert answer.is_valid
    assert {True, False} == {one.derived for one in answer.changes if ".findings[0]" in one.path}


def test_a_finding_whose_place_nobody_knows_stays_without_one() -> None:
    output, answer = reviewed(findings=["see https://example.org/a.html and src/a.py or src/b.py"])

    assert "file" not in output["findings"][0]
    assert ["finding-place"] == [one.rule for one in answer.findings if one.level == "error"]


def test_a_review_without_a_verification_is_any_agents_output() -> None:
    output, answer = reviewed(verification="-")

    assert ("generic", "approved") == (output["output_type"], output["verdict"])
    assert answer.is_valid


def test_a_repair_leaves_a_valid_review_alone() -> None:
    document = copy.deepcopy(multi())
    assert dumps(document) == repair(dumps(document), f"{document['session_id']}.json").data


# -- what stands elsewhere ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrapped", [[single()], {"session": single()}], ids=["in a list", "under a key"])
def test_a_document_that_is_the_only_thing_in_something_stands_by_itself(wrapped: Any) -> None:
    answer = repair(dumps(wrapped), f"{single()['session_id']}.json")

    assert single() == loads(answer.data)
    assert ["not-a-session"] == [change.rule for change in answer.changes]
    assert [True] == [one.repairable for one in validate_bytes(dumps(wrapped)).findings]


@pytest.mark.parametrize("other", [[single(), single()], {"a": single(), "b": 1}, {"a": {"b": 1}}, [[]], 5])
def test_what_holds_several_things_stays_as_it_is(other: Any) -> None:
    assert (dumps(other), []) == ((answer := repair(dumps(other))).data, answer.changes)


def test_a_sub_session_inside_its_call_stands_where_the_standard_has_it() -> None:
    document = multi()
    for call, sub in zip(document["tool_calls"][1:], document["sub_sessions"], strict=True):
        call["sub_session"] = {key: value for key, value in sub.items() if key != "triggered_by_call_id"}
    del document["sub_sessions"]

    mended, answer = repaired(document)

    assert multi()["tool_calls"] == mended["tool_calls"]
    by_id = {sub["sub_session_id"]: sub for sub in mended["sub_sessions"]}
    assert {sub["sub_session_id"]: sub for sub in multi()["sub_sessions"]} == by_id
    assert answer.is_valid


def test_other_names_of_the_fields_of_a_sub_session_are_known() -> None:
    document = multi()
    sub = document["sub_sessions"][0]
    sub["triggered_by"] = sub.pop("triggered_by_call_id")
    sub["start"] = sub.pop("started_at")
    sub["task"]["id"] = sub["task"].pop("task_id")
    del sub["tool_calls"], document["tool_calls"][1]["subagent_info"]

    mended, answer = repaired(document)

    told = [mended["sub_sessions"][0][key] for key in ("triggered_by_call_id", "started_at", "tool_calls")]
    assert ["tool-002", multi()["sub_sessions"][0]["started_at"], []] == told
    assert "task-001" == mended["sub_sessions"][0]["task"]["task_id"]
    assert answer.is_valid


def test_agents_of_the_summary_that_are_texts_are_counted() -> None:
    document = multi()
    document["summary"]["agents"] = ["lead", "developer", "checker"]

    mended, answer = repaired(document)

    assert ["lead", "builder", "checker"] == [row["agent_id"] for row in mended["summary"]["agents"]]
    assert answer.is_valid


def test_a_call_as_the_interface_of_a_model_has_it_is_a_call() -> None:
    document = single()
    call = document["tool_calls"][0]
    del call["tool_name"], call["input"]
    call["function"] = {"name": "Read", "arguments": '{"file_path": "src/a.py"}'}

    mended, answer = repaired(document)

    assert ("Read", {"file_path": "src/a.py"}) == (
        mended["tool_calls"][0]["tool_name"],
        mended["tool_calls"][0]["input"]["params"],
    )
    assert answer.is_valid


def test_a_time_without_a_date_is_of_the_day_on_which_the_session_began() -> None:
    document = single() | {"created_at": "2026-03-04T10:00:00+08:00", "completed_at": "2026-03-04T10:02:00+08:00"}
    document["tool_calls"] = document["tool_calls"][:1]
    document["tool_calls"][0] |= {"started_at": "10:00:05", "ended_at": "10:00:06"}

    mended, answer = repaired(document)

    call = mended["tool_calls"][0]
    assert ["2026-03-04T10:00:05+08:00", "2026-03-04T10:00:06+08:00"] == [call["started_at"], call["ended_at"]]
    assert [True] == [derived for _, derived in said(answer, "tool_calls[0].ended_at")]


def test_a_time_without_a_date_that_would_lie_before_the_session_is_nobody_knows_when() -> None:
    document = single()
    document["tool_calls"][0]["started_at"] = "09:59:59"

    assert "09:59:59" == repaired(document)[0]["tool_calls"][0]["started_at"]


def test_a_message_without_a_task_is_about_the_only_one_of_its_agent() -> None:
    document = multi()
    for message in document["messages"]:
        del message["timestamp"]
        message["payload"] = {}
    del document["sub_sessions"][0]["completed_at"]

    mended, answer = repaired(document)

    times = [f"2026-03-04T10:{clock}Z" for clock in ("00:30", "01:30", "02:00", "03:00")]
    assert times == [message["timestamp"] for message in mended["messages"]]
    assert not [one for one in answer.findings if one.path.endswith("timestamp")]


def test_a_verification_that_is_a_text_stays_in_an_output_of_any_agent() -> None:
    document = multi()
    output = document["sub_sessions"][1]["output"]
    output["verification"] = "all tests pass"

    made, answer = repaired(document)

    assert answer.is_valid
    assert {**output, "output_type": "generic", "status": "completed"} == made["sub_sessions"][1]["output"]


def test_a_sub_session_that_names_its_agent_by_fields_of_its_own_is_that_agents() -> None:
    document = multi()
    document["collaboration"]["participants"].append({"agent_id": "builder-2", "agent_type": "developer"})
    agents = [sub.pop("agent") for sub in document["sub_sessions"]]
    for sub, agent in zip(document["sub_sessions"], agents, strict=True):
        sub |= agent

    made, answer = repaired(document)

    assert answer.is_valid
    assert agents == [sub["agent"] for sub in made["sub_sessions"]]


@pytest.mark.parametrize(
    ("begun", "made"),
    [
        ("2026-03-04 09:00", "2026-03-04T10:41:00"),
        ("2026-03-04T09:00:00.5+08:00", "2026-03-04T10:41:00+08:00"),
        ("2026-03-04T09:00Z", "2026-03-04T10:41:00Z"),
    ],
)
def test_a_time_without_a_date_has_the_zone_of_the_beginning_however_that_is_written(begun: str, made: str) -> None:
    document = single() | {"created_at": begun}
    document["tool_calls"] = document["tool_calls"][:1]
    document["tool_calls"][0] |= {"started_at": "10:41", "ended_at": "10:41"}

    found, _ = repaired(document)

    assert made == found["tool_calls"][0]["started_at"]


@pytest.mark.parametrize(
    "listed",
    [
        {"developer": "builder", "reviewer": "checker"},
        {"builder": "developer", "checker": "reviewer"},
        {"developers": "builder", "reviewers": "checker"},
        {"builder": None, "checker": None},
        {"developer": None, "reviewer": None},
        {"builder": {}, "checker": {}},
        {"count": 2, "agents": ["builder", "checker"]},
        {"total": 2, "members": {"builder": None, "checker": None}},
    ],
    ids=["type to id", "id to type", "types", "ids", "types alone", "empty", "counted", "counted by id"],
)
def test_participants_by_their_types_or_ids_are_those_that_others_name(listed: Json) -> None:
    expected = multi()
    document = multi()
    document["collaboration"]["participants"] = listed

    made, answer = repaired(document)

    assert answer.is_valid
    assert expected["collaboration"]["participants"] == made["collaboration"]["participants"]
    assert expected["summary"] == made["summary"]


def test_participants_by_their_ids_have_the_type_that_others_say_or_their_role() -> None:
    document = multi()
    helper, clerk = {"role": "challenger", "model": "small"}, {"role": "writes it down"}
    document["collaboration"]["participants"] = {"builder": {"role": "writes code"}, "helper": helper, "clerk": clerk}

    made, answer = repaired(document)

    assert answer.is_valid
    kinds = {one["agent_id"]: one["agent_type"] for one in made["collaboration"]["participants"]}
    assert {"builder": "developer", "helper": "challenger", "clerk": "clerk", "checker": "reviewer"} == kinds


def test_participants_as_one_agent_are_that_agent() -> None:
    document = multi()
    document["collaboration"]["participants"] = {"agent_id": "builder", "agent_type": "developer"}

    made, answer = repaired(document)

    assert answer.is_valid
    assert multi()["collaboration"]["participants"] == made["collaboration"]["participants"]
