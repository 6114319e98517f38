"""Arguments: whatever is handed over, a store answers, or refuses with a sentence; every store refuses the same."""
# ruff: noqa: SIM300  (what is expected stands on the left)

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from harken.errors import BadRequest, NotFound
from harken.store import Draft, ErasureOrder, SessionRow, Store
from harken.store.arguments import STORE, parameters, public_methods
from harken.store.base import Writer

from .chains import T0, grow

DRAFT = Draft(artifact="ab" * 32, format="x", time=T0)
ROW = SessionRow(session="s", runtime="r")
ORDER = ErasureOrder(time=T0, at=-1)


class NoSuchType:
    """What no method takes."""


def calls(protocol: type) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every public method with every one of its parameters wrong in turn, and the others right."""
    for name, right in right_calls(protocol):
        yield from ((name, one, right | {one: NoSuchType()}) for one in right)


def right_calls(protocol: type) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every public method with arguments that are of the right types."""
    for name, method in public_methods(protocol):
        yield name, {one: _right(kind.types) for one, kind in parameters(method, STORE).items()}


def _right(types: tuple[Any, ...]) -> Any:
    known: dict[Any, Any] = {
        str: "s",
        bytes: b"x",
        bool: True,
        int: 1,
        float: 1.0,
        Draft: DRAFT,
        SessionRow: ROW,
        ErasureOrder: ORDER,
    }
    return next((known[one] for one in types if one in known), None if type(None) in types else [])


class ArgumentContract:
    """What a store makes of values that it cannot keep."""

    def test_a_question_with_a_wrong_type_is_refused(self, store: Store) -> None:
        for method, parameter, given in calls(Store):
            with pytest.raises(BadRequest, match=f"`{parameter}` of `{method}` cannot be of the type") as caught:
                getattr(store, method)(**given)
            assert caught.value.hint

    def test_a_change_with_a_wrong_type_is_refused_and_the_transaction_goes_on(self, store: Store) -> None:
        with store.write() as writer:
            kept = writer.put(b"kept")
            for method, parameter, given in calls(Writer):
                with pytest.raises(BadRequest, match=f"`{parameter}` of `{method}` cannot be of the type"):
                    getattr(writer, method)(**given)
        assert b"kept" == store.get(kept)
        assert 1 == store.last_change()

    def test_a_wrong_type_inside_a_value_is_refused(self, store: Store) -> None:
        base = grow(store, 1)[0]
        draft = Draft(artifact=base.artifact, format="x", time=T0)
        bad: list[Callable[[Writer], object]] = [
            *(
                lambda writer, changed={name: value}: writer.commit(replace(draft, **changed))
                for name, value in (
                    *((word, None) for word in ("artifact", "format", "template", "principal", "machine", "parent")),
                    ("session_id", 7),
                    ("ticket_id", b"t"),
                    ("approximate", 1),
                    ("spawned_from", ["session"]),
                    ("spawned_from", {"session": {1, 2}}),
                    ("spawned_from", {"session": ("a", "b")}),
                    ("spawned_from", {1: "a"}),
                    ("forked_from", None),
                )
            ),
            *(
                lambda writer, changed={name: value}: writer.save_session(replace(ROW, **changed))
                for name, value in (
                    *((word, None) for word in ("session", "runtime", "tip", "parent", "title", "messages", "state")),
                    ("older", base.id),
                    ("older", (b"x",)),
                    ("state", "text"),
                    ("version", "1"),
                )
            ),
            lambda writer: writer.link(base.id, spawned_from={"session": object()}, forked_from=""),
            lambda writer: writer.put(bytearray(b"x")),  # type: ignore[arg-type]
            lambda writer: writer.put(5),  # type: ignore[arg-type]
            lambda writer: writer.put_stream(iter([b"x", "y"])),  # type: ignore[arg-type]
            lambda writer: writer.put_stream(b"x"),  # type: ignore[arg-type]
        ]
        before = store.last_change()
        for call in bad:
            with pytest.raises(BadRequest) as caught, store.write() as writer:
                call(writer)
            assert caught.value.hint
        assert before == store.last_change()
        assert store.fsck(read_data=True).ok

    def test_text_is_not_a_list_of_letters(self, store: Store) -> None:
        commit = grow(store, 1)[0]
        for ask in (store.get_many, store.get_commits, store.infos, store.names_at, store.annotations_of):
            with pytest.raises(BadRequest):
                ask(commit.id)
            with pytest.raises(BadRequest):
                ask([commit.id, None])  # type: ignore[list-item]
        assert [commit] == store.get_commits((commit.id,))

    def test_text_that_names_nothing_is_not_found_whatever_it_holds(self, store: Store) -> None:
        grow(store, 1)
        for text in ("\0", "\ud800", "a\0b", "x" * 10_000, "\udcff/..", "AB" * 32):
            with pytest.raises(NotFound):
                store.get(text)
            with pytest.raises(NotFound):
                store.get_commit(text)
            assert not store.has(text)
            assert [None, None] == [store.find_name(text), store.find_session(text)]
            assert [] == [
                *store.commits(text),
                *store.artifacts(text),
                *store.sessions(prefix=text),
                *store.moves(text),
            ]
            assert store.latest(text, T0) is None

    def test_what_can_be_no_path_is_refused(self, store: Store) -> None:
        for path in ("a\0b", "\ud800", ""):
            with pytest.raises(BadRequest):
                store.backup(path)

    @pytest.mark.parametrize(
        "name",
        ["ctx-12345678", "ctx-", "art-0123456789ab", "../../x", "..", "a/../b", "/etc", "a//b", "a/", "./a", "ab" * 32],
    )
    def test_a_name_that_would_be_taken_for_something_else_is_refused(self, store: Store, name: str) -> None:
        """#21"""
        commit = grow(store, 1)[0]
        for kind in ("branch", "tag"):
            with pytest.raises(BadRequest, match="looks like"), store.write() as writer:
                writer.move(name, kind=kind, to=commit.id, expect="", time=T0)
        assert [] == store.names()
