"""How a model is asked, apart from what it is asked: temperature, seed, the form of the answer and the rest.

Options are logged with the agent and come back with it. Keys are never among them: they come from the environment. An
address from the log is not taken for granted, since keys are sent there: it must lie on this machine, or somebody in
this program must have named it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from harken.errors import BadRequest, ModelFailed

from .schemas import schema_in, wrapped
from .typed import hold, whole

if TYPE_CHECKING:
    from collections.abc import Collection

OPTIONS = "options"
"""The name of the setting: the key in `attributes`, and the subtype of the notice that changes it."""
_SECRET = frozenset({"api_key", "api_base", "base_url", "headers", "extra_headers", "default_headers"})
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})


class ModelOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the model of an agent is asked; what is left out is the provider's to choose."""

    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    """How long an answer may be."""
    stop: str | tuple[str, ...] = ()
    """Words at which the model stops."""
    response_format: Any = None
    """The form of the answer: a type (msgspec, dataclass, pydantic), a JSON schema, or the provider's own object."""
    tries: int = 3
    """How many answers in a turn may not fit the form before the turn fails."""
    api_base: str | None = None
    """Where the model is asked, where that is not the provider's own address."""
    timeout: float | None = None
    """After how many seconds a request is given up, and made again."""
    fallbacks: tuple[Any, ...] = ()
    """Models that are asked in this order where the agent's own fails for good; names, or models themselves."""
    extra: dict[str, Any] = {}
    """Whatever else the provider takes, handed on as it is; it is logged, so no keys."""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "response_format", wrapped(self.response_format))
        msgspec.structs.force_setattr(self, "stop", (self.stop,) if isinstance(self.stop, str) else tuple(self.stop))
        hold(self)
        if self.tries < 1:
            raise BadRequest(f"at least one answer is tried, not {self.tries}", hint="such as tries=3")
        if secret := sorted(_SECRET & self.extra.keys()):
            raise BadRequest(
                f"{secret[0]} is no option, since options are logged",
                hint="keys come from the environment, an address is api_base=…",
            )

    @property
    def schema(self) -> dict[str, Any] | None:
        """The schema that an answer has to fit, where there is one."""
        return schema_in(self.response_format)

    def below(self) -> ModelOptions:
        """The same for an agent below: it is not the one whose answer has a form."""
        return msgspec.structs.replace(self, response_format=None, tries=3)

    def for_hook(self, *, same_model: bool) -> ModelOptions:
        """What of it holds for a hook that watches the agent: that it is answered at all, not how."""
        api_base = self.api_base if same_model else None
        return ModelOptions(timeout=self.timeout, fallbacks=self.fallbacks, api_base=api_base)

    def for_provider(self) -> dict[str, Any]:
        """What a provider is told, by the names that LiteLLM gives it."""
        found = {name: getattr(self, name) for name in _TOLD if getattr(self, name) is not None}
        if self.stop:
            found["stop"] = list(self.stop)
        return self.extra | found


_TOLD = ("temperature", "top_p", "seed", "max_tokens", "response_format", "api_base", "timeout")
PLAIN = ModelOptions()


def read_options(value: object) -> ModelOptions | None:
    """Options from a log, which anybody may have written; None where they are none."""
    if not isinstance(value, dict):
        return None
    value = {name: whole(one) for name, one in value.items()}
    extra = value.get("extra")
    if isinstance(extra, dict):
        value = value | {"extra": {key: one for key, one in extra.items() if key not in _SECRET}}
    try:
        return msgspec.convert(value, ModelOptions)
    except (msgspec.ValidationError, BadRequest, RecursionError):
        return None


def check_address(options: ModelOptions, trusted: Collection[str]) -> None:
    """Refuse to send keys to an address that only the log names."""
    address = options.api_base
    if address is None or address in trusted:
        return
    try:
        host = urlsplit(address).hostname
    except ValueError:
        host = None
    if host not in _HERE:
        raise ModelFailed(
            f"the log says that the model is asked at {address!r:.200}, and nobody here has said so",
            hint="where keys may be sent there, pass ModelOptions(api_base=…) again: agent.options = …",
        )
