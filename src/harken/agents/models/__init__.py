"""Language models by name: `demo`, `scripted:FILE`, `replay:LOG`, and whatever LiteLLM knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from harken.errors import BadRequest
from harken.events import Tokens

from .base import (
    Gauge,
    Message,
    Model,
    ModelError,
    Reply,
    Request,
    Retries,
    Script,
    ScriptedModel,
    Streamed,
    StreamingModel,
    Usage,
    checked,
    load_script,
    tool_call,
)
from .demo import DEMO
from .lite import LiteLLMModel
from .replay import ReplayModel, load_recording

DEFAULT_MODEL = "demo"
"""Needs no key and no network, and says that it is only a script."""


Openers = Mapping[str, Callable[[str], Model]]
"""Kinds of models that somebody else brings along: by what stands before the colon, from what stands behind it."""
OPENERS = "models"
"""The extension of a session that has them."""


def open_model(name: str, *, near: Path | None = None, openers: Openers | None = None) -> Model:
    """The model of this name. A file that is not found from here is looked for in the folder `near` as well."""
    kind, colon, rest = name.partition(":")
    if name == DEFAULT_MODEL:
        return ScriptedModel(DEMO, name=DEFAULT_MODEL)
    if colon and openers and kind in openers:
        return openers[kind](rest)
    if colon and kind == "runtime":
        raise BadRequest(
            f"{name} is started for a session that a store keeps", hint="open it with repo.session(path, runtimes=…)"
        )
    if colon and kind == "scripted":
        return load_script(_locate(rest, near), name=name)
    if colon and kind == "replay":
        return load_recording(_locate(rest, near), name=name)
    if not name or "\n" in name:
        raise BadRequest("a model needs a name", hint="such as anthropic/claude-sonnet-4-5, or scripted:FILE")
    return LiteLLMModel(name)


def _locate(text: str, near: Path | None) -> Path:
    path = Path(text)
    if near is not None and not path.is_absolute() and not path.exists() and (near / path).exists():
        return near / path
    return path


__all__ = [
    "DEFAULT_MODEL",
    "OPENERS",
    "Gauge",
    "LiteLLMModel",
    "Message",
    "Model",
    "ModelError",
    "ReplayModel",
    "Reply",
    "Request",
    "Retries",
    "Script",
    "ScriptedModel",
    "Streamed",
    "StreamingModel",
    "Tokens",
    "Usage",
    "checked",
    "load_recording",
    "open_model",
    "tool_call",
]
