"""`harken chat`: a session with agents at the terminal, kept from the first word."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harken import clock
from harken.errors import BadRequest, HarkenError, ModelFailed, NotFound, Waiting

from . import completing, ui
from .options import FILE, REF

if TYPE_CHECKING:
    import harken
    from harken.api.chat import ChatStart, OpenChat, Streamed
    from harken.repo import Repo

RECALLED = 6
"""How many messages of a session that is resumed are shown."""
HELP = """\
/agents            who is here, and who was
/perspective NAME  what an agent heard, did and said
/dialog A B …      what agents said to each other; without names, everybody
/compact [TEXT]    fold the oldest turns into a summary: TEXT, or what the model makes of them
/questions         what agents ask, and nobody has answered
/answer [N] TEXT   answer a question (by its number in that list, where there were several), and go on
/stop              give up a turn that failed half-way, instead of going on with it
/help              this list
/quit              leave; the session is kept (so does Ctrl-D)
Ctrl-C stops the turn that is running. Anything else is said to the root agent."""


@click.command("chat")
@click.option(
    "--resume", "resume", type=FILE, metavar="FILE", shell_complete=completing.files, help="Go on with a session"
)
@click.option(
    "--from",
    "start",
    metavar="REF",
    type=REF,
    shell_complete=completing.refs,
    help="Begin with the conversation at this commit, session, branch or tag, of any runtime",
)
@click.option("--model", metavar="M", help="A model LiteLLM knows, scripted:FILE, replay:LOG or demo (the default)")
@click.option(
    "--file", "file", type=FILE, metavar="F", shell_complete=completing.files, help="Where to keep a new session"
)
@click.option("--system-prompt", metavar="TEXT", help="Who the root agent is")
@click.option("--temperature", type=click.FloatRange(min=0), metavar="T", help="How freely the model chooses its words")
@click.option("--seed", type=int, metavar="N", help="What the model's choices start from")
@click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="How long an answer may be")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="S", help="Ask again after S seconds")
@click.option("--fallback", "fallbacks", multiple=True, metavar="M", help="Ask this model where the other one fails")
@click.option(
    "--limit-cost", "limit_cost_usd", type=click.FloatRange(min=0), metavar="USD", help="Stop when so much is spent"
)
@click.option("--limit-tokens", type=click.IntRange(min=0), metavar="N", help="Stop when so many tokens are used")
@click.option("--limit-steps", type=click.IntRange(min=0), metavar="N", help="Stop after so many messages of models")
@click.option("--limit-seconds", type=click.FloatRange(min=0), metavar="S", help="Stop when models worked so long")
@click.option("--limit-depth", type=click.IntRange(min=0), metavar="N", help="How many agents deep agents make agents")
@click.pass_context
def chat_command(
    ctx: click.Context,
    /,
    resume: str | None,
    start: str | None,
    model: str | None,
    file: str | None,
    system_prompt: str | None,
    **settings: Any,
) -> int:
    """Talk with agents in a session that is kept

    What you type is said to the root agent, which may make other agents and let them talk. Everything is in the log
    before it is shown, so a chat that was killed is resumed where it stopped. A new chat writes
    session_YYYYMMDD_HHMMSS.jsonl in the current folder. Where a store is named (--store or HARKEN_STORE), what each
    agent knows is checkpointed there as it speaks. `/help` lists what can be typed.

        harken chat --model scripted:examples/cafe.toml

    With --from the agent knows what was said up to that commit, in Claude Code, in Codex or here, and goes on from it
    in a session of its own; the original stays as it is.

        harken chat --from ctx-1a2b3c4d --model anthropic/claude-sonnet-4-5

    How the model is asked and how much the session may use is kept with it. With --resume, what is given takes the
    place of what was set, and the rest stays: so a session that has reached a limit goes on.

        harken chat --temperature 0 --timeout 60 --limit-cost 2
        harken chat --resume session_20260102_030405.jsonl --limit-cost 5
    """
    from harken.api.chat import ChatRequest, OpenChat

    if resume is not None and start is not None:
        raise click.UsageError("--resume goes on with a log; --from begins a new one.")
    if resume is not None and file is not None:
        raise click.UsageError("--resume goes on in the file it names; --file is for a new session.")
    # LiteLLM fetches a list of prices while it is imported, and offline waits for it; it brings one along.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    path = resume or file or str(_fresh())
    given = {name: value for name, value in settings.items() if value not in (None, ())}
    request = ChatRequest(
        file=path,
        resume=resume is not None,
        ref=start or "",
        model=model,
        system_prompt=system_prompt,
        limits={name.removeprefix("limit_"): value for name, value in given.items() if name.startswith("limit_")},
        options={name: value for name, value in given.items() if not name.startswith("limit_")},
    )
    shown = Showing()
    with OpenChat(_store(ctx, start), request, warn=ui.warn, stream=shown) as opened:
        _introduce(opened.start(), start)
        _recall(opened)
        failed = Chat(opened, shown).run()
    named = f"'{path}'" if " " in path else path
    ui.note(f"the session is kept; resume it with: harken chat --resume {named}")
    return 1 if failed and not sys.stdin.isatty() else 0


def _store(ctx: click.Context, start: str | None) -> Repo | None:
    """The store, where one is named; what a session starts from has to be in one."""
    from .config import open_at, store_of

    location = store_of(ctx)
    if not location and start is None:
        return None
    repo = open_at(location, create=start is None)
    ctx.call_on_close(repo.close)
    return repo


def _introduce(begun: ChatStart, ref: str | None) -> None:
    """Say what is worth knowing before the first word."""
    if ref is not None:
        ui.note(f"begins with {ui.count(begun.messages, 'message')} of {ref}")
    for loss in begun.losses:
        ui.note(f"left out: {loss.count} × {loss.what} ({loss.why})")
    if begun.language_model == "demo":
        ui.note("the model is `demo`: a small built-in script, not a language model; --model names another")
    if begun.missing_hooks:
        names = ", ".join(begun.missing_hooks)
        ui.warn(f"this session was watched by functions of the program that began it ({names});")
        ui.warn("they are not here, so what they would have refused or changed is let through")


def _recall(opened: OpenChat) -> None:
    """Show the end of what was said before, and what was being said when it broke off."""
    said = [entry for entry in opened.root.transcript if _is_said(entry)]
    if len(said) > RECALLED:
        file = opened.session.path
        ui.note(f"{ui.count(len(said) - RECALLED, 'earlier message')}; `harken view dialog {file}` shows all")
    for entry in said[-RECALLED:]:
        who = "you> " if entry["role"] == "user" else ""
        ui.block(who + str(entry["content"]), stderr=True)
    if partial := opened.root.partial:
        ui.note("partial, it broke off here:")
        ui.block(partial, stderr=True)


def _is_said(entry: dict[str, object]) -> bool:
    """Whether a person said it, or the agent to a person."""
    if entry.get("role") not in ("user", "assistant") or not entry.get("content"):
        return False
    return entry.get("source") != "injected" and not entry.get("tool_calls")


class Showing:
    """Shows what the root agent's model says while it says it, and what happens to the models of all."""

    def __init__(self) -> None:
        self.whole: str | None = None
        """The last message that was shown to its end."""
        self._begun = False

    def __call__(self, agent: harken.Agent, piece: Streamed) -> None:
        if piece.kind == "failed":
            self.end()
            again = "it is not asked again" if piece.pause is None else f"asked again in {piece.pause:g} s"
            ui.note(f"  ({agent.label}: the model failed, {again}: {piece.text})")
        elif piece.kind == "fallback":
            ui.note(f"  ({agent.label}: {piece.text} is asked in its place)")
        elif piece.kind == "call":
            self.end()
            ui.note(f"  ({agent.label} uses {piece.text})")
        elif agent.role == "root" and piece.kind == "text":
            ui.words(piece.text)
            self._begun = True
        elif agent.role == "root" and piece.kind == "reply":
            self.whole = piece.text if self._begun else None
            self.end()

    def end(self) -> None:
        """End the line that was begun."""
        if self._begun:
            ui.words("\n")
            self._begun = False


def _fresh() -> Path:
    """A name for a new session, in the current folder."""
    stem = clock.to_datetime(clock.now()).astimezone().strftime("session_%Y%m%d_%H%M%S")
    names = (f"{stem}{suffix}.jsonl" for suffix in ("", *(f"_{n}" for n in range(2, 1000))))
    return next(Path(name) for name in names if not Path(name).exists())


class Chat:
    """The loop: read a line, let the root agent answer or run a command."""

    def __init__(self, opened: OpenChat, showing: Showing) -> None:
        self._say_to_root = opened.say
        self._showing = showing
        self.root = opened.root
        self.session = opened.session
        self.failed = False
        self._numbers: dict[str, int] = {}
        """By which number each question is answered, as long as any is open."""
        self._commands: dict[str, Callable[[list[str]], None]] = {
            "/agents": self._agents,
            "/perspective": self._perspective,
            "/dialog": self._dialog,
            "/compact": self._compact,
            "/questions": lambda _: self._questions(),
            "/answer": self._answer_question,
            "/stop": lambda _: self._stop(),
            "/help": lambda _: ui.block(HELP),
        }
        self.session.observers.append(self._overhear)

    def run(self) -> bool:
        """Until the input ends or somebody quits; whether a turn has failed."""
        if self.session.open_questions():
            self._questions()
        elif self.root.is_pending:
            ui.note("the last turn was not finished; going on with it (Ctrl-C stops it)")
            self._turn()
        for line in self._lines():
            words = line.split()
            if not words:
                continue
            if words[0] == "/quit":
                break
            if words[0].startswith("/"):
                self._command(words)
            elif self.root.is_pending and self.session.open_questions():
                ui.note("that was not said: an agent waits for an answer (/answer TEXT, or /stop to give up the turn)")
                self._questions()
            else:
                self._turn(line)
        return self.failed

    def _lines(self) -> Iterator[str]:
        if not sys.stdin.isatty():
            yield from (line.rstrip("\n") for line in sys.stdin)
            return
        self._remember()
        ui.note("type /help for what can be typed")
        while True:
            try:
                yield input("you> ")
            except KeyboardInterrupt:
                ui.note("")
                ui.note("/quit or Ctrl-D leaves")
            except EOFError:
                ui.note("")
                return

    def _remember(self) -> None:
        """Editing and history; what was said in a resumed session can be called up again."""
        with contextlib.suppress(ImportError):
            import readline

            for entry in self.root.transcript:
                if entry.get("role") == "user" and entry.get("source") != "injected":
                    readline.add_history(ui.safe(str(entry.get("content") or "")).replace("\n", " "))

    # -- a turn ---

    def _turn(self, text: str | None = None) -> None:
        """Say something, or go on with what was begun, until the root agent has answered or somebody stops it."""
        self._showing.whole = None
        try:
            reply = asyncio.run(self._answer(text))
        except (KeyboardInterrupt, asyncio.CancelledError):
            self._showing.end()
            self._stop()
            ui.note("stopped; the session is kept")
        except Waiting as problem:
            self._showing.end()
            if self.session.open_questions():
                self._questions()
            else:
                ui.failure(problem)
        except HarkenError as problem:
            self._showing.end()
            self.failed = True
            ui.failure(problem)
        else:
            if reply is not None and reply != self._showing.whole:
                ui.block(reply)
                sys.stdout.flush()

    async def _answer(self, text: str | None) -> str | None:
        # Ctrl-C must cancel the turn where it waits, and never strike in the middle of writing the log. A loop without
        # signals (on Windows), or one outside the main thread, has no such handler: Python's own stands, as it did.
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        with contextlib.suppress(NotImplementedError, RuntimeError):
            loop.add_signal_handler(signal.SIGINT, task.cancel)
        try:
            return (await self._say_to_root(text)).reply
        finally:
            with contextlib.suppress(NotImplementedError, RuntimeError):
                loop.remove_signal_handler(signal.SIGINT)

    def _stop(self) -> None:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self.root.stop()
        finally:
            signal.signal(signal.SIGINT, before)

    def _overhear(self, events: list[harken.Event]) -> None:
        """Show what the agents below say to each other, as it is logged."""
        import harken

        for event in events:
            info = self.session.agents.get(event.agent_id)
            if isinstance(event, harken.Response) and event.content and info is not None and info.role == "child":
                self._say(f"  [{info.name or info.agent_id}]: ", event.content, stderr=True)

    @staticmethod
    def _say(who: str, text: str, *, stderr: bool = False) -> None:
        """What an agent said; further lines stand further in, so that none looks like another agent's."""
        ui.block(who + text.replace("\n", "\n    "), stderr=stderr)

    # -- commands ---

    def _command(self, words: list[str]) -> None:
        command = self._commands.get(words[0])
        if command is None:
            ui.note(f"there is no {words[0]}; /help lists what there is")
            return
        try:
            command(words[1:])
        except HarkenError as problem:
            ui.failure(problem)
        sys.stdout.flush()

    def _agents(self, _: list[str]) -> None:
        depths: dict[str | None, int] = {None: -1}
        for info in self.session.agents.values():
            depth = depths[info.agent_id] = depths.get(info.parent, -1) + 1
            remarks = [info.agent_id, f"{info.entries} entries"]
            remarks += [info.role] if info.role in {"root", "hook"} else []
            remarks += ["terminated"] if info.terminated else []
            ui.line(f"{'  ' * min(depth, 20)}{self._name(info.agent_id)} ({', '.join(remarks)})")

    def _perspective(self, words: list[str]) -> None:
        import harken

        if not words:
            raise BadRequest("whose perspective?", hint="/perspective NAME; /agents lists the names")
        viewer = harken.SessionViewer(self.session.path)
        ui.block(viewer.extract_agent_perspective(self._id(" ".join(words))))

    def _dialog(self, words: list[str]) -> None:
        import harken

        everybody = [info.agent_id for info in self.session.agents.values() if info.role != "hook"]
        viewer = harken.SessionViewer(self.session.path)
        for said in viewer.extract_dialog([self._id(word) for word in words] or everybody):
            self._say(f"{self._name(said['agent_id'])}: ", said["content"])

    def _compact(self, words: list[str]) -> None:
        try:
            folded = asyncio.run(self.root.compact(" ".join(words) or None))
        except ModelFailed as problem:
            raise ModelFailed(str(problem), hint="/compact TEXT takes a summary of your own") from problem
        ui.note("the oldest turns are folded; the log keeps them" if folded else "there is nothing to fold yet")

    def _questions(self) -> None:
        """What is asked, with the numbers by which it is answered."""
        open_questions = self._numbered()
        for number, question in open_questions.items():
            choices = f" ({' / '.join(question.choices)})" if question.choices else ""
            asker = self._name(question.hook or question.agent_id)
            self._say(f"{number}. {asker} asks: ", f"{question.text}{choices}")
        ui.note(
            "/answer TEXT answers it"
            if len(self._numbers) == 1
            else "/answer N TEXT answers one of them"
            if open_questions
            else "nobody asks anything"
        )

    def _numbered(self) -> dict[int, harken.OpenQuestion]:
        """What is asked, by number; a question keeps its number until none is open."""
        open_questions = self.session.open_questions()
        if not any(question.message_id in self._numbers for question in open_questions):
            self._numbers.clear()
        for question in open_questions:
            self._numbers.setdefault(question.message_id, len(self._numbers) + 1)
        return {self._numbers[question.message_id]: question for question in open_questions}

    def _answer_question(self, words: list[str]) -> None:
        open_questions = self._numbered()
        if not open_questions:
            raise NotFound("nobody asks anything", hint="/questions lists what is asked")
        number = next(iter(open_questions))
        said = int(words[0]) if words and words[0].isdecimal() and len(words[0]) < 10 else 0
        if len(open_questions) > 1 or (len(self._numbers) > 1 and said in self._numbers.values()):
            number, words = said, words[1:]
            if number not in open_questions:
                raise BadRequest("which question?", hint="/answer N TEXT; /questions lists them with their numbers")
        self.session.answer(open_questions[number].message_id, " ".join(words))
        if self.root.is_pending:
            self._turn()

    def _name(self, agent_id: str | None) -> str:
        info = self.session.agents.get(agent_id) if agent_id is not None else None
        if info is None:
            return "you" if agent_id is None else agent_id
        return info.name or ("root" if info.agent_id == self.root.agent_id else info.agent_id)

    def _id(self, name: str) -> str:
        """The agent somebody means: by id, or the newest of that name."""
        if name in self.session.agents:
            return name
        found = [info.agent_id for info in self.session.agents.values() if info.name == name]
        if name == "root" and not found and self.session.root is not None:
            return self.session.root
        if not found:
            raise NotFound(f"there is no agent {name!r}", hint="/agents lists the names")
        return found[-1]
