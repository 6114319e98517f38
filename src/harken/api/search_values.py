"""The values that a filter of a search may have."""

from __future__ import annotations

from harken.repo import Repo

from .base import ApiAnswer, ApiRequest
from .crossing import crosses


class SearchValuesRequest(ApiRequest, frozen=True, kw_only=True):
    """Of which filter."""

    name: str
    """The filter, like `session` or `tool`."""
    value: str = ""
    """A value to ask for, in place of all: whether something in the store has it."""


class SearchValuesAnswer(ApiAnswer, frozen=True, kw_only=True):
    """What the filter can have."""

    values: list[str]
    """The values that something in the store has; empty where one was asked for."""
    known: bool
    """Whether there are any; where one was asked for, whether something in the store has it, or a name it fits."""


@crosses
def search_values(repo: Repo, request: SearchValuesRequest) -> SearchValuesAnswer:
    """The values of a filter, as the index has them."""
    if request.value:
        return SearchValuesAnswer(values=[], known=repo.has_search_value(request.name, request.value))
    found = repo.search_values(request.name)
    return SearchValuesAnswer(values=found, known=bool(found))
