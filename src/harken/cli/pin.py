"""`harken pin`: bytes that no clean-up may let go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import ui
from .options import json_option, pass_repo

if TYPE_CHECKING:
    from harken.repo import Repo


@click.command("pin")
@click.argument("ref")
@click.option("--off", is_flag=True, help="Stop keeping them for ever")
@click.option("--only", is_flag=True, help="This commit's bytes alone, not those of the chain behind it")
@json_option
@pass_repo
def pin_command(repo: Repo, ref: str, off: bool, only: bool, as_json: bool) -> None:
    """Keep a commit's bytes for ever, or stop doing so

    A commit is worth little without the chain behind it, so the chain is pinned too unless --only. For example:

        harken pin before-the-rewrite
    """
    commit = repo.commit(ref)
    artifacts = [commit.artifact] if only else [link.artifact for link in repo.store.walk(commit.id)]
    policy = "default" if off else "pin"
    with repo.store.write() as writer:
        for artifact in dict.fromkeys(artifacts):
            writer.set_policy(artifact, policy)
    count = len(set(artifacts))
    if as_json:
        ui.json_line({"id": commit.id, "short": commit.short, "policy": policy, "artifacts": count})
    else:
        ui.note(f"{count} artifacts of {commit.short} are {'kept as others are' if off else 'kept for ever'}")
