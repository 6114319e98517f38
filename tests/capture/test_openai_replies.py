"""What OpenAI's APIs answer besides words: every kind of it is in the session, as an entry that says what it is."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from harken import Session, capture
from harken.capture import TranscriptEntry
from harken.events import Image, Metric, Prompt, TranscriptEdit
from harken.events.tally import Tally
from harken.formats import get
from support.openai_loop import captured, client_of, metadata, scripted
from support.scripted_model import Answer, Say

MODEL = "gpt-5"
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


@pytest.fixture
def session() -> Iterator[Session]:
    with Session() as session:
        yield session


def said(session: Session, source: str = "primary") -> list[tuple[str, str]]:
    return [(role, content) for role, content, *_ in captured(session, source)]


def given_on(session: Session) -> list[dict[str, Any]]:
    """What a program is given that goes on from the session."""
    log, responses = get("session-log-v2"), get("openai-responses-v1")
    context = log.context(log.write(list(session.events())).data)
    assert context == log.context(context)
    written = json.loads(responses.write(list(log.read(context))).data)
    items: list[dict[str, Any]] = written if isinstance(written, list) else written["input"]
    return items


def standing(session: Session) -> list[str]:
    """What a model is given now."""
    return [message["content"] for message in session.transcript(session.root or "")]


def user(words: Any) -> Any:
    return {"role": "user", "content": words}


def completion(*choices: Any, **more: Any) -> Answer:
    numbered = [{"index": at, "finish_reason": "stop", **choice} for at, choice in enumerate(choices)]
    named = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1_794_738_000, "model": MODEL}
    return Answer({**named, "choices": numbered, **more})


def message(words: str | None, **more: Any) -> Any:
    return {"message": {"role": "assistant", "content": words, **more}}


def response(*output: Any, **more: Any) -> Any:
    named = {"id": "resp_1", "object": "response", "created_at": 1_794_738_000, "model": MODEL, "status": "completed"}
    return {**named, "output": list(output), **more}


def words_item(words: str) -> Any:
    content = [{"type": "output_text", "text": words, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}


def chat(session: Session, answer: Any, *messages: Any, **more: Any) -> Any:
    with scripted([answer]) as (_, url), client_of(url) as client:
        options: Any = {"model": MODEL, "messages": messages or [user("hi")], **more}
        reply = capture.openai(client, session).chat.completions.create(**options)
        return list(reply) if more.get("stream") else reply


def respond(session: Session, answer: Any, given: Any = "hi", **more: Any) -> Any:
    with scripted([answer]) as (_, url), client_of(url) as client:
        return capture.openai(client, session).responses.create(model=MODEL, input=given, **more)


class TestChatCompletions:
    def test_a_refusal_says_what_it_is(self, session: Session) -> None:
        chat(session, completion(message(None, refusal="I will not.")))

        assert [("user", "hi"), ("assistant", "I will not.")] == said(session)
        assert "refusal" == metadata(session)[1]["kind"]

    def test_further_choices_are_entries_and_no_part_of_the_conversation(self, session: Session) -> None:
        chat(session, completion(message("heads"), message("tails"), message("edge")), n=3)

        assert ["hi", "heads", "tails", "edge"] == [content for _, content in said(session)]
        assert [("choice", 1), ("choice", 2)] == [(one["kind"], one["choice"]) for one in metadata(session)[2:]]
        assert ["hi", "heads"] == standing(session)

    def test_a_host_that_goes_on_with_another_choice_alters_the_conversation(self, session: Session) -> None:
        chat(session, completion(message("heads"), message("tails")), n=2)
        chat(session, Say("so be it"), user("hi"), {"role": "assistant", "content": "tails"}, user("tails it is"))

        assert ["hi", "tails", "tails it is", "so be it"] == standing(session)

    def test_choices_of_a_stream_are_told_apart(self, session: Session) -> None:
        frame = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
        pieces = [(0, "he"), (1, "ta"), (0, "ads"), (1, "ils")]
        chunks = [{**frame, "choices": [{"index": at, "delta": {"content": text}}]} for at, text in pieces]
        ends = [{**frame, "choices": [{"index": at, "delta": {}, "finish_reason": "stop"}]} for at in (0, 1)]
        chat(session, Answer([*chunks, *ends]), n=2, stream=True)

        assert ["hi", "heads", "tails"] == [content for _, content in said(session)]
        assert "partial" not in metadata(session)[1]

    @pytest.mark.parametrize(
        ("pieces", "expected"),
        [
            ([("a", "look", '{"x":'), ("", "", "1}")], [("a", "look", {"x": 1})]),
            ([("a", "look", "{}"), ("b", "read", "{}")], [("a", "look", {}), ("b", "read", {})]),
            ([("a", "look", '{"x":'), ("a", "look", "1}")], [("a", "look", {"x": 1})]),
        ],
        ids=["names are empty in later pieces", "every call has the same index", "names are said again"],
    )
    def test_calls_of_a_stream_are_what_the_server_called_them(
        self, session: Session, pieces: list[tuple[str, str, str]], expected: Any
    ) -> None:
        frame = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
        calls = (
            {"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for id, name, arguments in pieces
        )
        chunks = [{**frame, "choices": [{"index": 0, "delta": {"tool_calls": [one]}}]} for one in calls]
        end = {**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
        chat(session, Answer([*chunks, end]), stream=True)

        entries = session[TranscriptEntry].all()[1:]
        assert expected == [(one.tool_call_id, one.tool_name, one.tool_input) for one in entries]

    def test_an_error_that_comes_with_success_is_an_entry(self, session: Session) -> None:
        chat(session, Answer({"error": {"message": "no provider is free", "code": 502}}))

        assert [("user", "hi"), ("assistant", "no provider is free")] == said(session)
        assert "error" == metadata(session)[1]["kind"]

    def test_thoughts_that_stand_in_the_content_of_a_stream_are_thoughts(self, session: Session) -> None:
        """Mistral's are parts, and its words are none."""
        thoughts = [[{"type": "thinking", "thinking": [{"type": "text", "text": text}]}] for text in ("I thi", "nk.")]
        frame = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
        pieces = ["", *thoughts, "So ", "it is."]
        chunks = [{**frame, "choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
        end = {**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        chat(session, Answer([*chunks, end]), stream=True)

        assert ["hi", "I think.", "So it is."] == [content for _, content in said(session)]
        assert "thinking" == metadata(session)[1]["kind"]

    def test_fields_that_nobody_knows_are_kept(self, session: Session) -> None:
        chat(session, completion(message("yes"), citations=["a"], system_fingerprint="fp_1", service_tier="flex"))

        known = {"citations": ["a"], "system_fingerprint": "fp_1", "service_tier": "flex", "response_id": "chatcmpl-1"}
        assert known.items() <= metadata(session)[1].items()

    def test_usage_has_its_details(self, session: Session) -> None:
        usage = {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "prompt_tokens_details": {"cached_tokens": 60},
            "completion_tokens_details": {"reasoning_tokens": 5},
        }
        chat(session, completion(message("yes"), usage=usage))

        (one,) = [event for event in session.events() if isinstance(event, Metric)]
        assert (40, 60, 20, 5) == (one.input_tokens, one.cache_read_tokens, one.output_tokens, one.reasoning_tokens)
        assert ("stop", "chatcmpl-1", MODEL) == (one.stop_reason, one.api_id, one.model)

    def test_an_error_in_the_middle_of_a_stream_is_told_with_what_came(self, session: Session) -> None:
        frame = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
        chunk = {**frame, "choices": [{"index": 0, "delta": {"content": "I was sa"}}]}
        with pytest.raises(openai.APIError, match="overloaded"):
            chat(session, Answer([chunk, {"error": {"message": "overloaded"}}]), stream=True)

        assert ["hi", "I was sa", "overloaded"] == [content for _, content in said(session)]
        assert (True, {"message": "overloaded"}) == (metadata(session)[1]["partial"], metadata(session)[1]["error"])
        assert "error" == metadata(session)[2]["kind"]

    def test_a_reply_that_is_compressed_or_no_json_is_read_as_far_as_it_goes(self, session: Session) -> None:
        body = gzip.compress(json.dumps(completion(message("small")).body).encode())
        chat(session, Answer(body, {"content-encoding": "gzip"}))
        chat(session, Answer(b"<html>busy</html>", {"content-type": "text/html"}), user("and you?"))

        assert "small" == said(session)[1][1]
        assert "the reply is not JSON: <html>busy</html>" == said(session, "conversation:2")[1][1]

    def test_media_is_a_placeholder_and_its_bytes_are_in_the_event(self, session: Session) -> None:
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DOT}"}}
        sound = {"type": "input_audio", "input_audio": {"data": base64.b64encode(b"RIFF").decode(), "format": "wav"}}
        chat(session, Say("a dot, and a noise"), user([{"type": "text", "text": "What is this?"}, picture, sound]))

        assert "What is this?\n[image/png, 70 bytes]\n[audio/wav, 4 bytes]" == said(session)[0][1]
        (prompt,) = [event for event in session.events() if isinstance(event, Prompt)]
        assert [("image/png", DOT), ("audio/wav", "UklGRg==")] == [(one.media_type, one.data) for one in prompt.images]

    def test_the_same_words_about_another_file_are_another_conversation(self, tmp_path: Path) -> None:
        def asked(name: str) -> Any:
            return user([{"type": "text", "text": "Sum up"}, {"type": "file", "file": {"file_id": name}}])

        with Session(tmp_path / "a.jsonl") as session:
            chat(session, Say("of one"), asked("file-1"))
            chat(session, Say("of two"), asked("file-2"))
        with Session(tmp_path / "a.jsonl") as session:
            chat(session, Say("bye"), asked("file-2"), {"role": "assistant", "content": "of two"}, user("thanks"))

            assert ["Sum up\n[file file-1]", "of one"] == [content for _, content in said(session)]
            other = [content for _, content in said(session, "conversation:2")]
            assert ["Sum up\n[file file-2]", "of two", "thanks", "bye"] == other

    def test_a_part_is_the_same_wherever_the_host_wants_it_cached(self, session: Session) -> None:
        part = {"type": "file", "file": {"file_id": "file-1"}}
        first = [{"type": "text", "text": "Sum up"}, {**part, "cache_control": {"type": "ephemeral"}}]
        chat(session, Say("of one"), user(first))
        again = [{"type": "text", "text": "Sum up"}, part]
        chat(session, Say("bye"), user(again), {"role": "assistant", "content": "of one"}, user("thanks"))

        assert ["Sum up\n[file file-1]", "of one", "thanks", "bye"] == [content for _, content in said(session)]

    def test_a_file_that_the_provider_keeps_is_an_entry_alone(self, session: Session) -> None:
        chat(session, Say("long"), user([{"type": "file", "file": {"file_id": "file-1"}}]))

        assert [("user", "[file file-1]"), ("assistant", "long")] == said(session)

    def test_a_sound_alone_is_an_entry(self, session: Session) -> None:
        sound = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "mp3"}}
        chat(session, Say("a noise"), user([sound]))

        assert [("user", "[audio/mp3, 4 bytes]"), ("assistant", "a noise")] == said(session)

    def test_what_was_spoken_aloud_is_its_words(self, session: Session) -> None:
        audio = {"id": "audio_1", "data": "UklGRg==", "transcript": "hello there", "expires_at": 1}
        chat(session, completion(message(None, audio=audio)))

        assert ("assistant", "hello there") == said(session)[1]

    def test_secrets_are_masked_wherever_they_stand(self, session: Session, tmp_path: Path) -> None:
        key = "sk-ant-api03-" + "Zx9" * 31 + "AA"
        answer = completion(message(f"it is {key}"), message(f"or {key}"), citations=[key])
        path = tmp_path / "masked.jsonl"
        with Session(path) as own, scripted([answer]) as (_, url), client_of(url) as client:
            wrapped = capture.openai(client, own, mask=True)
            wrapped.chat.completions.create(model=MODEL, messages=[user(key)], metadata={"key": key}, n=2)

        assert key not in path.read_text()

    def test_secrets_are_masked_in_the_names_of_tools(self, tmp_path: Path) -> None:
        key = "sk-ant-api03-" + "Zx9" * 31 + "AA"
        remote = {"type": "mcp_call", "id": "mcp_1", "server_label": key, "name": "read", "arguments": "{}"}
        path = tmp_path / "masked.jsonl"
        answer = Answer(response({**remote, "output": "hello"}))
        with Session(path) as own, scripted([answer]) as (_, url), client_of(url) as client:
            capture.openai(client, own, mask=True).responses.create(model=MODEL, input="hi")

        assert key not in path.read_text()


class TestResponses:
    def test_a_request_that_names_the_reply_it_follows_says_only_what_is_new(self, session: Session) -> None:
        with scripted([Say("one")], [Say("two")]) as (_, url), client_of(url) as client:
            wrapped = capture.openai(client, session)
            first = wrapped.responses.create(model=MODEL, input="count")
            wrapped.responses.create(model=MODEL, input="go on", previous_response_id=first.id)

        assert ["count", "one", "go on", "two"] == standing(session)
        assert 4 == len(said(session))

    def test_the_reply_it_follows_may_be_in_a_session_that_was_closed(self, tmp_path: Path) -> None:
        with scripted([Say("one")], [Say("two")]) as (_, url), client_of(url) as client:
            with Session(tmp_path / "a.jsonl") as session:
                first = capture.openai(client, session).responses.create(model=MODEL, input="count")
            with Session(tmp_path / "a.jsonl") as session:
                wrapped = capture.openai(client, session)
                wrapped.responses.create(model=MODEL, input="go on", previous_response_id=first.id)

                assert ["count", "one", "go on", "two"] == standing(session)

    def test_a_reply_that_is_followed_twice_is_gone_back_to(self, session: Session) -> None:
        with scripted([Say("one")], [Say("two")], [Say("zwei")]) as (_, url), client_of(url) as client:
            wrapped = capture.openai(client, session)
            first = wrapped.responses.create(model=MODEL, input="count")
            for words in ("go on", "go on in German"):
                wrapped.responses.create(model=MODEL, input=words, previous_response_id=first.id)

        assert ["count", "one", "go on in German", "zwei"] == standing(session)
        assert 6 == len(said(session))

    def test_a_conversation_that_the_provider_keeps_is_one(self, tmp_path: Path) -> None:
        with scripted([Say("one")], [Say("two")], [Say("three")]) as (_, url), client_of(url) as client:
            with Session(tmp_path / "a.jsonl") as session:
                wrapped = capture.openai(client, session)
                for words in ("count", "go on"):
                    wrapped.responses.create(model=MODEL, input=words, conversation="conv_1")
            with Session(tmp_path / "a.jsonl") as session:
                wrapped = capture.openai(client, session)
                wrapped.responses.create(model=MODEL, input="and on", conversation={"id": "conv_1"})

                assert ["count", "one", "go on", "two", "and on", "three"] == standing(session)

    def test_reasoning_and_refusals_say_what_they_are(self, session: Session) -> None:
        thought = {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "Should I?"}],
            "encrypted_content": "gAAAA",
        }
        refusal = {**words_item(""), "content": [{"type": "refusal", "refusal": "No."}]}
        respond(session, Answer(response(thought, refusal)))

        assert ["hi", "Should I?", "No."] == [content for _, content in said(session)]
        assert ["thinking", "refusal"] == [one["kind"] for one in metadata(session)[1:]]

    def test_tools_that_the_provider_runs_are_entries_and_sent_back_are_not_said_again(self, session: Session) -> None:
        search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "rain"}}
        remote = {
            "type": "mcp_call",
            "id": "mcp_1",
            "server_label": "files",
            "name": "read",
            "arguments": '{"path": "a"}',
            "output": "hello",
        }
        strange = {"type": "telepathy_call", "id": "tp_1", "thought": "of you"}
        output = [search, remote, strange, words_item("It rains.")]
        respond(session, Answer(response(*output)))
        respond(session, Say("Bye."), [user("hi"), *output, user("thanks")])

        entries = session[TranscriptEntry].all()
        assert ["web_search", "mcp__files__read", "mcp__files__read", "telepathy"] == [
            entry.tool_name for entry in entries if entry.tool_name
        ]
        assert ["server_tool"] * 4 == [(entry.metadata or {}).get("kind") for entry in entries if entry.tool_name]
        assert ["It rains.", "thanks", "Bye."] == [content for _, content in said(session)][-3:]
        assert 8 == len(entries)

    def test_what_code_gave_back_is_not_said_again_when_the_sdk_sends_it_in_its_own_order(
        self, session: Session
    ) -> None:
        code = {"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "code": "print(1)"}
        code |= {"container_id": "cntr_1", "outputs": [{"type": "logs", "logs": "1"}]}
        with (
            scripted([Answer(response(code, words_item("One.")))], [Say("Bye.")]) as (_, url),
            client_of(url) as client,
        ):
            wrapped = capture.openai(client, session)
            output = wrapped.responses.create(model=MODEL, input="hi").output
            items: Any = [user("hi"), *output, user("thanks")]
            wrapped.responses.create(model=MODEL, input=items)

        assert ["hi", "One.", "thanks", "Bye."] == [content for _, content, name, _ in captured(session) if not name]
        assert ["code_interpreter"] * 2 == [name for _, _, name, _ in captured(session) if name]

    def test_files_that_the_provider_keeps_are_placeholders_and_told_apart(self, session: Session) -> None:
        for kind, name in (("input_file", "file-1"), ("input_file", "file-2"), ("input_image", "file-3")):
            respond(
                session, Say("ok"), [user([{"type": "input_text", "text": "Look"}, {"type": kind, "file_id": name}])]
            )

        assert ["Look\n[file file-1]", "Look\n[file file-2]", "Look\n[file file-3]"] == [
            entry.content for entry in session[TranscriptEntry].where(lambda entry: entry.role == "user")
        ]

    def test_what_a_host_approves_and_what_its_shell_answers_is_an_entry(self, session: Session) -> None:
        ask = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "read", "arguments": "{}"}
        action = {"type": "exec", "command": ["ls"], "env": {}}
        shell = {"type": "local_shell_call", "id": "ls_1", "call_id": "c1", "status": "completed", "action": action}
        answers = [
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
            {"type": "local_shell_call_output", "id": "c1", "output": "a.txt"},
        ]
        respond(session, Answer(response(ask, shell)))
        respond(session, Say("Done."), [user("hi"), ask, shell, *answers])

        assert [("user", "[mcp_approval_response]"), ("tool", "a.txt"), ("assistant", "Done.")] == said(session)[-3:]
        assert 6 == len(said(session))

    def test_a_response_that_failed_is_an_error_with_what_came(self, session: Session) -> None:
        error = {"code": "server_error", "message": "out of luck"}
        respond(session, Answer(response(words_item("I was"), status="failed", error=error)))

        assert ["hi", "I was", "out of luck"] == [content for _, content in said(session)]
        assert ("failed", error) == (metadata(session)[1]["status"], metadata(session)[1]["error"])

    def test_one_that_is_made_in_the_background_is_told_when_it_is_there(self, session: Session) -> None:
        queued, done = response(status="queued"), response(words_item("here"))
        with scripted([Answer(queued)]) as (model, url), client_of(url) as client:
            model.pages["/v1/responses/resp_1"] = [queued | {"status": "in_progress"}, done, done]
            wrapped = capture.openai(client, session)
            wrapped.responses.create(model=MODEL, input="hi", background=True)
            for _ in range(3):
                wrapped.responses.retrieve("resp_1")

        assert [("user", "hi"), ("assistant", "here")] == said(session)

    def test_one_that_nobody_asks_for_is_told_when_the_session_is_closed(self, tmp_path: Path) -> None:
        with Session(tmp_path / "a.jsonl") as session:
            respond(session, Answer(response(status="queued")), background=True)
        with Session(tmp_path / "a.jsonl", readonly=True) as session:
            assert ("queued", True) == (metadata(session)[1]["status"], metadata(session)[1]["partial"])

    def test_pictures_and_results_of_tools_are_in_their_events(self, session: Session) -> None:
        shown = {"type": "input_image", "image_url": f"data:image/png;base64,{DOT}"}
        items = [
            user([{"type": "input_text", "text": "look"}, shown]),
            {"type": "computer_call", "id": "cu_1", "call_id": "c1", "action": {"type": "screenshot"}},
            {"type": "computer_call_output", "call_id": "c1", "output": {**shown, "type": "computer_screenshot"}},
        ]
        respond(session, Say("a dot"), items)

        assert ["look\n[image/png, 70 bytes]", '{\n  "type": "screenshot"\n}', "[image/png, 70 bytes]", "a dot"] == [
            content for _, content in said(session)
        ]
        assert [Image(media_type="image/png", data=DOT)] == [
            image for event in session.events() if isinstance(event, Prompt) for image in event.images
        ]


class TestCompaction:
    # The SDK reads the user's messages of a compacted conversation as the model's, and says so when they are sent.
    @pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
    def test_the_compacted_conversation_takes_the_place_of_the_old_one(self, session: Session) -> None:
        with scripted([Say("one")], [Say("two")], [], [Say("three")]) as (_, url), client_of(url) as client:
            wrapped = capture.openai(client, session)
            items: list[Any] = []
            for words in ("count", "go on"):
                items.append(user(words))
                items += wrapped.responses.create(model=MODEL, instructions="Be brief.", input=items).output
            window: list[Any] = list(wrapped.responses.compact(model=MODEL, input=items).output)
            wrapped.responses.create(model=MODEL, instructions="Be brief.", input=[*window, user("and on")])

        assert ["Be brief.", "count", "go on", "and on", "three"] == standing(session)
        assert ["compaction"] == [one["kind"] for one in metadata(session) if "kind" in one]
        edits = [event.action for event in session.events() if isinstance(event, TranscriptEdit)]
        assert ["truncate", "restore"] == edits  # "go on" stands again
        assert 1 == Tally.of(session.events()).compactions
        assert [MODEL] * 4 == [event.model for event in session.events() if isinstance(event, Metric)]

    def test_one_within_a_reply_may_be_all_that_is_sent_again(self, session: Session) -> None:
        sealed = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAsealed"}
        respond(session, Answer(response(words_item("one"), sealed)), "count")
        respond(session, Say("two"), [sealed, user("go on")])

        assert {"primary"} == {entry.source for entry in session[TranscriptEntry].all()}
        assert ["go on", "two"] == standing(session)
        assert 1 == Tally.of(session.events()).compactions
        assert [sealed] == [one for one in given_on(session) if one["type"] == "compaction"]

    @pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
    def test_a_summary_that_only_openai_can_open_goes_along_where_it_stood(self, session: Session) -> None:
        with scripted([Say("one")], [], [Say("two")]) as (_, url), client_of(url) as client:
            wrapped = capture.openai(client, session)
            items: list[Any] = [user("count")]
            items += wrapped.responses.create(model=MODEL, input=items).output
            window: list[Any] = list(wrapped.responses.compact(model=MODEL, input=items).output)
            wrapped.responses.create(model=MODEL, input=[*window, user("and on")])

        assert ["message", "compaction", "message", "message"] == [one["type"] for one in given_on(session)]
