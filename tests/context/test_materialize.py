"""The conversation a commit stands for: what is walked, joined, translated and remembered."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from harken import formats
from harken.context import Tracker, TrackerSettings
from harken.errors import BadRequest, NotFound
from harken.events import Prompt, Response
from harken.events.cbor import decode_events, encode_events
from harken.formats import Format, bureau_agent
from harken.repo import Repo
from harken.store import Commit, Draft
from support.contexts import chain, flat, heard, keep, memory_repo, turn


@pytest.fixture
def repo() -> Repo:
    return memory_repo()


class TestFreshStart:
    def test_no_commit_is_the_empty_conversation(self, repo: Repo) -> None:
        made = repo.materialize(None)

        assert (b"\x80", "events-v1", "1", 0) == (made.bytes, made.format, made.tier, made.commit_count)

    def test_the_empty_conversation_is_the_formats_own(self, repo: Repo) -> None:
        made = repo.materialize(None, format="session-log-v2")

        assert (b"", "session-log-v2") == (made.bytes, made.format)


class TestAChainOfDeltas:
    def test_is_everything_since_the_root_in_order(self, repo: Repo) -> None:
        tip = chain(repo, range(5))

        assert flat(range(5)) == heard(repo, tip)

    def test_counts_what_its_commits_count(self, repo: Repo) -> None:
        made = repo.materialize(chain(repo, range(3)))

        assert (6, 3, "1", "native") == (made.message_count, made.commit_count, made.tier, made.tier_name)
        assert made.approximate

    def test_can_stop_at_an_ancestor_which_is_part_of_it(self, repo: Repo) -> None:
        middle = chain(repo, range(3))
        tip = chain(repo, range(3, 5), middle)

        assert flat(range(2, 5)) == heard(repo, tip, stop=middle)
        assert flat(range(2, 5)) == heard(repo, tip, stop=middle.short)

    def test_refuses_to_stop_at_a_commit_of_another_chain(self, repo: Repo) -> None:
        stranger = chain(repo, [9])
        tip = chain(repo, range(2))

        with pytest.raises(BadRequest, match="is not an ancestor"):
            repo.materialize(tip, stop=stranger)

    def test_the_answer_can_be_asked_for_by_its_name(self, repo: Repo) -> None:
        made = repo.materialize(chain(repo, range(2)), format="bureau-agent-v1")

        assert made.bytes == repo.get(made.artifact)

    def test_an_unknown_format_is_not_found(self, repo: Repo) -> None:
        with pytest.raises(NotFound, match="there is no format 'morse'"):
            repo.materialize(chain(repo, [1]), format="morse")


class TestCompaction:
    def test_the_summary_stands_for_what_is_below(self, repo: Repo) -> None:
        folded = repo.compact(chain(repo, range(3)), "what happened")
        tip = chain(repo, [3], folded)

        conversation = heard(repo, tip)

        assert "what happened" == conversation[0].content  # type: ignore[attr-defined]
        assert turn(3) == conversation[1:]

    def test_root_gives_every_delta_once_and_nothing_that_was_added(self, repo: Repo) -> None:
        tip = chain(repo, range(2))
        tip = chain(repo, range(2, 4), repo.compact(tip, "first summary"))
        tip = chain(repo, range(4, 6), repo.snapshot(tip))
        tip = repo.compact(tip, "second summary")

        assert flat(range(6)) == heard(repo, tip, stop="root")

    def test_stopping_at_a_compaction_begins_with_its_summary(self, repo: Repo) -> None:
        first = repo.compact(chain(repo, range(2)), "first summary")
        tip = repo.compact(chain(repo, [2], first), "second summary")

        conversation = heard(repo, chain(repo, [3], tip), stop=first)

        assert "first summary" == conversation[0].content  # type: ignore[attr-defined]
        assert flat([2, 3]) == conversation[1:]

    def test_a_compaction_without_a_parent_is_content(self, repo: Repo) -> None:
        imported = keep(repo, [Prompt(content="from elsewhere")], commit_type="compaction")

        assert ["from elsewhere", *(["question 1"])] == [
            event.content for event in heard(repo, chain(repo, [1], imported), stop="root") if isinstance(event, Prompt)
        ]


class TestSnapshots:
    def test_a_snapshot_changes_nothing_that_is_heard(self, repo: Repo) -> None:
        tip = chain(repo, range(4))
        above = chain(repo, [4], repo.snapshot(tip))

        assert flat(range(5)) == heard(repo, above)
        assert 2 == repo.materialize(above).commit_count

    def test_a_snapshot_counts_what_it_stands_for(self, repo: Repo) -> None:
        snapshot = repo.snapshot(chain(repo, range(4)))

        assert 8 == snapshot.message_count == repo.materialize(snapshot).message_count


class TestMixedFormats:
    def test_the_answer_is_in_the_format_of_the_newest_commit(self, repo: Repo) -> None:
        below = repo.checkpoint(bureau_agent.FORMAT.write(turn(1)).data, format="bureau-agent-v1")
        tip = chain(repo, [2], below)

        made = repo.materialize(tip)

        assert ("events-v1", "2s", "structural") == (made.format, made.tier, made.tier_name)
        assert ["question 1", "question 2"] == [e.content for e in heard(repo, tip) if isinstance(e, Prompt)]

    def test_what_is_in_the_right_format_already_stays_byte_for_byte(self, repo: Repo) -> None:
        odd = b"\x81\xa3dtypehresponsehresponse\xa1gcontentbhiitimestamp\x1b\x00\x00\x00\x00\x00\x00\x00\x01"
        below = repo.checkpoint(odd, format="events-v1")
        above = repo.checkpoint(bureau_agent.FORMAT.write(turn(1)).data, format="bureau-agent-v1", parent=below)

        assert odd[1:] in repo.materialize(above, format="events-v1").bytes

    def test_a_translation_says_what_it_lost(self, repo: Repo) -> None:
        made = repo.materialize(chain(repo, [1]), format="bureau-agent-v1")

        assert ("2s", {"message_id": 4}) == (made.tier, {loss.what: loss.count for loss in made.losses})

    def test_the_answer_follows_the_deltas_and_not_the_summary_on_top(self, repo: Repo) -> None:
        data = bureau_agent.FORMAT.write(turn(1)).data
        tip = repo.compact(repo.checkpoint(data, format="bureau-agent-v1"), "a summary")

        assert ("bureau-agent-v1", data) == (
            repo.materialize(tip, stop="root").format,
            repo.materialize(tip, stop="root").bytes,
        )


class TestDeltasOfLines:
    def test_are_lines_also_where_one_lacks_its_newline(self, repo: Repo) -> None:
        first = repo.checkpoint(b'{"n":1}', format="codex-v1")
        second = repo.checkpoint(b'{"n":2}\n', format="codex-v1", parent=first)
        third = repo.checkpoint(b'{"n":3}', format="codex-v1", parent=second)

        assert b'{"n":1}\n{"n":2}\n{"n":3}' == repo.materialize(third, stop="root").bytes
        assert b'{"n":1}' == repo.materialize(first, stop="root").bytes

    def test_are_found_by_their_place_in_what_is_joined(self, repo: Repo) -> None:
        first = repo.checkpoint(b'{"n":1}', format="codex-v1", session_id="s")
        second = repo.checkpoint(b'{"n":2}', format="codex-v1", session_id="s", parent=first)

        assert (first.id, second.id) == (repo.commit("s@@0").id, repo.commit("s@@8").id)


class TestWhatCannotBeJoined:
    def test_comes_back_raw_with_the_reason(self, repo: Repo) -> None:
        good = keep(repo, turn(1))
        with repo.store.write() as writer:
            name = writer.put(b"no cbor")
            bad = writer.commit(Draft(artifact=name, format="events-v1", parent=good.id, time=good.time))

        made = repo.materialize(bad)

        assert ("4", encode_events(turn(1)) + b"no cbor") == (made.tier, made.bytes)
        assert "events-v1 cannot be joined" in made.losses[0].why
        assert "4" == repo.materialize(bad, format="bureau-agent-v1").tier


class TestUnknownFormats:
    def test_are_not_remembered_as_raw(self, repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
        """The day a reader is installed the answer is better."""
        tip = repo.checkpoint(b"dot dash", format="morse-v1")
        assert "4" == repo.materialize(tip).tier

        monkeypatch.setitem(formats.base._OURS, "morse-v1", "morse")
        module = SimpleNamespace(FORMAT=Format(name="morse-v1"))
        monkeypatch.setitem(sys.modules, "harken.formats.morse", module)  # type: ignore[misc]

        assert "1" == repo.materialize(tip).tier

    def test_come_back_raw_with_a_description(self, repo: Repo) -> None:
        first = repo.checkpoint(b"dot dash ", format="morse-v1")
        made = repo.materialize(repo.checkpoint(b"dash", format="morse-v1", parent=first))

        assert (b"dot dash dash", "morse-v1", "4") == (made.bytes, made.format, made.tier)
        assert "morse-v1" in made.description
        assert ["translation"] == [loss.what for loss in made.losses]

    def test_cannot_be_translated_and_say_so(self, repo: Repo) -> None:
        made = repo.materialize(repo.checkpoint(b"dash", format="morse-v1"), format="events-v1")

        assert (b"dash", "4", "morse-v1") == (made.bytes, made.tier, made.format)
        assert "no way from morse-v1 to events-v1" in made.losses[0].why


class TestAFormatWhoseContextIsNotAllOfIt:
    """A runtime's own file: what survives a compaction shows only in the whole of it."""

    @pytest.fixture(autouse=True)
    def lines(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A toy of lines in which `#` hides every line above except those that begin with `!`."""

        def context(data: bytes) -> bytes:
            kept: list[bytes] = []
            for line in data.splitlines(keepends=True):
                if line.startswith(b"#"):
                    kept = [old for old in kept if old.startswith(b"!")]
                kept.append(line)
            return b"".join(kept)

        toy = Format(
            name="toy-v1", context=context, reader=lambda data: [Prompt(content=s) for s in data.decode().split("\n")]
        )
        monkeypatch.setitem(formats.base._OURS, "toy-v1", "toy")
        monkeypatch.setitem(sys.modules, "harken.formats.toy", SimpleNamespace(FORMAT=toy))  # type: ignore[misc]

    def build(self, repo: Repo) -> Commit:
        tip = repo.checkpoint(b"one\n!two\n", format="toy-v1")
        tip = repo.checkpoint(b"three\n# folded\n", format="toy-v1", parent=tip)
        tip = repo.checkpoint(b"# folded\n", format="toy-v1", parent=tip, commit_type="compaction")
        return repo.checkpoint(b"four\n", format="toy-v1", parent=tip)

    def test_is_given_every_delta_and_decides_itself(self, repo: Repo) -> None:
        assert b"!two\n# folded\nfour\n" == repo.materialize(self.build(repo)).bytes

    def test_root_is_the_file_again(self, repo: Repo) -> None:
        assert b"one\n!two\nthree\n# folded\nfour\n" == repo.materialize(self.build(repo), stop="root").bytes

    def test_a_summary_of_ours_hides_all_of_it(self, repo: Repo) -> None:
        tip = repo.compact(self.build(repo), "in short")

        assert ["in short"] == [event.content for event in heard(repo, tip) if isinstance(event, Prompt)]
        assert b"one\n!two\nthree\n# folded\nfour\n" == repo.materialize(tip, stop="root").bytes

    def test_cannot_be_snapshot(self, repo: Repo) -> None:
        with pytest.raises(BadRequest, match="cannot be snapshot"):
            repo.snapshot(self.build(repo))


class TestInheritance:
    def test_a_sub_agent_knows_only_what_it_was_told(self, repo: Repo) -> None:
        above = chain(repo, [1])
        child = keep(
            repo, turn(7), spawned_from={"session": "s", "call_id": "c1", "inherits": False, "commit": above.id}
        )

        assert turn(7) == heard(repo, child)

    def test_one_that_inherits_has_its_parents_context_before_its_own(self, repo: Repo) -> None:
        above = chain(repo, [2], repo.compact(chain(repo, [1]), "in short"))
        child = keep(
            repo, turn(7), spawned_from={"session": "s", "call_id": "c2", "inherits": True, "commit": above.id}
        )

        conversation = heard(repo, chain(repo, [8], child))

        assert "in short" == conversation[0].content  # type: ignore[attr-defined]
        assert flat([2, 7, 8]) == conversation[1:]
        assert flat([7, 8]) == heard(repo, chain(repo, [8], child), stop="root")

    @pytest.mark.parametrize("format", ["claude-code-v1", "codex-v1", "openai-responses-v1", "openai-chat-v1"])
    def test_what_was_handed_down_is_the_agents_own_in_every_format(self, repo: Repo, format: str) -> None:
        above = keep(repo, [event.replace(agent_id="agent_001") for event in turn(1)], session_id="parent")
        own = [event.replace(agent_id="agent_002") for event in turn(7)]
        origin = {"session": "parent", "call_id": "", "inherits": True, "commit": above.id}

        made = repo.materialize(keep(repo, own, spawned_from=origin).id, format=format)

        assert all(text in made.bytes for text in (b"question 1", b"answer 1", b"question 7", b"answer 7"))
        assert "records of other agents" not in {loss.what for loss in made.losses}

    def test_the_place_is_found_by_the_call_where_no_commit_is_named(self, repo: Repo) -> None:
        first = keep(repo, turn(1), session_id="parent")
        keep(repo, turn(2), first, session_id="parent")
        child = keep(repo, turn(7), spawned_from={"session": "parent", "call_id": "c1", "inherits": True})

        assert flat([1, 7]) == heard(repo, child)

    def test_what_is_handed_down_does_not_grow_with_the_parent(self, repo: Repo) -> None:
        above = keep(repo, turn(1), session_id="parent")
        child = keep(repo, turn(7), spawned_from={"session": "parent", "call_id": "", "inherits": True})
        keep(repo, turn(2), above, session_id="parent")

        assert above.id == (child.spawned_from or {})["commit"]
        assert flat([1, 7]) == heard(repo, child)

    def test_what_the_parent_came_to_know_later_is_not_handed_down(self, repo: Repo) -> None:
        above = keep(repo, turn(1), session_id="parent")
        keep(repo, turn(2), above, session_id="parent")
        origin = {"session": "parent", "call_id": "", "inherits": True}

        assert flat([1, 7]) == heard(repo, keep(repo, turn(7), spawned_from=origin, created_at=above.time))

    @pytest.mark.parametrize("origin", [{"session": "parent"}, {"session": "parent", "commit": "ab" * 32}])
    def test_a_context_that_nobody_can_find_is_a_loss(self, repo: Repo, origin: dict[str, object]) -> None:
        child = keep(repo, turn(7), spawned_from=origin | {"inherits": True})
        keep(repo, turn(1), session_id="parent")

        made = repo.materialize(child)

        assert flat([7]) == decode_events(made.bytes)
        assert ["inherited context"] == [loss.what for loss in made.losses]

    def test_a_tracker_writes_down_what_was_handed_over(self, repo: Repo) -> None:
        above = keep(repo, turn(1), session_id="parent")
        tracker = Tracker(
            repo, TrackerSettings(session_id="child", spawned_from={"session": "parent", "inherits": True})
        )
        tracker.feed(turn(7))
        tracker.close()
        keep(repo, turn(2), above, session_id="parent")

        assert flat([1, 7]) == heard(repo, "child")

    def test_a_circle_of_inheritance_ends(self, repo: Repo) -> None:
        child = keep(
            repo, turn(7), session_id="mine", spawned_from={"session": "mine", "call_id": "c7", "inherits": True}
        )

        assert turn(7) == heard(repo, child)


class TestTheCache:
    def test_the_same_answer_comes_back(self, repo: Repo) -> None:
        tip = chain(repo, range(3))
        made = repo.materialize(tip, format="bureau-agent-v1")

        assert made == repo.materialize(tip, format="bureau-agent-v1")

    def test_a_damaged_answer_is_made_again(self, repo: Repo) -> None:
        tip = chain(repo, range(3))
        made = repo.materialize(tip, format="bureau-agent-v1")
        repo.store.cache(f"artifact/{made.artifact}", b"spoilt")

        assert made == repo.materialize(tip, format="bureau-agent-v1")

    def test_an_answer_that_is_gone_is_made_again(self, repo: Repo) -> None:
        tip = chain(repo, range(80))
        made = repo.materialize(tip)

        repo.store.cache("something large", bytes(65 << 20))

        assert made == repo.materialize(tip)


def test_a_chain_of_twenty_thousand_commits_is_walked() -> None:
    """Without recursion, and in proportion to its length: twenty times as deep as Python calls."""
    repo = memory_repo()
    data = encode_events([Response(content="x")])
    with repo.store.write() as writer:
        from harken.store import Draft

        artifact, parent = writer.put(data), ""
        for number in range(20_000):
            draft = Draft(
                artifact=artifact, format="events-v1", parent=parent, time=number * 1_000_000, message_count=1
            )
            parent = writer.commit(draft).id

    made = repo.materialize(parent, stop="root")

    assert (20_000, 20_000) == (made.commit_count, made.message_count)
