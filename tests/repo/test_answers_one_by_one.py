"""Requests and answers of an API that are kept one by one, as the provider gave them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harken.events import Tokens
from harken.repo import Repo
from support.contexts import memory_repo


def chat(number: int) -> dict[str, Any]:
    message = {"role": "assistant", "content": f"answer {number}"}
    usage = {"prompt_tokens": 10, "completion_tokens": number}
    return {"id": f"chatcmpl-{number}", "model": "m", "choices": [{"index": 0, "message": message}], "usage": usage}


def responses(number: int) -> dict[str, Any]:
    part = {"type": "output_text", "text": f"answer {number}"}
    item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": [part]}
    usage = {"input_tokens": 10, "output_tokens": number}
    return {"id": f"resp_{number}", "object": "response", "model": "m", "output": [item], "usage": usage}


ASKED = {"openai-chat-v1": "messages", "openai-responses-v1": "input"}
ANSWER = {"openai-chat-v1": chat, "openai-responses-v1": responses}


@pytest.fixture
def repo() -> Repo:
    return memory_repo()


def converse(repo: Repo, format: str, session: str, answers: range, parent: str | None = None) -> None:
    for number in answers:
        asked = {ASKED[format]: [{"role": "user", "content": f"question {number}"}]}
        for body in (asked, ANSWER[format](number)):
            data = json.dumps(body).encode()
            parent = repo.checkpoint(data, format=format, session_id=session, parent=parent).id


@pytest.mark.parametrize("format", ANSWER)
def test_what_each_answer_used_counts(repo: Repo, format: str) -> None:
    converse(repo, format, "mine", range(1, 4))

    spent = repo.session_costs()["mine"]

    assert (3, Tokens(input=30, output=6)) == (spent.requests, spent.tokens)


@pytest.mark.parametrize("format", ANSWER)
def test_what_the_answers_of_another_session_used_is_that_ones(repo: Repo, format: str) -> None:
    converse(repo, format, "mine", range(1, 3))
    converse(repo, format, "yours", range(3, 4), parent="mine")

    assert [3, 3] == [spent.tokens.output for spent in repo.session_costs().values()]
