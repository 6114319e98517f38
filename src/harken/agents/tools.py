"""Tools from plain Python functions: the signature is the schema, the docstring is the description.

A parameter annotated `Call` is not part of the schema: it receives the running call, which is all a tool needs to
speak to other agents. Arguments come from a model and are checked against the signature before the function runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import threading
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from harken.errors import BadRequest, HarkenError
from harken.events import Image
from harken.log import LoggedString, Session

from .entries import Asker, Window
from .schemas import misfit, parsed
from .threads import in_thread, in_thread_unless

if TYPE_CHECKING:
    from .agent import Agent

ToolFunction = Callable[..., Any]
ANOTHER_LOOK = 0.01
"""After how many seconds somebody who waits for another thread looks again."""


class Call:
    """A running tool call: who makes it, in which session, and by which message."""

    def __init__(
        self, agent: Agent, message_id: str, tool_call_id: str, name: str, *, place: int = 0, among: int = 1
    ) -> None:
        self.agent = agent
        self.session: Session = agent.session
        self.message_id = message_id
        """The assistant's message that holds the call: the `cause` of what the tool brings about."""
        self.tool_call_id = tool_call_id
        self.name = name
        self.place = place
        """Which of the calls of its message it is, from 0."""
        self.among = among
        """How many calls its message has."""
        self.window = Window()
        """What this call had done before a crash; empty for one that has just begun."""

    @property
    def asker(self) -> Asker:
        """As what it asks for things: by its message alone, unless that has several calls."""
        return Asker(self.message_id, self.tool_call_id if self.among > 1 else "")

    def write(self, text: str) -> LoggedString:
        """Put text for others into the log once, caused by this call; deliver it to as many as you like."""
        message_id, call_id = self.asker
        piece = self.session.log_piece_of_text(self.agent.agent_id, text, message_id, call_id=call_id or None)
        return LoggedString(text, piece, self.session.path)

    async def ask(self, text: str, choices: Sequence[str] = (), *, key: str = "") -> str:
        """Ask a person. `Waiting` where nobody has answered yet: let it pass, the turn stops and can be resumed, and
        this call is then run again from its beginning. `key` tells apart questions with the same words."""
        from .questions import ask

        return ask(self.agent, text, choices, about=self.message_id, call_id=self.tool_call_id, key=key)

    async def deliver(self, text: str, to: Iterable[Agent], *, prefix: str = "") -> None:
        """Let agents hear a text, through the hooks; `prefix` is put before what each of them hears."""
        logged = text if isinstance(text, LoggedString) and text.message_id else self.write(text)
        await self.agent.deliver(logged, to, prefix=prefix)


_current: ContextVar[Call | None] = ContextVar("harken_call", default=None)


def current_call() -> Call | None:
    """The call that is running, for code that was not handed it."""
    return _current.get()


@contextlib.contextmanager
def calling(call: Call) -> Iterator[None]:
    """Make this the running call."""
    token = _current.set(call)
    try:
        yield
    finally:
        _current.reset(token)


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's result with its origin: the same content as one message, or brought about by several."""

    content: str
    substance: str | None = None
    cause: tuple[str, ...] | None = None
    is_error: bool = False
    images: tuple[Image, ...] = ()
    """Pictures that the model is shown with the text."""

    def __post_init__(self) -> None:
        if not isinstance(self.content, str) or not isinstance(self.substance, str | None):
            raise BadRequest(
                "an Answer is text, and its substance a message id",
                hint="Answer(content=…) takes a str; a tool may return any other value as it is",
            )
        if not isinstance(self.images, tuple) or not all(isinstance(image, Image) for image in self.images):
            raise BadRequest(
                "the images of an Answer are a tuple of Image",
                hint='Answer(content="…", images=(Image(media_type="image/png", data=BASE64),))',
            )


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A function an agent may call."""

    name: str
    description: str
    function: ToolFunction
    arguments: type[msgspec.Struct] = msgspec.Struct
    """A value type with the parameters as fields: the schema comes from it, and arguments are checked by it."""
    given: dict[str, Any] | None = None
    """The schema, where it was given as one; then arguments are checked by it."""
    checked: dict[str, Any] | None = None
    """What they are checked by in its place, where it comes from somebody who is not trusted."""
    model: Any = None
    """The type of the one value that the function takes, where the schema came from it."""
    call_parameter: str | None = None
    redo: bool = False
    """Whether it may be run again where a crash left it open: it only looks, or doing it twice is doing it once."""
    alone: bool = False
    """Whether it never runs beside another call of its message."""
    thread: bool = False
    """Whether it runs in a thread of its own, so that others go on meanwhile."""

    def schema(self) -> dict[str, Any]:
        """The tool as providers take it."""
        shown = parameters(self.arguments) if self.given is None else self.given
        function = {"name": self.name, "description": self.description, "parameters": shown}
        return {"type": "function", "function": function}

    def bind(self, text: str) -> dict[str, Any]:
        """The arguments a model wrote, checked; `BadRequest` says what is wrong with them."""
        kind: Any = self.arguments if self.given is None else dict[str, Any]
        try:
            value = msgspec.json.decode(text.encode() if text.strip() else b"{}", type=kind)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as problem:
            raise self._unfit(str(problem)) from None
        if self.given is None:
            return {field: getattr(value, field) for field in self.arguments.__struct_fields__}
        try:
            wrong = misfit(value, self.given if self.checked is None else self.checked)
            if wrong is None and self.model is not None:
                parsed(text, self.model)
        except (BadRequest, RecursionError) as problem:
            wrong = str(problem)
        if wrong is not None:
            raise self._unfit(wrong)
        return dict(value)

    def _unfit(self, why: str) -> BadRequest:
        return BadRequest(
            f"the arguments of {self.name} do not fit: {why}", hint="look at the tool's parameters, then call it again"
        )

    async def run(self, arguments: dict[str, Any], call: Call) -> Any:
        """Run the function, and wait for it where it is a coroutine."""
        extra = {self.call_parameter: call} if self.call_parameter else {}
        function = self.function
        if self.model is not None:  # the one value it takes, by place
            function, arguments = functools.partial(function, parsed(as_text(arguments), self.model)), {}
        if self.thread:
            result = await in_thread(function, arguments)
        else:
            result = function(**arguments, **extra)
        return await result if inspect.isawaitable(result) else result


def tool(*, name: str | None = None, redo: bool = False, alone: bool = False, thread: bool | None = None) -> Any:
    """A decorator: the function as a tool, with what `make_tool` would be told."""
    return lambda function: make_tool(function, name=name, redo=redo, alone=alone, thread=thread)


def make_tool(
    function: ToolFunction | Tool,
    *,
    name: str | None = None,
    redo: bool = False,
    alone: bool = False,
    thread: bool | None = None,
) -> Tool:
    """The tool a function stands for.

    `redo` says that it may be run again where a crash left it open, `alone` that it never runs beside another call. A
    plain function that does not take the running `Call` has a thread of its own, unless `thread` says otherwise.
    """
    if isinstance(function, Tool):
        return function
    called = name or str(getattr(function, "__name__", ""))
    if not called.isidentifier():
        raise BadRequest(f"a tool needs a name, and {called!r} is none", hint="pass a named function")
    fields: list[Any] = []
    call_parameter = None
    hints = _hints(function)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY}:
            raise BadRequest(
                f"the tool {called} has a parameter {parameter} that no schema can describe",
                hint="give it a type that JSON has: str, int, float, bool, list, dict",
            )
        kind = hints.get(parameter.name, Any)
        if kind is Call:
            call_parameter = parameter.name
        else:
            fields.append(_field(parameter, kind))
    arguments = msgspec.defstruct(called, fields, kw_only=True, frozen=True, forbid_unknown_fields=True)
    try:
        parameters(arguments)
    except TypeError as problem:
        raise BadRequest(
            f"the tool {called} has a parameter without a schema: {problem}",
            hint="give it a type that JSON has: str, int, float, bool, list, dict",
        ) from None
    return Tool(
        name=called,
        description=inspect.getdoc(function) or "",
        function=function,
        arguments=arguments,
        call_parameter=call_parameter,
        redo=redo,
        alone=alone,
        thread=in_thread_unless(called, thread, function, call_parameter),
    )


def call_parameter_of(function: ToolFunction) -> str | None:
    """The parameter that takes the running call, if there is one."""
    return next((name for name, kind in _hints(function).items() if kind is Call and name != "return"), None)


class Toolset(msgspec.Struct, frozen=True, kw_only=True):
    """Tools that come together and are known only when they are first needed, such as those of an MCP server."""

    name: str

    @property
    def key(self) -> str:
        """What stands for all of them among the names of tools, in the log too; no tool can be called so."""
        return f"{self.name}__*"


Given = ToolFunction | Tool | Toolset
"""What may be passed as a tool."""


def by_name(tools: Iterable[Given]) -> dict[str, Tool | Toolset]:
    """The tools as given, by name; a model can tell them apart by nothing else, so no two may share one."""
    found: dict[str, Tool | Toolset] = {}
    for given in tools:
        one = given if isinstance(given, Toolset) else make_tool(given)
        name = one.key if isinstance(one, Toolset) else one.name
        if name in found:
            what = "sets of tools" if isinstance(one, Toolset) else "tools"
            raise BadRequest(
                f"two {what} are called {one.name!r}", hint="give each a name of its own: make_tool(name=…)"
            )
        found[name] = one
    return found


def parameters(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON schema of the arguments, without the wrapping that names the type."""
    (schema,), components = msgspec.json.schema_components([arguments], ref_template="#/$defs/{name}")
    found: dict[str, Any] = components.pop(schema["$ref"].rsplit("/", 1)[1])
    found.pop("title", None)
    if components:
        found["$defs"] = components
    return found


def as_text(value: Any) -> str:
    """What a tool returned, as the text a model reads."""
    if value is None:
        return "Done."
    if not isinstance(value, (dict, list, tuple, set, frozenset, int, float, msgspec.Struct)):
        return str(value)
    try:
        return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, ValueError, RecursionError):
        return str(value)


def describe(problem: BaseException) -> str:
    """What went wrong in somebody else's code, in words; an exception may fail even at that."""
    kind = type(problem).__name__
    try:
        said = str(problem)
    except Exception:  # noqa: BLE001  its `__str__` is somebody else's code too
        return f"{kind} (which could not be put into words)"
    if isinstance(problem, HarkenError):
        return said
    return f"{kind}: {said}" if said else kind


def _plain(value: Any) -> Any:
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    return msgspec.to_builtins(value) if isinstance(value, msgspec.Struct) else str(value)


def _field(parameter: inspect.Parameter, kind: Any) -> tuple[Any, ...]:
    if parameter.default is parameter.empty:
        return (parameter.name, kind)
    default = parameter.default
    if isinstance(default, (list, dict, set)):
        return (parameter.name, kind, msgspec.field(default_factory=default.copy))
    return (parameter.name, kind, default)


def _hints(function: ToolFunction) -> dict[str, Any]:
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError):
        # Annotations of names that only exist inside another function; `Call` is the one we must not miss.
        hints = {
            name: Call
            if str(kind).rsplit(".", 1)[-1].strip("'\"") == "Call"
            else Any
            if isinstance(kind, str)
            else kind
            for name, kind in getattr(function, "__annotations__", {}).items()
        }
    return {name: _described(kind) for name, kind in hints.items()}


def _described(kind: Any) -> Any:
    """`Annotated[str, "what it is for"]` is a description."""
    if typing.get_origin(kind) is not typing.Annotated:
        return kind
    base, *extras = typing.get_args(kind)
    for extra in extras:
        meta = msgspec.Meta(description=extra) if isinstance(extra, str) else extra
        if isinstance(meta, msgspec.Meta):
            base = typing.Annotated[base, meta]
    return base


class LoopLock:
    """One at a time. Within an event loop in the order of asking; who asks in another thread waits until the loop that
    holds it is through. Nobody waits for a loop that has ended, as when each turn is run by itself."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = asyncio.Lock()
        self._users = 0
        """How many hold the lock or wait for it in the loop it belongs to."""

    def _enter(self) -> asyncio.Lock | None:
        """The lock of the running loop, with one user more; None while another loop needs it."""
        loop = asyncio.get_running_loop()
        with self._guard:
            if self._loop is not loop:
                if self._loop is not None and self._users and self._loop.is_running():
                    return None
                self._loop, self._lock, self._users = loop, asyncio.Lock(), 0
            self._users += 1
            return self._lock

    def _leave(self) -> bool:
        """Whether the lock was still that of the running loop."""
        with self._guard:
            ours = self._loop is asyncio.get_running_loop()
            self._users -= ours
            return ours

    async def __aenter__(self) -> None:
        while (lock := self._enter()) is None:
            await asyncio.sleep(ANOTHER_LOOK)
        try:
            await lock.acquire()
        except BaseException:
            self._leave()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lock = self._lock
        if self._leave():
            lock.release()
