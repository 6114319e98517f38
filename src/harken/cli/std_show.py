"""`harken std show`: a session document at a look."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from . import completing, ui
from .commits import excerpt
from .options import AGENT, FILE, json_option

if TYPE_CHECKING:
    from harken.api.std_show import DrawnAgentAnswer, DrawnMessageAnswer, DrawnTaskAnswer, StdShowAnswer

_NAME, _KIND = 24, 14
"""The most columns that an id, or a type, takes in a list."""
_ROOM = 20
"""With fewer columns than this left in a row, its words stand below it."""
_WORDS = 300
"""How much is shown of a text."""
_STYLES = {"success": "good", "approved": "good", "failed": "bad", "rejected": "bad", "changes_requested": "bad"}


@click.command("show")
@click.argument("file", type=FILE, shell_complete=completing.files)
@click.option(
    "--agent",
    "agent_id",
    metavar="ID",
    type=AGENT,
    help="Only this agent, its tasks and messages",
    shell_complete=completing.document_agents,
)
@json_option
def show_command(file: str, agent_id: str | None, as_json: bool) -> None:
    """Show a session document: agents, tasks, messages, verdicts

    The numbers are those of what is recorded in the document, whatever its summary says. Old and damaged documents are
    shown as far as they can be read; what cannot be drawn is told. `-` is stdin. For example:

        harken std show 2026-01-31-001-mend-the-clock-multi.json
        harken std show 2026-01-31-001-mend-the-clock-multi.json --agent developer-01
    """
    from harken.api.std_show import StdShowRequest, std_show

    body = sys.stdin.buffer.read() if file == "-" else None
    answer = std_show(None, StdShowRequest(path="" if file == "-" else file, body=body, agent=agent_id or ""))
    if as_json:
        ui.json_line(answer)
    else:
        _draw(answer)
    if answer.mended:
        ui.warn(f"{answer.file} is no JSON; it is shown as `harken std repair` would mend it")
    for said in answer.left_out:
        ui.warn(f"not drawn: {said}")


def _draw(answer: StdShowAnswer) -> None:
    _head(answer)
    _agents(answer.agents)
    _tasks(answer.tasks)
    _messages(answer.messages)
    if answer.phases:
        _title("Phases")
    for phase in answer.phases:
        calls = phase.first_call if phase.first_call == phase.last_call else f"{phase.first_call} – {phase.last_call}"
        _row(
            f"  {ui.padded(_short(phase.phase_type) or '?', _KIND)}",
            ui.Styled(_short(calls), "name"),
            words=_short(phase.description),
        )


def _head(answer: StdShowAnswer) -> None:
    ui.row(ui.Styled(_short(answer.title) or "(no title)", "strong"))
    kind = answer.kind if answer.generation == "v3" else f"{answer.kind} ({answer.generation})"
    ui.fact("session", ", ".join(filter(None, (_short(answer.session_id) or "(no id)", kind))))
    state = (
        answer.status or "(no status)",
        _took(answer.duration_ms),
        answer.pattern,
        _calls(answer.calls, answer.failed_calls),
    )
    ui.fact("status", ", ".join(map(_short, filter(None, state))))
    for name, value in (("verdict", answer.verdict), ("model", answer.model), ("asked", answer.prompt)):
        if value:
            ui.fact(name, _short(value))
    if answer.created_at:
        ui.fact(
            "time", _short(answer.created_at) + (f" to {_short(answer.completed_at)}" if answer.completed_at else "")
        )


def _title(text: str) -> None:
    ui.line()
    ui.line(text, "strong")


def _agents(agents: list[DrawnAgentAnswer]) -> None:
    _title("Agents")
    wide = _widest([one.agent_id for one in agents], _NAME)
    kind = _widest([one.agent_type for one in agents], _KIND)
    for one in agents:
        state = one.status or ("" if one.role != "unlisted" else "unlisted")
        _row(
            ui.Styled(f"  {ui.padded(_short(one.agent_id), wide)}", "name"),
            ui.padded(_short(one.agent_type), kind),
            ui.Styled(ui.padded(_short(state), 11), _STYLES.get(state, "")),
            ui.padded(_took(one.duration_ms), 5, right=True),
            _calls(one.calls, one.failed) or "no calls",
        )
        if one.categories:
            told = [f"{_short(name)} {number}" for name, number in one.categories.items()]
            told = ["   ", *(f"{cell}," for cell in told[:-1]), told[-1]]
            _row(*(ui.Styled(cell, "dim") for cell in told), gap=" ")


def _tasks(tasks: list[DrawnTaskAnswer]) -> None:
    if tasks:
        _title("Tasks")
    wide = _widest([one.task_id or one.call_id for one in tasks], _NAME)
    name = _widest([one.agent_id for one in tasks], _NAME)
    for one in tasks:
        state = one.verdict or one.status or "?"
        _row(
            ui.Styled(f"  {ui.padded(_short(one.task_id or one.call_id), wide)}", "mark"),
            ui.Styled(ui.padded(_short(one.agent_id), name), "name"),
            ui.Styled(ui.padded(_short(state), 11), _STYLES.get(state, "")),
            ui.padded(_took(one.duration_ms), 5, right=True),
            _calls(one.calls, 0),
            "review" if one.review else "",
        )
        for words in (one.description, one.outcome and f"{_arrow()} {one.outcome}"):
            if words:
                ui.row(f"    {_short(words)}")


def _messages(messages: list[DrawnMessageAnswer]) -> None:
    if messages:
        _title("Messages")
    wide = _widest([_way(one) for one in messages], 2 * _NAME)
    number = max((len(str(one.sequence_number)) for one in messages if one.sequence_number is not None), default=1)
    for one in messages:
        about = " ".join(filter(None, (one.message_type or "?", one.task_id, one.verdict)))
        told = one.said if one.said not in (one.verdict, one.task_id) else ""
        count = "" if one.sequence_number is None else str(one.sequence_number)
        _row(
            f"  {ui.padded(count, number, right=True)}",
            ui.Styled(ui.padded(_way(one), wide), "name"),
            ui.Styled(_short(about), "mark"),
            words=_short(told),
        )


def _row(*cells: ui.Words, words: str = "", gap: str = "  ") -> None:
    """A row of which only the words at its end are cut: the cells that the window has no room for stand below it."""
    wide = ui.width()
    lines: list[list[ui.Styled]] = [[]]
    used = 0
    for cell, most in (*((cell, wide) for cell in cells), (words, _ROOM)):
        text, style = cell if isinstance(cell, ui.Styled) else (cell, "")
        needed = min(most, ui.columns(text.rstrip()))
        if needed and wide and lines[-1] and used + len(gap) + needed > wide:
            lines.append([])
            text, used = f"    {text.lstrip()}", 0
        if text:
            used += ui.columns(text) + (len(gap) if lines[-1] else 0)
            lines[-1].append(ui.Styled(text, style))
    for line in lines:
        while line and not line[-1].text.strip():
            line.pop()
        ui.rows([[*line[:-1], *(ui.Styled(last.text.rstrip(), last.style) for last in line[-1:])]], gap=gap)


def _way(message: DrawnMessageAnswer) -> str:
    return f"{ui.fit(_short(message.from_agent), _NAME)} {_arrow()} {ui.fit(_short(message.to_agent), _NAME)}"


def _arrow() -> str:
    return "→" if ui.speaks_unicode() else "->"


def _widest(texts: list[str], most: int) -> int:
    return min(most, max((ui.columns(_short(text)) for text in texts), default=0))


def _short(text: str) -> str:
    """A text on one line, as it will be shown: only then is it known how wide it is."""
    return ui.one_line(excerpt(text, _WORDS))


def _calls(number: int, failed: int) -> str:
    return ui.count(number, "call") + (f" ({failed} failed)" if failed else "") if number else ""


def _took(milliseconds: int | None) -> str:
    return ui.duration(None if milliseconds is None else milliseconds / 1000)
