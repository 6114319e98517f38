"""`harken view`: a session from one side or another, drawn or as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from . import completing, ui
from .opening import open_session
from .options import json_option

if TYPE_CHECKING:
    from rich.text import Text

    from harken.views import SessionViewer

F = TypeVar("F", bound=Callable[..., Any])

full_option = click.option("--full", is_flag=True, help="Show texts whole instead of one line of each")


@click.group("view")
def view_command() -> None:
    """Look at a session from one side or another

    A SESSION is a session log file. An AGENT is named by its id, or by its name where no other agent has it; a
    MESSAGE by its id. For example, what Jack and Jill said to each other, and who heard one line of it:

        harken view dialog cafe.jsonl Jack Jill

        harken view heard cafe.jsonl msg_015
    """


def show(rows: Iterable[Mapping[str, Any]], drawn: Iterable[Text], *, as_json: bool, nothing: str = "") -> None:
    """Print values one per line, or draw them; say on stderr where there is nothing to show."""
    from .view_drawing import draw

    kept = list(rows)
    if as_json:
        for row in kept:
            ui.json_line(row)
    else:
        draw(drawn)
    if nothing and not kept:
        ui.note(nothing)


def _chosen(viewer: SessionViewer, agents: tuple[str, ...]) -> list[str]:
    return [viewer.find_agent(agent) for agent in agents] or list(viewer.list_agents())


@view_command.command("dialog")
@click.argument("session", shell_complete=completing.session_or_file)
@click.argument("agents", nargs=-1, metavar="[AGENT]...")
@json_option
def dialog(session: str, agents: tuple[str, ...], as_json: bool) -> None:
    """Show what agents said to each other, each thing once

    Without an AGENT, everybody's. Texts stand in the words of the one who said them; instructions, tool calls and
    tool results are left out. For example:

        harken view dialog cafe.jsonl Jack Jill
    """
    from .view_drawing import Painter

    viewer = open_session(session)
    lines = viewer.extract_dialog(_chosen(viewer, agents))
    show(lines, Painter(viewer).dialog(lines), as_json=as_json, nothing="nothing was said")


@view_command.command("perspective")
@click.argument("session", shell_complete=completing.session_or_file)
@click.argument("agents", nargs=-1, required=True, metavar="AGENT...")
@click.option("--system", is_flag=True, help="Show the instructions too")
@click.option("--short", is_flag=True, help="Show one line of each text")
@json_option
def perspective(session: str, agents: tuple[str, ...], system: bool, short: bool, as_json: bool) -> None:
    """Show what an agent heard, did, received and said

    Several agents are interleaved, as with an inner voice. For example:

        harken view perspective cafe.jsonl Jill Inner
    """
    from harken.views.perspective import LABELS

    from .view_drawing import Painter

    viewer = open_session(session)
    chosen = _chosen(viewer, agents)
    moments = viewer.perspective(chosen, system=system)
    drawn = Painter(viewer, full=not short).perspective(moments, LABELS, several=len(set(chosen)) > 1)
    show(moments, drawn, as_json=as_json, nothing="nothing in the transcript")


@view_command.command("flow")
@click.argument("session", shell_complete=completing.session_or_file)
@click.argument("agents", nargs=-1, metavar="[AGENT]...")
@full_option
@json_option
def flow(session: str, agents: tuple[str, ...], full: bool, as_json: bool) -> None:
    """Show each text, what caused it, and to whom it went

    With an AGENT, only what it said or heard. `->` marks a hearer, `=>` an agent that got it in a tool result, `<-`
    the cause. For example:

        harken view flow cafe.jsonl
    """
    from .view_drawing import Painter

    viewer = open_session(session)
    flows = viewer.flow(agents or None)
    show(flows, Painter(viewer, full=full).flow(flows), as_json=as_json, nothing="nothing was said")


@view_command.command("tree")
@click.argument("session", shell_complete=completing.session_or_file)
@json_option
def tree(session: str, as_json: bool) -> None:
    """Show the agents and who made whom

    For example:

        harken view tree cafe.jsonl
    """
    from .view_drawing import Painter

    viewer = open_session(session)
    agents = viewer.agent_tree()
    show(agents, Painter(viewer).tree(agents), as_json=as_json, nothing="no agents")


@view_command.command("timeline")
@click.argument("session", shell_complete=completing.session_or_file)
@click.argument("agents", nargs=-1, metavar="[AGENT]...")
@full_option
@json_option
def timeline(session: str, agents: tuple[str, ...], full: bool, as_json: bool) -> None:
    """Show every event in the order it happened

    For example, what happened to Jill alone:

        harken view timeline cafe.jsonl Jill
    """
    from .view_drawing import Painter

    viewer = open_session(session)
    happenings = viewer.timeline(agents or None)
    show(happenings, Painter(viewer, full=full).timeline(happenings), as_json=as_json, nothing="nothing happened")


@view_command.command("sequence")
@click.argument("session", shell_complete=completing.session_or_file)
@click.argument("agents", nargs=-1, metavar="[AGENT]...")
@full_option
@json_option
def sequence(session: str, agents: tuple[str, ...], full: bool, as_json: bool) -> None:
    """Show who said what to whom

    For example:

        harken view sequence cafe.jsonl
    """
    from .view_drawing import Painter

    viewer = open_session(session)
    arrows = viewer.sequence(agents or None)
    show(arrows, Painter(viewer, full=full).sequence(arrows), as_json=as_json, nothing="nothing was said")


@view_command.command("heard")
@click.argument("session", shell_complete=completing.session_or_file)
@click.argument("message")
@json_option
def heard(session: str, message: str, as_json: bool) -> None:
    """Show who heard a message, and in which words

    Where the words were changed on the way, `[-this-]` went and `{+that+}` came. For example:

        harken view heard cafe.jsonl msg_012
    """
    from .view_drawing import Painter

    viewer = open_session(session)
    one = viewer.content_flow(message)
    drawn = Painter(viewer, full=True).heard(one, [] if as_json else viewer.said_vs_heard(message))
    show(one["heard"], drawn, as_json=as_json, nothing="nobody heard it" if as_json else "")


@view_command.command("interventions")
@click.argument("session", shell_complete=completing.session_or_file)
@json_option
def interventions(session: str, as_json: bool) -> None:
    """Show every delivery that was changed or blocked on its way

    For example:

        harken view interventions cafe.jsonl
    """
    from .view_drawing import Painter

    viewer = open_session(session)
    found = viewer.interventions()
    drawn = Painter(viewer, full=True).interventions(found, [] if as_json else viewer.said_vs_heard())
    show(found, drawn, as_json=as_json, nothing="everything arrived as it was meant")


@view_command.command("knows")
@click.argument("session", shell_complete=completing.session_or_file)
@click.argument("agent")
@click.argument("what", metavar="MESSAGE|TEXT")
@click.option("--at", metavar="TIME|MESSAGE", help="What counts is what had happened by then (see above)")
@json_option
def knows(session: str, agent: str, what: str, at: str | None, as_json: bool) -> None:
    """Say whether a message or some words had reached an agent

    With --at, whether they had by then: a time as RFC 3339 or in seconds since 1970, or the last MESSAGE that counts.
    For example:

        harken view knows cafe.jsonl Jill "extends hand" --at msg_016

        harken view knows cafe.jsonl Jill "extends hand" --at 2026-01-31T12:00:00Z
    """
    from .view_drawing import Painter

    viewer = open_session(session)
    found = viewer.knows(agent, what, at=at)
    show([found], Painter(viewer).knowledge(found), as_json=as_json)
