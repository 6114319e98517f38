"""`harken materialize`, `checkpoint` and `compact`: what they print, keep and refuse."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken.events import Prompt
from harken.events.cbor import decode_events, encode_events
from harken.formats import bureau_agent
from harken.repo import Repo
from support.contexts import chain, flat, heard, keep, turn

if TYPE_CHECKING:
    Run = Any


class TestMaterialize:
    def test_writes_the_bytes_to_stdout(self, repo: Repo, run: Run) -> None:
        tip = chain(repo, [1, 2])

        done = run("materialize", tip.short)

        assert flat([1, 2]) == decode_events(done.data)
        assert "tier 1 (native): 4 messages" in done.err

    def test_writes_a_file_and_says_how_it_was_made(self, repo: Repo, run: Run, tmp_path: Path) -> None:
        tip = chain(repo, [1])
        target = tmp_path / "out.cbor"

        (made,) = run("materialize", tip.short, "--format", "bureau-agent-v1", "-o", str(target), "--json").json

        expected = {"artifact", "format", "tier", "losses", "message_count", "token_count", "commit_count"}
        assert expected <= made.keys()
        assert "bytes" not in made
        assert ("bureau-agent-v1", "2s", "structural") == (made["format"], made["tier"], made["tier_name"])
        assert [{"what": "message_id", "count": 4}] == [
            {k: loss[k] for k in ("what", "count")} for loss in made["losses"]
        ]
        assert 4 == len(bureau_agent.FORMAT.read(target.read_bytes()))

    def test_a_narrative_within_a_budget_leaves_out_what_is_oldest(self, repo: Repo, run: Run) -> None:
        said = [Prompt(content=f"Turn {number}: " + "words " * 200) for number in range(20)]
        tip = keep(repo, said)

        whole = run("materialize", tip.short, "--format", "narrative-v1")
        short = run("materialize", tip.short, "--format", "narrative-v1", "--budget", "1000")
        again = run("materialize", tip.short, "--format", "narrative-v1")

        assert whole.data == again.data
        assert b"Turn 0:" in whole.data
        assert b"Turn 0:" not in short.data
        assert b"Turn 19:" in short.data
        assert len(short.data) <= 4000
        assert "tier 3 (rendering)" in short.err
        assert "lost: earlier turn" in short.err

    def test_a_budget_is_for_a_narrative_of_some_size(self, repo: Repo, run: Run) -> None:
        tip = chain(repo, [1])

        other, small = (
            run("materialize", tip.short, *words, "--budget", "50") for words in ([], ["--format", "narrative-v1"])
        )

        assert (2, 2) == (other.code, small.code)
        assert "a budget is for narrative-v1 alone" in other.err
        assert "says nothing" in small.err

    def test_a_file_is_the_users_own_and_appears_whole(self, repo: Repo, run: Run, tmp_path: Path) -> None:
        tip, target = chain(repo, [1]), tmp_path / "out" / "here.cbor"
        target.parent.mkdir()
        target.write_bytes(b"old")
        target.chmod(0o644)
        number = target.stat().st_ino

        assert 0 == run("materialize", tip.short, "-o", str(target), "--force").code

        assert flat([1]) == decode_events(target.read_bytes())
        assert (0o600, True) == (stat.S_IMODE(target.stat().st_mode), number != target.stat().st_ino)
        assert [target] == list(target.parent.iterdir())

    def test_a_link_stays_a_link_and_a_device_a_device(self, repo: Repo, run: Run, tmp_path: Path) -> None:
        tip, target, link = chain(repo, [1]), tmp_path / "real.cbor", tmp_path / "link.cbor"
        link.symlink_to(target)

        assert (0, 0) == (
            run("materialize", tip.short, "-o", str(link)).code,
            run("materialize", tip.short, "-o", "/dev/null").code,
        )

        assert (True, True) == (link.is_symlink(), target.is_file())
        assert Path("/dev/null").is_char_device()

    def test_stops_where_it_is_told(self, repo: Repo, run: Run) -> None:
        tip = repo.compact(chain(repo, [1, 2]), "in short")

        assert 1 == len(decode_events(run("materialize", tip.short).data))
        assert flat([1, 2]) == decode_events(run("materialize", tip.short, "--stop", "root").data)

    def test_a_folder_that_is_not_there_is_a_failure(self, repo: Repo, run: Run, tmp_path: Path) -> None:
        done = run("materialize", chain(repo, [1]).short, "-o", str(tmp_path / "no" / "out"))

        assert (1, True) == (done.code, "cannot write" in done.err)

    def test_an_unknown_format_lists_what_there_is(self, repo: Repo, run: Run) -> None:
        done = run("materialize", chain(repo, [1]).short, "--format", "morse")

        assert (3, True) == (done.code, "events-v1" in done.err)


class TestCheckpoint:
    def test_reads_a_file_and_prints_the_new_name(self, repo: Repo, run: Run, tmp_path: Path) -> None:
        file = tmp_path / "turn.cbor"
        file.write_bytes(encode_events(turn(1)))

        done = run("checkpoint", str(file), "--session", "s", "--summary", "the first turn")

        assert [repo.commit("s").short] == done.lines
        assert "the first turn" == repo.show("s").summary

    def test_reads_stdin_and_moves_the_branch(self, repo: Repo, run: Run) -> None:
        repo.fork(chain(repo, [1]), "b")

        (made,) = run(
            "checkpoint", "--format", "events-v1", "--parent", "b", "--json", stdin=encode_events(turn(2))
        ).json

        assert made["id"] == repo.commit("b").id
        assert flat([1, 2]) == heard(repo, "b")

    def test_asks_for_a_format_it_cannot_tell(self, run: Run) -> None:
        done = run("checkpoint", stdin=b"dot dash")

        assert (2, True) == (done.code, "name it: " in done.err)

    def test_takes_an_artifact(self, repo: Repo, run: Run) -> None:
        artifact = repo.put(encode_events(turn(1)))

        done = run("checkpoint", "--artifact", f"art-{artifact[:12]}", "--format", "events-v1")

        assert artifact == repo.commit(done.lines[0]).artifact

    def test_a_file_that_is_not_there_is_not_found(self, run: Run) -> None:
        assert 3 == run("checkpoint", "nowhere.cbor", "--format", "events-v1").code

    def test_bytes_that_are_no_array_are_a_bad_record(self, run: Run) -> None:
        assert 5 == run("checkpoint", "--format", "events-v1", stdin=b"not cbor").code


class TestCompact:
    def test_says_that_a_session_stays_where_it_was(self, repo: Repo, run: Run) -> None:
        tip = keep(repo, turn(1), session_id="s")
        repo.fork(tip, "b")

        done = run("compact", "s")
        assert tip.id == repo.commit("s").id
        assert f"s stays where it was, without the summary; go on from {done.lines[0]}" in done.err
        assert "stays where it was" not in run("compact", "b").err

    def test_puts_its_own_words_on_top(self, repo: Repo, run: Run) -> None:
        repo.fork(chain(repo, range(3)), "b")

        done = run("compact", "b")

        assert [repo.commit("b").short] == done.lines
        assert "--stop root" in done.err

    def test_takes_a_summary_from_a_file_or_from_stdin(self, repo: Repo, run: Run, tmp_path: Path) -> None:
        tip = chain(repo, range(3))
        (tmp_path / "notes.md").write_text("from the file")

        first = run("compact", tip.short, "--summary", str(tmp_path / "notes.md")).lines[0]
        second = run("compact", first, "--summary", "-", stdin=b"from stdin").lines[0]

        said = [event.content for ref in (first, second) for event in heard(repo, ref) if isinstance(event, Prompt)]
        assert ["from the file", "from stdin"] == said
        assert repo.commit(first).parent == repo.commit(second).parent

    def test_asks_a_model(self, repo: Repo, run: Run, tmp_path: Path) -> None:
        script = tmp_path / "script.json"
        script.write_text('{"agents": {"*": {"rules": [{"when": "question 2", "say": "a model\'s summary"}]}}}')

        done = run("compact", chain(repo, range(3)).short, "--model", f"scripted:{script}")

        assert 0 == done.code, done.err
        assert "a model's summary" in str(heard(repo, done.lines[0])[0])

    def test_takes_a_summary_or_a_model(self, repo: Repo, run: Run) -> None:
        assert 2 == run("compact", chain(repo, [1]).short, "--summary", "-", "--model", "demo").code

    def test_a_summary_that_is_not_there_is_not_found(self, repo: Repo, run: Run) -> None:
        assert 3 == run("compact", chain(repo, [1]).short, "--summary", "nowhere.md").code
