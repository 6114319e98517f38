"""Which files are one session: those whose records say so, whatever the files are called, and no others."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import harken
from harken import runtimes
from harken.runtimes.importer import Importer
from support.pi_lines import PiSession
from support.rollouts import Rollout
from support.sessions import conversation

ID = "019b88e5-a2e4-7b90-8953-000000000001"


def nameless(words: str, turns: int = 1) -> bytes:
    """A Claude Code session whose records name no session."""
    lines = [json.loads(line) for line in conversation("x", turns, salt=words).data.splitlines()]
    return b"".join(json.dumps({k: v for k, v in line.items() if k != "sessionId"}).encode() + b"\n" for line in lines)


def import_paths(repo: Any, paths: Iterable[Path], **options: Any) -> list[Any]:
    return list(Importer(repo.store, [runtimes.get(name) for name in ("claude-code", "codex")], **options).run(paths))


def rows(repo: Any) -> list[Any]:
    bare = (msgspec.structs.replace(row, state=b"", version=0) for row in repo.store.sessions())
    return sorted(bare, key=lambda row: row.session)


def lay(folder: Path, files: dict[str, bytes]) -> list[Path]:
    paths = []
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        paths.append(path)
    return paths


def in_every_order(folder: Path, paths: Sequence[Path]) -> list[Any]:
    """The rows, after making sure that they are the same whatever came first, one by one and together."""
    seen = []
    for number, (order, together) in enumerate(itertools.product(itertools.permutations(paths), (True, False))):
        with harken.open(folder / f"{number}.db") as repo:
            for batch in [order] if together else [[path] for path in order]:
                assert {"new", "unchanged"} >= {result.status for result in import_paths(repo, batch)}
            seen.append(rows(repo))
    assert all(seen[0] == other for other in seen[1:])
    return seen[0]


class TestFilesThatNameNoSession:
    def test_have_a_row_each(self, tmp_path: Path) -> None:
        files = {
            "a/session.jsonl": nameless("a"),
            "b/session.jsonl": nameless("b", 2),
            "c/session.jsonl": nameless("a"),
        }
        paths = lay(tmp_path, files)

        found = in_every_order(tmp_path, paths)

        assert 3 == len({row.session for row in found})
        assert all(row.session.startswith("session-") and not row.older for row in found)
        with harken.open(tmp_path / "0.db") as repo:
            for path, data in zip(paths, files.values(), strict=True):
                (row,) = repo.store.sessions(source=str(path))
                assert data == repo.materialize(row.session, stop="root").bytes

    def test_keep_it_as_they_grow(self, tmp_path: Path) -> None:
        whole = nameless("a", 3)
        (path,) = lay(tmp_path, {"session.jsonl": whole})
        with harken.open(tmp_path / "fresh.db") as fresh, harken.open(tmp_path / "grown.db") as grown:
            import_paths(fresh, [path])
            for end in (2, 4, None):
                path.write_bytes(b"".join(whole.splitlines(keepends=True)[:end]))
                import_paths(grown, [path])

            assert rows(fresh) == rows(grown)

    def test_that_are_copies_have_the_same_commits(self, tmp_path: Path) -> None:
        one, other = in_every_order(tmp_path, lay(tmp_path, {"a/x.jsonl": nameless("a"), "b/y.jsonl": nameless("a")}))

        assert one.tip == other.tip

    def test_are_called_by_their_id_once_a_record_gives_one(self, tmp_path: Path) -> None:
        summary = b'{"type":"summary","summary":"before","leafUuid":"11111111-1111-4111-8111-111111111111"}\n'
        whole = summary + conversation("aaa", 2).data
        (path,) = lay(tmp_path, {"session.jsonl": summary})
        with harken.open(tmp_path / "grown.db") as grown:
            import_paths(grown, [path])
            (first,) = rows(grown)
            path.write_bytes(whole)
            import_paths(grown, [path])
            with harken.open(tmp_path / "fresh.db") as fresh:
                import_paths(fresh, [path])
                assert rows(fresh) == rows(grown)
            assert ["aaa"] == [row.session for row in rows(grown)]
            assert "unchanged" == import_paths(grown, [path], verify=True)[0].status
            assert whole == grown.materialize("aaa", stop="root").bytes
        assert first.session.startswith("session-")

    def test_sub_agents_are_below_the_session_of_their_folder(self, tmp_path: Path) -> None:
        agent = b"".join(
            json.dumps(json.loads(line) | {"isSidechain": True, "agentId": "b1"}).encode() + b"\n"
            for line in nameless("agent").splitlines()
        )
        paths = lay(
            tmp_path,
            {
                f"{at}/session{end}": data
                for at in "ab"
                for end, data in ((".jsonl", nameless(at)), ("/subagents/agent-b1.jsonl", agent))
            },
        )
        with harken.open(tmp_path / "store.db") as repo:
            import_paths(repo, paths)
            found = rows(repo)

        tops = [row.session for row in found if not row.parent]
        assert 2 == len(tops)
        assert [f"{top}/b1" for top in tops] == [row.session for row in found if row.parent]


class TestTwoRuntimesWithOneId:
    FILES: ClassVar = {
        "claude.jsonl": conversation(ID, 2).data,
        f"rollout-2026-01-02T00-00-00-{ID}.jsonl": Rollout(id=ID).turn("hi").data,
    }

    def test_are_two_sessions(self, tmp_path: Path) -> None:
        found = in_every_order(tmp_path, lay(tmp_path, self.FILES))

        assert [(ID, "claude-code"), (f"{ID}-codex", "codex")] == [(row.session, row.runtime) for row in found]
        with harken.open(tmp_path / "0.db") as repo:
            for row, data in zip(found, self.FILES.values(), strict=True):
                assert data == repo.materialize(row.session, stop="root").bytes

    @pytest.mark.parametrize("turns", [1, 2])
    def test_a_second_file_of_one_of_them_is_no_fork_of_the_first(self, tmp_path: Path, turns: int) -> None:
        older = Rollout(id=ID).turn("hi")
        older = older if turns == 1 else older.turn("what else?")
        longer = Rollout(id=ID).turn("hi").turn("and now?").turn("and then?")
        second = f"b/rollout-2026-01-02T00-00-00-{ID}.jsonl"
        paths = lay(tmp_path, {**self.FILES, f"a/{second[2:]}": longer.data, second: older.data})
        with harken.open(tmp_path / "store.db") as repo:
            results = import_paths(repo, paths)
            commits = [commit.forked_from for commit in repo.history(f"{ID}-codex")]

        assert {""} == {one.forked_from for one in results}
        assert {""} == set(commits)

    @pytest.mark.parametrize("first", [0, 1])
    def test_are_found_by_their_words_in_the_session_that_said_them(self, tmp_path: Path, first: int) -> None:
        names = ["openclaw", "pi"]  # one format
        said = [PiSession(ID).user(f"Said to {name}.", f"{name}-1").data for name in names]
        paths = lay(tmp_path, {f".openclaw/agents/main/sessions/{ID}.jsonl": said[0], "pi.jsonl": said[1]})
        order = [first, 1 - first]
        with harken.open(tmp_path / "store.db") as repo:
            for number in order:
                list(Importer(repo.store, [runtimes.get(names[number])]).run([paths[number]]))
            runtime_of = {row.session: row.runtime for row in rows(repo)}
            found = {name: [hit.session for hit in repo.search(f'"said to {name}"').hits] for name in names}

        assert 2 == len(runtime_of)
        assert {"openclaw": {"openclaw"}, "pi": {"pi"}} == {
            name: {runtime_of[session] for session in sessions} for name, sessions in found.items()
        }

    @pytest.mark.parametrize("first", [0, 1])
    def test_go_on_growing_apart(self, tmp_path: Path, first: int) -> None:
        paths = lay(tmp_path, self.FILES)
        paths.insert(0, paths.pop(first))
        wholes = [path.read_bytes() for path in paths]
        with harken.open(tmp_path / "grown.db") as grown, harken.open(tmp_path / "fresh.db") as fresh:
            for path, whole in zip(paths, wholes, strict=True):
                path.write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
                import_paths(grown, [path])
            for path, whole in zip(paths, wholes, strict=True):
                path.write_bytes(whole)
            import_paths(grown, paths)
            import_paths(fresh, paths)

            assert rows(fresh) == rows(grown)
            assert ["unchanged"] * 2 == [result.status for result in import_paths(grown, paths, verify=True)]


class TestACopyMadeByHand:
    @pytest.mark.parametrize(
        ("copy", "older"),
        [
            pytest.param(conversation("aaa", 3).data, 0, id="identical"),
            pytest.param(b"".join(conversation("aaa", 3).data.splitlines(keepends=True)[:2]), 1, id="a prefix"),
            pytest.param(
                conversation("aaa", 2).data + conversation("aaa", 2, salt="other").data[-400:], 1, id="diverged"
            ),
        ],
    )
    def test_is_one_session_at_the_state_that_would_be_resumed(self, tmp_path: Path, copy: bytes, older: int) -> None:
        whole = conversation("aaa", 3).data

        (row,) = in_every_order(tmp_path, lay(tmp_path, {"a/aaa.jsonl": whole, "b/copy.jsonl": copy}))

        assert ("aaa", older) == (row.session, len(row.older))
        with harken.open(tmp_path / "0.db") as repo:
            assert whole == repo.materialize("aaa", stop="root").bytes
            if older:
                assert copy == repo.materialize("aaa~1", stop="root").bytes


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_files_in_any_order_grown_or_fresh_make_the_same_rows(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("files")
    kinds = {
        "named": lambda at: (
            conversation(data.draw(st.sampled_from(["aaa", ID])), 2, salt=data.draw(st.sampled_from("pq"))).data
        ),
        "nameless": lambda at: nameless(data.draw(st.sampled_from("pq")), 2),
        "codex": lambda at: Rollout(id=ID).turn(str(at)).turn("more").data,
    }
    chosen = data.draw(st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=4))
    paths = lay(folder, {f"{at}/session.jsonl": kinds[kind](at) for at, kind in enumerate(chosen)})
    wholes = {path: path.read_bytes() for path in paths}
    with harken.open(folder / "fresh.db") as fresh, harken.open(folder / "grown.db") as grown:
        import_paths(fresh, paths)
        for path in data.draw(st.permutations(paths)):
            lines = wholes[path].splitlines(keepends=True)
            for end in sorted({data.draw(st.integers(1, len(lines))), len(lines)}):
                path.write_bytes(b"".join(lines[:end]))
                import_paths(grown, [path])

        assert rows(fresh) == rows(grown)
        tips = {repo_bytes(fresh, tip) for row in rows(fresh) for tip in (row.tip, *row.older)}
        assert set(wholes.values()) == tips


def repo_bytes(repo: Any, tip: str) -> bytes:
    made: bytes = repo.materialize(tip, stop="root").bytes
    return made


def test_a_second_file_that_repeats_part_of_a_session_tells_only_what_it_adds(tmp_path: Path) -> None:
    first, longer = conversation("aaa", 3).data, conversation("aaa", 5).data
    assert longer.startswith(first)
    paths = lay(tmp_path, {"one/aaa.jsonl": first, "two/aaa.jsonl": longer})
    with harken.open(tmp_path / "store.db") as repo:
        (before,) = import_paths(repo, paths[:1])
        kept = sum(repo.store.info(commit.artifact).size for commit in repo.history("aaa"))

        (added,) = import_paths(repo, paths[1:])

        assert (len(first), len(first)) == (before.bytes, kept)
        assert ("new", len(longer), longer.count(b"\n")) == (added.status, added.total_bytes, added.total_records)
        assert 0 < added.commits < added.total_commits
        assert len(longer) - len(first) <= added.bytes < len(longer)
        new = longer[len(longer) - added.bytes :]
        assert new.count(b"\n") == added.records, "the lines of the commits that are new"
