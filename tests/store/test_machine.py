"""A store in memory and one in SQLite answer alike, whatever is done to them and whenever the process dies."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from harken.errors import HarkenError
from harken.store import CHECKPOINTS, COMMIT_TYPES, Draft, MemoryStore, SessionRow, fsck, gc, open_store
from harken.testing.store import T0

KINDS_OF_CONTENT = st.integers(0, 11)


def content_of(kind):
    """Small, middling and large content; a number, so that a failing case is short to print."""
    if kind == 11:
        return b"large" * 250_000
    return b"%d" % kind * 30_000 if kind > 7 else b"%d" % kind


PRINCIPALS = st.sampled_from(["", "a", "b"])
NAMES = st.sampled_from(["main", "v1", "x/y"])


class Dies(Exception):
    """The block is left before its end."""


class TwoStores(RuleBasedStateMachine):
    @initialize()
    def begin(self):
        self.folder = Path(tempfile.mkdtemp())
        self.sqlite = open_store(self.folder / "s.db")
        self.memory = MemoryStore()
        self.artifacts, self.commits, self.likes = [], [], []

    def teardown(self):
        self.sqlite.close()
        shutil.rmtree(self.folder)

    def both(self, act, *, dies=False):
        """The same block on both: the same answer, or the same kind of error; and if it dies, nothing of it."""
        answers = []
        for store in (self.memory, self.sqlite):
            try:
                with store.write() as writer:
                    answer = act(store, writer)
                    if dies:
                        raise Dies
            except Dies:
                answer = "died"
            except HarkenError as error:
                answer = type(error).__name__
            answers.append(answer)
        assert answers[0] == answers[1]
        return answers[0]

    def pick(self, data, names):
        return data.draw(st.sampled_from(names)) if names else "ab" * 32

    @rule(kind_of_content=KINDS_OF_CONTENT, dies=st.booleans(), data=st.data())
    def put(self, kind_of_content, dies, data):
        content = content_of(kind_of_content)
        like = data.draw(st.sampled_from(["", *self.artifacts]))
        name = self.both(lambda _, writer: writer.put(content, like=like), dies=dies)
        if name != "died" and name not in self.artifacts:
            self.artifacts.append(name)

    @rule(
        data=st.data(),
        kind_of_content=KINDS_OF_CONTENT,
        seconds=st.integers(0, 3),
        micros=st.integers(0, 1),
        kind=st.sampled_from(COMMIT_TYPES),
        checkpoint=st.sampled_from(CHECKPOINTS),
        principal=PRINCIPALS,
        session=st.sampled_from(["", "s"]),
        dies=st.booleans(),
    )
    def commit(self, data, kind_of_content, seconds, micros, kind, checkpoint, principal, session, dies):
        content = content_of(kind_of_content)
        parent = data.draw(st.sampled_from(["", *self.commits[-3:], *self.commits[:2]]))

        def act(_, writer):
            draft = Draft(
                artifact=writer.put(content),
                parent=parent,
                format="x",
                time=T0 + seconds * 1_000_000 + micros,
                commit_type=kind,
                checkpoint=checkpoint,
                principal=principal,
                session_id=session,
            )
            return writer.commit(draft)

        made = self.both(act, dies=dies)
        if made != "died":
            if made.id not in self.commits:
                self.commits.append(made.id)
            if made.artifact not in self.artifacts:
                self.artifacts.append(made.artifact)

    @rule(data=st.data(), value=st.text(max_size=5), dies=st.booleans())
    def annotate(self, data, value, dies):
        commit = self.pick(data, self.commits)
        self.both(lambda _, writer: writer.annotate(commit, "summary", value, time=T0), dies=dies)

    @rule(data=st.data(), name=NAMES, kind=st.sampled_from(["branch", "tag"]), record=st.booleans(), dies=st.booleans())
    def move(self, data, name, kind, record, dies):
        to = data.draw(st.sampled_from(["", "ab" * 32, *self.commits]))
        expect = data.draw(st.sampled_from([None, "", *self.commits]))
        self.both(
            lambda _, writer: writer.move(name, kind=kind, to=to, expect=expect, time=T0, record=record), dies=dies
        )

    @rule(data=st.data(), session=st.sampled_from(["s", "t"]), title=st.text(max_size=5))
    def save_session(self, data, session, title):
        tip = data.draw(st.sampled_from(["", *self.commits]))
        row = SessionRow(session=session, runtime="r", tip=tip, title=title)
        self.both(lambda _, writer: writer.save_session(row))

    @rule(data=st.data(), policy=st.sampled_from(["default", "pin"]))
    def set_policy(self, data, policy):
        artifact = self.pick(data, self.artifacts)
        self.both(lambda _, writer: writer.set_policy(artifact, policy))

    @rule(data=st.data(), dies=st.booleans())
    def evict(self, data, dies):
        artifact = self.pick(data, self.artifacts)
        self.both(lambda _, writer: writer.evict(artifact), dies=dies)

    @rule(data=st.data())
    def pack(self, data):
        commit = data.draw(st.sampled_from(["", *self.commits]))
        self.sqlite.pack(commit)

    @rule()
    def collect(self):
        assert 0 == gc(self.sqlite, now=T0).expired

    @rule(properly=st.booleans())
    def reopen(self, properly):
        """Closed, or left lying by a process that died: SQLite's own crash recovery reads the WAL again."""
        if properly:
            self.sqlite.close()
            self.sqlite = open_store(self.sqlite.path)
        else:
            copy = self.folder / "after"
            copy.mkdir()
            for file in self.folder.glob("s.db*"):
                if not file.name.endswith("-shm"):
                    shutil.copy(file, copy / file.name)
            self.sqlite.close()
            for file in copy.iterdir():
                shutil.move(file, self.folder / file.name)
            copy.rmdir()
            self.sqlite = open_store(self.folder / "s.db")

    @precondition(lambda self: hasattr(self, "memory"))
    @invariant()
    def they_agree(self):
        for ask in (
            lambda s: s.commits(),
            lambda s: s.names(),
            lambda s: s.moves(),
            lambda s: s.sessions(),
            lambda s: s.artifacts(),
            lambda s: [s.info(name) for name in self.artifacts],
            lambda s: [s.get(name) for name in self.artifacts if s.has(name)],
            lambda s: [s.chain(name) for name in self.commits],
            lambda s: [s.walk(name, stop=["snapshot"]) for name in self.commits],
            lambda s: [s.children(name) for name in self.commits],
            lambda s: [s.annotations(name) for name in self.commits],
            lambda s: [s.sightings(name) for name in self.commits],
            lambda s: [s.latest(who, T0 + n) for who in ("", "a", "b") for n in (-1, 0, 1, 1_500_000, 10**9)],
            lambda s: [s.commits(name[:n]) for name in self.commits for n in (1, 8, 64, 72)],
        ):
            assert ask(self.memory) == ask(self.sqlite)
        assert fsck(self.sqlite, read_data=True).ok


TestTwoStores = TwoStores.TestCase
TestTwoStores.settings = settings(
    max_examples=40,
    stateful_step_count=20,
    report_multiple_bugs=False,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
