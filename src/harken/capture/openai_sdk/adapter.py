"""The switch as a configuration: an adapter that makes clients of OpenAI's SDK, captured where it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harken.capture.mask import Mask
from harken.errors import NotFound
from harken.log import Session

from .wrapping import openai


@dataclass(frozen=True)
class OpenAIModelConfig:
    """How a model is asked."""

    capture_transcript: bool = False
    """Whether what is said is kept in the session."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """What each request of `ask` says besides the model and the messages: `temperature`, `tools` …"""
    mask: Mask = None


class OpenAIAdapter:
    """A model behind OpenAI's SDK; with `capture_transcript` what is said to it and heard is kept in a session."""

    def __init__(self, model: str, *, model_config: OpenAIModelConfig | None = None, client: Any = None) -> None:
        self.model = model
        self.model_config = model_config or OpenAIModelConfig()
        self._client = client
        self._captured: tuple[Session, Any] | None = None

    def client(self, session: Session) -> Any:
        """The SDK's client; a captured one where the configuration says so."""
        if self._client is None:
            try:
                from openai import OpenAI
            except ImportError:
                raise NotFound("the OpenAI SDK is not installed", hint="`pip install 'harken[openai]'`") from None
            self._client = OpenAI()
        if not self.model_config.capture_transcript:
            return self._client
        if self._captured is None or self._captured[0] is not session:
            self._captured = session, openai(self._client, session, mask=self.model_config.mask)
        return self._captured[1]

    def ask(self, messages: list[Any], *, session: Session, **parameters: Any) -> Any:
        """One chat completion, as the SDK gives it (with an asynchronous client, to be awaited)."""
        said = {**self.model_config.parameters, **parameters}
        return self.client(session).chat.completions.create(model=self.model, messages=messages, **said)
