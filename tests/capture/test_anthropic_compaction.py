"""Server-side compaction of Anthropic's API: the summary stands for what was said before, and nothing is kept twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic, DefaultHttpxClient

from harken import Session, capture
from harken.events import Metric
from support.anthropic_loop import ASKED, SYSTEM, captured, metadata, question, scripted
from support.scripted_model import Block, Cue, Say

SUMMARY = "They greeted each other."
COMPACT: Cue = [
    Block({"type": "compaction", "content": SUMMARY, "encrypted_content": "sealed"}),
    Say("Where were we?"),
]
TURNS: list[Cue] = [[Say("Hello.")], COMPACT, [Say("Right.")], [Say("Bye.")]]


@pytest.fixture(scope="module")
def http_client() -> Iterator[Any]:
    with DefaultHttpxClient() as made:
        yield made


def ask(client: Anthropic, history: list[Any], words: str, *, stream: bool = False) -> None:
    """One turn of a host's loop."""
    history += question(words)
    options: Any = {**ASKED, "context_management": {"edits": [{"type": "compact_20260112"}]}}
    if stream:
        with client.beta.messages.stream(messages=history, betas=["compact-2026-01-12"], **options) as events:
            message: Any = events.get_final_message()
    else:
        message = client.beta.messages.create(messages=history, betas=["compact-2026-01-12"], **options)
    history.append({"role": "assistant", "content": message.content})


def said(session: Session) -> list[str]:
    return [content for _, content, *_ in captured(session)]


def stands(session: Session) -> list[str]:
    """The transcript as it is now."""
    return [message["content"] for message in session.transcript(session.root or "")]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("drop", [False, True], ids=["all is sent again", "only what follows is sent"])
class TestACompaction:
    def test_is_an_entry_and_everything_is_kept_once(self, http_client: Any, drop: bool, stream: bool) -> None:
        history: list[Any] = []
        with Session() as session, scripted(*TURNS) as (_, url):
            client = capture.anthropic(Anthropic(api_key="k", base_url=url, http_client=http_client), session)
            for words in ("Hi.", "Go on.", "There.", "Thanks."):
                ask(client, history, words, stream=stream)
                if drop and words == "Go on.":
                    del history[:-1]

            first = [SYSTEM, "Hi.", "Hello.", "Go on.", SUMMARY]
            assert [*first, "Where were we?", "There.", "Right.", "Thanks.", "Bye."] == said(session)
            assert "compaction" == metadata(session)[4]["kind"]
            assert metadata(session)[4]["response_id"].startswith("msg_")
            assert [SYSTEM, SUMMARY, "Where were we?", "There.", "Right.", "Thanks.", "Bye."] == stands(session)
            assert ["compact"] == [e.action for e in session.events() if e.kind == "transcript_edit"]

    def test_is_gone_on_with_in_a_session_that_was_closed(
        self, http_client: Any, drop: bool, stream: bool, tmp_path: Path
    ) -> None:
        history: list[Any] = []
        with scripted(*TURNS) as (_, url):
            for words in ("Hi.", "Go on.", "There.", "Thanks."):
                with Session(tmp_path / "a.jsonl") as session:
                    client = capture.anthropic(Anthropic(api_key="k", base_url=url, http_client=http_client), session)
                    ask(client, history, words, stream=stream)
                if drop and words == "Go on.":
                    del history[:-1]
        with Session(tmp_path / "a.jsonl", readonly=True) as session:
            assert 10 == len(said(session))
            assert [SYSTEM, SUMMARY, "Where were we?", "There.", "Right.", "Thanks.", "Bye."] == stands(session)


def test_a_reply_that_is_only_a_summary_is_one_entry(http_client: Any) -> None:
    history: list[Any] = []
    with Session() as session, scripted([Say("Hello.")], COMPACT[:1], [Say("Right.")]) as (_, url):
        client = capture.anthropic(Anthropic(api_key="k", base_url=url, http_client=http_client), session)
        for words in ("Hi.", "Go on.", "There."):
            ask(client, history, words)

        assert [SYSTEM, "Hi.", "Hello.", "Go on.", SUMMARY, "There.", "Right."] == said(session)
        assert [SYSTEM, SUMMARY, "There.", "Right."] == stands(session)


def test_a_compaction_that_failed_folds_nothing(http_client: Any) -> None:
    history: list[Any] = []
    failed: Cue = [Block({"type": "compaction", "content": None}), Say("Well.")]
    with Session() as session, scripted([Say("Hello.")], failed, [Say("Right.")]) as (_, url):
        client = capture.anthropic(Anthropic(api_key="k", base_url=url, http_client=http_client), session)
        for words in ("Hi.", "Go on.", "There."):
            ask(client, history, words)

        kinds = [about.get("kind") for about in metadata(session)]
        assert [None, None, None, None, "compaction", None, None, None] == kinds
        assert not [event for event in session.events() if event.kind == "transcript_edit"]


def test_what_the_compaction_itself_used_is_counted_beside_the_message(http_client: Any) -> None:
    compaction = {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500}
    message = {"type": "message", "input_tokens": 23_000, "output_tokens": 1_000}
    with Session() as session, scripted(COMPACT) as (model, url):
        model.usage = {"input_tokens": 23_000, "output_tokens": 1_000, "iterations": [compaction, message]}
        ask(capture.anthropic(Anthropic(api_key="k", base_url=url, http_client=http_client), session), [], "Hi.")

        metrics = [event for event in session.events() if isinstance(event, Metric)]
        assert [(23_000, 1_000), (180_000, 3_500)] == [(one.input_tokens, one.output_tokens) for one in metrics]
        assert 2 == len({one.request_key for one in metrics})
