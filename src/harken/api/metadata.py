"""What may change about a commit: its summary and its tags. What it holds stays what it is."""

from __future__ import annotations

from harken.errors import BadRequest
from harken.repo import Repo

from .base import ApiRequest
from .crossing import crosses
from .values import ShownCommit, shown_commit


class UpdateMetadataRequest(ApiRequest, frozen=True, kw_only=True):
    """What to say of a commit."""

    ref: str
    """The commit."""
    summary: str | None = None
    """The summary that is shown from now on; the older ones stay. None: as it is."""
    tags: tuple[str, ...] = ()
    """Tags that it gets; one that another commit has is a conflict."""
    remove_tags: tuple[str, ...] = ()
    """Tags that it loses."""
    who: str = ""
    """Who says so."""


@crosses
def update_metadata(repo: Repo, request: UpdateMetadataRequest) -> ShownCommit:
    """Say what a commit is about, and tag it; `annotate` and `set_name` do one at a time."""
    commit = repo.commit(request.ref)
    if request.summary is None and not request.tags and not request.remove_tags:
        raise BadRequest("there is nothing to update", hint="give a summary, or tags")
    for tag in request.remove_tags:
        repo.move(tag, None, kind="tag", expect=commit.id, who=request.who, why="update")
    for tag in request.tags:
        there = repo.find_name(tag)
        if there is None or there.target != commit.id:
            repo.move(tag, commit, kind="tag", expect="", who=request.who, why="update")
    if request.summary is not None:
        repo.annotate(commit, request.summary, who=request.who)
    return shown_commit(repo.show(commit))
