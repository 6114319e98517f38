"""The suite every runtime passes, ours and those that come through an entry point.

Subclass it in a test module, name the runtime, and give sessions as the program itself writes them, each with the
place below the runtime's own folder where it lies:

    class TestMyRuntime(RuntimeContract):
        runtime = my_package.RUNTIME
        samples = (("sessions/one.jsonl", Path("one.jsonl").read_bytes()),)
        words = (("ask", "--model", "x", "What is in x?"),)

It needs pytest and Hypothesis. The format of the runtime passes `FormatContract` beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harken import formats, runtimes
from harken.context import get_session, materialize
from harken.context.walk import added, joined, places
from harken.events import Event, Prompt, Response, ToolCall
from harken.events.cbor import decode_events, encode_events
from harken.events.records import by_record
from harken.events.tally import Tally
from harken.formats.kit.claims import ENOUGH, HEAD
from harken.ids import is_safe_name
from harken.repo import Repo
from harken.runtimes import Launcher, ResumeWriter, Runtime, Template
from harken.runtimes.resume import Destination, Resumed, resume
from harken.runtimes.sources import may_claim
from harken.store import MemoryStore

from .formats import conversations, damaged, happenings, is_opaque, said, unsaid

SQLITE = b"SQLite format 3\0"
"""How every database begins."""
BEGINNINGS = (b"", b"{", b'{"', b'{"type":', b"[{", b"#!", b"SQLite format")
"""How files of many programs begin."""
NOON = 1_794_744_000_000_000
EXAMPLES = settings(
    max_examples=30,
    deadline=None,
    # A busy machine is no fault of the runtime's.
    suppress_health_check=[
        HealthCheck.differing_executors,
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
    ],
)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)


class RuntimeContract:
    """What holds for every runtime."""

    runtime: ClassVar[Runtime]
    samples: ClassVar[Sequence[tuple[str, bytes]]]
    """Sessions as the program writes them, each with its path below the runtime's folder; of a database, the rows of a
    session as `read.sessions` gives them, with the path of the database."""
    words: ClassVar[Sequence[Sequence[str]]] = ()
    """Command lines that can be run under observation; the last word of each is the prompt."""
    lines: ClassVar[Sequence[bytes]] = ()
    """Lines of the program's output, the first of which begins a session."""

    # -- where it is ---------------------------------------------------------------------------------------------------

    def test_its_name_can_be_typed_and_its_format_is_there(self) -> None:
        assert is_safe_name(self.runtime.name)
        assert self.runtime.label
        assert self.runtime.format in formats.names()
        assert self.runtime.source in ("file", "document", "database")

    def test_its_folder_follows_from_the_environment_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = self.runtime.home({"HOME": "/home/ada"})
        for name, value in {"HOME": "/home/eve", **self.runtime.environment(Path("/eve"))}.items():
            monkeypatch.setenv(name, value)

        assert before == self.runtime.home({"HOME": "/home/ada"})
        assert before.is_relative_to("/home/ada")
        assert self.runtime.home({"HOME": "/home/bob"}).is_relative_to("/home/bob")

    def test_its_folder_is_where_the_environment_it_names_puts_it(self) -> None:
        """A folder that no environment leads to has none; some can only be moved under their own name."""
        usual = self.runtime.home({"HOME": "/home/ada"})
        for moved in (Path("/somewhere/else"), Path("/somewhere", usual.name)):
            environment = dict(self.runtime.environment(moved))
            assert not environment or moved == self.runtime.home({"HOME": "/home/ada"} | environment)

    def test_its_sessions_lie_in_its_folder(self, tmp_path: Path) -> None:
        roots = self.runtime.roots(tmp_path)

        assert all(root.is_relative_to(tmp_path) for root in roots)
        for name, _ in self.samples:
            # One whose files lie wherever somebody puts them has no place of its own.
            assert not roots or any((tmp_path / name).is_relative_to(root) for root in roots), name
            assert name.endswith(self.runtime.read.suffixes), name

    # -- whose files they are ------------------------------------------------------------------------------------------

    def test_it_claims_its_own_files_and_nobody_else_does(self) -> None:
        for name, data in self.samples:
            path = Path("/home/ada", name)
            data = SQLITE if self.runtime.source == "database" else data
            own = self.runtime.claim(data[:HEAD], path)
            others = [runtimes.get(other) for other in runtimes.names() if other != self.runtime.name]

            assert ENOUGH <= own.score <= 100, name
            assert own.reason, "a claim says why"
            assert may_claim(self.runtime, data[:HEAD]), f"{name} has none of the keys {self.runtime.keys}"
            for other in others:
                assert other.claim(data[:HEAD], path).score < own.score, other.name

    def test_it_claims_no_file_of_another_runtime(self) -> None:
        """What another runtime writes for a resume is as good as its own files."""
        for other in map(runtimes.get, runtimes.names()):
            if other.name == self.runtime.name or other.resume is None:
                continue
            place = other.resume.place(Path("/home/ada"), Path("/work"), NOON)
            data = other.resume.translated(formats.get("events-v1").read(_conversation()), place).data
            data = SQLITE if other.source == "database" else data

            assert self.runtime.claim(data[:HEAD], place.path).score < ENOUGH, other.name

    def test_it_claims_no_noise(self) -> None:
        """Wherever it lies: a path may strengthen a claim, and makes none."""
        # Drawn once and for all. Hypothesis tries words that it finds in the code, how a runtime's files begin for one.
        chance = Random(0)  # noqa: S311
        noise = [b"", *(start + chance.randbytes(200) for start in BEGINNINGS for _ in range(20))]
        for path in (Path("/home/ada/noise.jsonl"), *(Path("/home/ada", name) for name, _ in self.samples)):
            for data in noise:
                assert self.runtime.claim(data, path).score == 0, (path, data)

    # -- reading -------------------------------------------------------------------------------------------------------

    @EXAMPLES
    @given(data=st.data())
    def test_a_file_scanned_as_it_grew_is_as_one_scanned_at_once(self, data: st.DataObject) -> None:
        """Deltas, counts and usage alike, wherever the file was cut off in between."""
        if self.runtime.source != "file" or not self.samples:
            return
        _, sample = data.draw(st.sampled_from(list(self.samples)))
        sample = sample[:HEAD]
        cut = data.draw(st.integers(0, len(sample)))
        scan = self.runtime.read.scan

        first = scan(sample[:cut], b"")
        rest = scan(sample[first.offset :], first.state)
        whole = scan(sample, b"")

        closed = [delta for delta in first.deltas if delta.closed]
        assert list(whole.deltas) == [*closed, *rest.deltas]
        for field in ("offset", "state", "records", "opaque", "messages", "title", "started", "ended", "session"):
            assert getattr(whole, field) == getattr(rest, field), field

    @EXAMPLES
    @given(data=st.data())
    def test_a_scan_never_raises_and_leaves_out_no_byte(self, data: st.DataObject) -> None:
        hostile = data.draw(damaged(self._contents()))

        facts = self.runtime.read.scan(hostile, b"")

        if self.runtime.source == "file":
            deltas = [delta for delta in facts.deltas if delta.commit_type == "delta"]
            assert len(hostile) == sum(delta.end - delta.start for delta in deltas)

    @EXAMPLES
    @given(data=st.data())
    def test_a_scan_counts_what_the_reader_reads(self, data: st.DataObject) -> None:
        """What an import reports is what `stats` says of the same bytes later."""
        source = data.draw(st.sampled_from(self._contents()) | damaged(self._contents()))

        facts = self.runtime.read.scan(source, b"")
        events = formats.get(self.runtime.format).read(source)

        tally = Tally.of(events)
        assert tally.figures() == facts.tally.figures()
        assert tally.messages == facts.messages
        assert sum(any(map(is_opaque, record)) for record in by_record(events)) == facts.opaque

    @EXAMPLES
    @given(data=st.data())
    def test_each_delta_alone_says_what_it_adds(self, data: st.DataObject) -> None:
        """Read one by one, under the names that the chain gives them, they say what the whole says: `log`, `show`,
        `diff` and `SESSION@MESSAGE` look at one alone."""
        source = data.draw(st.sampled_from(self._contents()) | damaged(self._contents()))
        known = formats.get(self.runtime.format)
        deltas = self._deltas(source)

        alone: list[Event] = []
        begin = 0
        for delta in deltas:
            alone += added(known, delta, begin)
            begin += places(known, delta)

        assert _names(alone) == _names(added(known, joined(known, deltas), 0))
        assert said(alone) == said(known.read(joined(known, deltas)))

    def _contents(self) -> list[bytes]:
        """The bytes that are scanned: the sample, or what is gathered from it where a session is several files."""
        gather = self.runtime.read.gather or (lambda path, data, pieces: data)
        return [gather(Path("/home/ada", name), sample, ()) for name, sample in self.samples]

    def _deltas(self, source: bytes) -> list[bytes]:
        """The bytes of the deltas that the scan finds in a session."""
        found = [delta for delta in self.runtime.read.scan(source, b"").deltas if delta.commit_type == "delta"]
        return [source[delta.start : delta.end] if delta.content is None else delta.content for delta in found]

    @EXAMPLES
    @given(data=st.data())
    def test_a_session_keeps_its_name_as_it_grows(self, data: st.DataObject) -> None:
        if self.runtime.source != "file" or not self.samples:
            return
        name, sample = data.draw(st.sampled_from(list(self.samples)))
        head = self.runtime.read.scan(sample[: sample.index(b"\n") + 1], b"")
        later = self.runtime.read.scan(sample, b"")

        identity = self.runtime.read.identify(Path("/home/ada", name), later)

        assert identity.name
        if head.session:
            assert identity == self.runtime.read.identify(Path("/home/ada", name), head)

    # -- resume --------------------------------------------------------------------------------------------------------

    def test_what_it_can_do_is_said_as_data(self) -> None:
        parts = {"resume": self.runtime.resume, "run": self.runtime.launch}
        assert {"import", *(name for name, part in parts.items() if part)} == self.runtime.can

    def test_every_resume_has_a_place_of_its_own(self, tmp_path: Path) -> None:
        for writer in self._writer():
            one, two = (writer.place(tmp_path / "home", tmp_path, NOON) for _ in range(2))

            assert one.session != two.session
            assert is_safe_name(one.session)
            assert one.path.is_relative_to(tmp_path / "home")
            assert any(one.session in word for word in one.command), "the command names the session"
            assert (tmp_path, NOON) == (one.cwd, one.time)

    def test_its_own_sessions_go_on_as_they_were(self, tmp_path: Path) -> None:
        """Resumed in the runtime they came from, and imported again, they say what they said."""
        for number, (_, sample) in enumerate(self.samples):
            for _ in self._writer():
                home = self._home(tmp_path / str(number))
                store = MemoryStore()
                commit = Repo(store).checkpoint(sample, format=self.runtime.format)
                conversation = _said_at(store, commit.id)

                done = resume(store, commit, self._to(home))
                self.prepare(home, done)

                assert done.tier == "1"
                assert conversation == self._imported(store, home, done.session)

    @settings(EXAMPLES, max_examples=20)
    @given(events=conversations())
    def test_what_was_said_elsewhere_goes_on_here(
        self, tmp_path_factory: pytest.TempPathFactory, events: list[Event]
    ) -> None:
        """The conversation is the same, but for what the list of losses names."""
        for _ in self._writer():
            if not any(isinstance(event, Prompt | Response) and event.content.strip() for event in events):
                return  # nobody said anything, and that is refused
            home, store = self._home(tmp_path_factory.mktemp("home")), MemoryStore()
            commit = Repo(store).checkpoint(encode_events(events), format="events-v1")

            done = resume(store, commit, self._to(home))
            self.prepare(home, done)

            conversation = self._imported(store, home, done.session)
            assert done.losses or _worded(said(events)) == _worded(conversation)

    @settings(EXAMPLES, max_examples=20)
    @given(events=happenings())
    def test_nothing_that_was_said_elsewhere_is_dropped_in_silence(self, events: list[Event]) -> None:
        """Where a writer says fewer things, its list of losses accounts for as many."""
        for writer in self._writer():
            written = writer.translated(events, writer.place(Path("/home/ada"), Path("/work"), NOON))

            missing = unsaid(events, written, formats.get(self.runtime.format).read(written.data))

            assert not missing, f"gone without a word: {missing}"

    def prepare(self, home: Path, done: Resumed) -> None:
        """Do what the commands of `done.prepare` do, where the program takes sessions in by itself."""
        assert not done.prepare, "say in `prepare` what the program does with what was written"

    def _writer(self) -> Iterator[ResumeWriter]:
        """The part that writes, for runtimes that have one."""
        if self.runtime.resume is not None:
            yield self.runtime.resume

    def _home(self, folder: Path) -> Path:
        """A folder for the runtime, under the name that it has everywhere: some take no other."""
        return folder / self.runtime.home({"HOME": "/home/ada"}).name

    def _to(self, home: Path) -> Destination:
        home.mkdir(parents=True, exist_ok=True)
        return Destination(runtime=self.runtime, cwd=home, environ={"HOME": "/nowhere"}, home=home)

    def _imported(self, store: MemoryStore, home: Path, session: str) -> list[tuple[str, str]]:
        """What a session says once it has been imported from the runtime's folder, under the name it was given."""
        from harken.runtimes.files import walk
        from harken.runtimes.importer import Importer

        suffixes = self.runtime.read.suffixes
        paths = [path for root in self.runtime.roots(home) if root.exists() for path in walk(root, suffixes)]
        outcomes = list(Importer(store, [self.runtime]).run(paths))
        assert [outcome.error for outcome in outcomes if outcome.error] == []
        return _said_at(store, get_session(store, session).tip)

    # -- running -------------------------------------------------------------------------------------------------------

    def test_a_plan_keeps_the_users_words(self) -> None:
        for launch in self._launcher():
            assert self.words, "give command lines that can be run"
            for words in self.words:
                plan = launch.plan(words, "")
                again = launch.plan(words, "the-session")

                assert _in_order(words, plan.arguments)
                assert words[-1] == plan.prompt
                assert _in_order(words, again.arguments)
                assert any("the-session" in word for word in again.arguments)
                assert not launch.named_by_plan or plan.session
                assert "the-session" not in plan.arguments

    def test_a_template_adds_to_the_users_words(self) -> None:
        template = Template(name="t", runtime=self.runtime.name, model="opus-9", arguments=("--more=words",))
        for launch in self._launcher():
            for words in self.words:
                told = launch.template(template, words)

                assert _in_order(words, told)
                assert _in_order(template.arguments, told)
                assert any("opus-9" in word for word in told)
                assert launch.plan(told, "").prompt == words[-1]

    def test_its_output_is_read_and_shown(self) -> None:
        for launch in self._launcher():
            assert self.lines, "give lines of its output"
            reader = launch.reader(NOON)
            objects = [msgspec.json.decode(line) for line in self.lines]

            begun = launch.owner(objects[0]).session
            assert begun or launch.named_by_plan, "the first line begins a session"
            assert said([event for line in self.lines for event in reader.feed(line)])
            shown = [launch.shown(line, found, "text") for line, found in zip(self.lines, objects, strict=True)]
            assert any(part.answer for part in shown)

    @EXAMPLES
    @given(line=st.dictionaries(st.sampled_from(["type", "message", "item", "session_id"]) | st.text(), _values))
    def test_no_line_stops_a_run(self, line: dict[str, Any]) -> None:
        for launch in self._launcher():
            data = msgspec.json.encode(line)
            launch.owner(line)
            launch.shown(data, line, "text")
            launch.typed(line)
            launch.reader(NOON).feed(data)
            launch.reader(NOON).feed(data[: len(data) // 2])
            launch.told(ToolCall(id="c", name="Task", input=data))

    def _launcher(self) -> Iterator[Launcher]:
        """The part that runs, for runtimes that have one."""
        if self.runtime.launch is not None:
            yield self.runtime.launch


def _names(events: Sequence[Event]) -> list[tuple[str, int, str]]:
    return [(event.message_id, event.index, event.kind) for event in events]


def _conversation() -> bytes:
    from harken.events import Prompt, Response

    return encode_events([Prompt(content="Say hello."), Response(content="Hello.")])


def _said_at(store: MemoryStore, commit: str) -> list[tuple[str, str]]:
    """What is said in the conversation at a commit."""
    made = materialize(store, store.get_commit(commit), format="events-v1")
    return said(decode_events(made.bytes))


def _worded(spoken: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """What has words; providers refuse messages of blanks alone, so writers leave them out."""
    return [(kind, text) for kind, text in spoken if text.strip()]


def _in_order(words: Sequence[str], among: Sequence[str]) -> bool:
    """Whether the words stand among others, in the same order."""
    rest = iter(among)
    return all(word in rest for word in words)
