"""`harken view`: a session from one side or another, drawn or as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from . import completing, ui
from .opening import open_view
from .options import AGENT, MESSAGE, SESSION, json_option, pass_repo_unless_file

if TYPE_CHECKING:
    from rich.text import Text

    from harken.api.base import ApiAnswer
    from harken.repo import Repo

full_option = click.option("--full", is_flag=True, help="Show texts whole instead of one line of each")
session_argument = click.argument("session", type=SESSION, shell_complete=completing.session_or_file)
agents_argument = click.argument("agents", nargs=-1, metavar="[AGENT]...", type=AGENT, shell_complete=completing.agents)


class ViewGroup(click.Group):
    """A group that knows what is meant where the session stands before the view."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands:
            word = next((word for word in args[1:] if word in self.commands), None)
            if word is not None:
                raise click.UsageError(f"the view comes first, then the session: `harken view {word} {args[0]}`", ctx)
            if not get_close_matches(args[0], self.commands):  # no view at all: whoever types this means a session
                views = ", ".join(self.commands)
                text = f"'{args[0]}' is no view; the views are {views}"
                hint = f"if it is a session, name a view before it: `harken view timeline {args[0]}`"
                raise click.UsageError(f"{text}; {hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group("view", cls=ViewGroup)
def view_command() -> None:
    """Look at a session from one side or another

    A SESSION is the file of a session, or the id of a session in the store or a unique beginning of one, at least four
    characters. A commit, a branch, a tag, SESSION~1 (an older tip) or SESSION@MESSAGE in its place shows it as it stood
    there: what had been said, and by which agents, up to that commit. An AGENT is named by its id, or by its name where
    no other agent has it; a MESSAGE by its id. For example, what Jack and Jill said to each other, who heard one line
    of it, and all that had happened when a branch was made:

        harken view dialog cafe.jsonl Jack Jill

        harken view heard cafe.jsonl msg_015

        harken view timeline review
    """


def show(rows: Iterable[ApiAnswer], drawn: Iterable[Text], *, as_json: bool, nothing: str = "") -> None:
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


@view_command.command("dialog")
@session_argument
@agents_argument
@json_option
@pass_repo_unless_file
def dialog(repo: Repo, session: str, agents: tuple[str, ...], as_json: bool) -> None:
    """Show what agents said to each other, each thing once

    Without an AGENT, everybody's. Texts stand in the words of the one who said them; instructions, tool calls and
    tool results are left out. For example:

        harken view dialog cafe.jsonl Jack Jill
    """
    from harken.api.views import AgentsViewRequest, view_dialog

    from .view_drawing import Painter

    place, viewer = open_view(repo, session)
    lines = list(view_dialog(repo, AgentsViewRequest(**place, agents=agents), viewer=viewer))
    show(lines, Painter(viewer.list_agents()).dialog(lines), as_json=as_json, nothing="nothing was said")


@view_command.command("perspective")
@session_argument
@click.argument("agents", nargs=-1, required=True, metavar="AGENT...", type=AGENT, shell_complete=completing.agents)
@click.option("--system", is_flag=True, help="Show the instructions too")
@click.option("--short", is_flag=True, help="Show one line of each text")
@json_option
@pass_repo_unless_file
def perspective(repo: Repo, session: str, agents: tuple[str, ...], system: bool, short: bool, as_json: bool) -> None:
    """Show what an agent heard, did, received and said

    Several agents are interleaved, as with an inner voice. For example:

        harken view perspective cafe.jsonl Jill Inner
    """
    from harken.api.views import PerspectiveRequest, view_perspective

    from .view_drawing import Painter

    place, viewer = open_view(repo, session)
    request = PerspectiveRequest(**place, agents=agents, system=system)
    moments = list(view_perspective(repo, request, viewer=viewer))
    several = len({viewer.find_agent(agent) for agent in agents}) > 1
    drawn = Painter(viewer.list_agents(), full=not short).perspective(moments, several=several)
    show(moments, drawn, as_json=as_json, nothing="nothing in the transcript")


@view_command.command("flow")
@session_argument
@agents_argument
@full_option
@json_option
@pass_repo_unless_file
def flow(repo: Repo, session: str, agents: tuple[str, ...], full: bool, as_json: bool) -> None:
    """Show each text, what caused it, and to whom it went

    With an AGENT, only what it said or heard. `->` marks a hearer, `=>` an agent that got it in a tool result, `<-`
    the cause. For example:

        harken view flow cafe.jsonl
    """
    from harken.api.views import FlowRequest, view_flow

    from .view_drawing import Painter

    place, viewer = open_view(repo, session)
    flows = list(view_flow(repo, FlowRequest(**place, agents=agents), viewer=viewer))
    show(flows, Painter(viewer.list_agents(), full=full).flow(flows), as_json=as_json, nothing="nothing was said")


@view_command.command("tree")
@session_argument
@json_option
@pass_repo_unless_file
def tree(repo: Repo, session: str, as_json: bool) -> None:
    """Show the agents and who made whom

    For example:

        harken view tree cafe.jsonl
    """
    from harken.api.views import ViewRequest, view_tree

    from .view_drawing import Painter

    place, viewer = open_view(repo, session)
    agents = list(view_tree(repo, ViewRequest(**place), viewer=viewer))
    show(agents, Painter(viewer.list_agents()).tree(agents), as_json=as_json, nothing="no agents")


@view_command.command("timeline")
@session_argument
@agents_argument
@full_option
@json_option
@pass_repo_unless_file
def timeline(repo: Repo, session: str, agents: tuple[str, ...], full: bool, as_json: bool) -> None:
    """Show every event in the order it happened

    For example, what happened to Jill alone:

        harken view timeline cafe.jsonl Jill
    """
    from harken.api.views import AgentsViewRequest, view_timeline

    from .view_drawing import Painter

    place, viewer = open_view(repo, session)
    happenings = list(view_timeline(repo, AgentsViewRequest(**place, agents=agents), viewer=viewer))
    show(
        happenings,
        Painter(viewer.list_agents(), full=full).timeline(happenings),
        as_json=as_json,
        nothing="nothing happened",
    )


@view_command.command("sequence")
@session_argument
@agents_argument
@full_option
@json_option
@pass_repo_unless_file
def sequence(repo: Repo, session: str, agents: tuple[str, ...], full: bool, as_json: bool) -> None:
    """Show who said what to whom

    For example:

        harken view sequence cafe.jsonl
    """
    from harken.api.views import AgentsViewRequest, view_sequence

    from .view_drawing import Painter

    place, viewer = open_view(repo, session)
    arrows = list(view_sequence(repo, AgentsViewRequest(**place, agents=agents), viewer=viewer))
    show(arrows, Painter(viewer.list_agents(), full=full).sequence(arrows), as_json=as_json, nothing="nothing was said")


@view_command.command("heard")
@session_argument
@click.argument("message", type=MESSAGE)
@json_option
@pass_repo_unless_file
def heard(repo: Repo, session: str, message: str, as_json: bool) -> None:
    """Show who heard a message, and in which words

    Where the words were changed on the way, `[-this-]` went and `{+that+}` came. For example:

        harken view heard cafe.jsonl msg_012
    """
    from harken.api.views import CompareRequest, FlowRequest, MessageViewRequest, view_compare, view_flow, view_heard

    from .view_drawing import UNHEARD, Painter

    place, viewer = open_view(repo, session)
    if as_json:
        request = MessageViewRequest(**place, message=message)
        show(view_heard(repo, request, viewer=viewer), (), as_json=True, nothing=UNHEARD)
        return
    compared = view_compare(repo, CompareRequest(**place, message=message), viewer=viewer)
    (one,) = view_flow(repo, FlowRequest(**place, message=message), viewer=viewer)
    show([one], Painter(viewer.list_agents(), full=True).heard(one, compared), as_json=False)


@view_command.command("interventions")
@session_argument
@json_option
@pass_repo_unless_file
def interventions(repo: Repo, session: str, as_json: bool) -> None:
    """Show every delivery that was changed or blocked on its way

    For example:

        harken view interventions cafe.jsonl
    """
    from harken.api.views import CompareRequest, ViewRequest, view_compare, view_interventions

    from .view_drawing import Painter

    place, viewer = open_view(repo, session)
    found = list(view_interventions(repo, ViewRequest(**place), viewer=viewer))
    compared = view_compare(repo, CompareRequest(**place), viewer=viewer)
    drawn = Painter(viewer.list_agents(), full=True).interventions(found, compared)
    show(found, drawn, as_json=as_json, nothing="everything arrived as it was meant")


@view_command.command("knows")
@session_argument
@click.argument("agent", type=AGENT, shell_complete=completing.agents)
@click.argument("what", metavar="MESSAGE|TEXT")
@click.option("--at", metavar="TIME|MESSAGE", help="What counts is what had happened by then (see above)")
@json_option
@pass_repo_unless_file
def knows(repo: Repo, session: str, agent: str, what: str, at: str | None, as_json: bool) -> None:
    """Say whether a message or some words had reached an agent

    With --at, whether they had by then: a time as RFC 3339 or in seconds since 1970, or the last MESSAGE that counts.
    For example:

        harken view knows cafe.jsonl Jill "extends hand" --at msg_016

        harken view knows cafe.jsonl Jill "extends hand" --at 2026-01-31T12:00:00Z
    """
    from harken.api.views import KnowsRequest, view_knows

    from .view_drawing import Painter

    place, viewer = open_view(repo, session)
    found = view_knows(repo, KnowsRequest(**place, agent=agent, what=what, at=at), viewer=viewer)
    show([found], Painter(viewer.list_agents()).knowledge(found), as_json=as_json)
