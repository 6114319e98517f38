"""One question to a model, outside any session."""

from __future__ import annotations

import asyncio

from harken.errors import ModelFailed

from . import open_model
from .base import Model, ModelError, Request


def ask(model: str | Model, question: str, *, purpose: str, turn: int = 0) -> str:
    """What the model, or that of the name, answers; `ModelFailed` where it answers nothing. `purpose` names the
    question in a script, `turn` says how many came before it."""
    asked = open_model(model) if isinstance(model, str) else model
    request = Request(messages=[{"role": "user", "content": question}], path=(purpose,), turn=turn)
    try:
        reply = asyncio.run(asked.complete(request))
    except ModelError as problem:
        raise ModelFailed(f"{asked.name} did not answer: {problem}", hint="try again, or another model") from None
    if not (reply.content or "").strip():
        raise ModelFailed(f"{asked.name} gave an empty answer", hint="try again, or another model")
    return str(reply.content)
