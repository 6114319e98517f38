"""One question to a model, outside any session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from harken.errors import ModelFailed

from . import open_model
from .base import Model, ModelError, Request, Retries


def ask(
    model: str | Model, question: str, *, purpose: str, turn: int = 0, wait: Callable[[float], bool] | None = None
) -> str:
    """What the model, or that of the name, answers; `ModelFailed` where it answers nothing. `purpose` names the
    question in a script, `turn` says how many came before it. One that fails in passing (it was asked too often, the
    service is down) is asked again where somebody waits: `wait` takes seconds, and says whether to give up."""
    asked = open_model(model) if isinstance(model, str) else model
    request = Request(messages=[{"role": "user", "content": question}], path=(purpose,), turn=turn)
    retries = Retries()
    pauses = retries.pauses()
    while True:
        try:
            reply = asyncio.run(asked.complete(request))
            break
        except ModelError as problem:
            pause = retries.pause_after(next(pauses, None), problem)
            if pause is None or wait is None or wait(pause):
                hint = "try again, or another model"
                raise ModelFailed(f"{asked.name} did not answer: {problem}", hint=hint) from None
    if not (reply.content or "").strip():
        raise ModelFailed(f"{asked.name} gave an empty answer", hint="try again, or another model")
    return str(reply.content)
