"""A synthetic archive of Claude Code sessions with the size profile of a real one: many small files, a few large ones.

Sizes follow a log-normal curve through p50 105 KB, p90 654 KB and p99 5.4 MB. The text is prose, code and tool output
made from a seeded generator, and every run makes the same files. The mix is that of real sessions: to each API message
two lines of 1.5 KB, a line of progress, and a tool's result of some kilobytes that the record holds twice.

Words come as they do in real text: a few are everywhere and most are rare (Zipf), every session has names of its own
(`snake_case`, `camelCase`), and one session in twelve is held in Chinese, Japanese or Korean.
"""

from __future__ import annotations

import functools
import itertools
import random
import uuid
from datetime import datetime, timedelta
from pathlib import Path

import orjson

WORDS = (
    "the file session test commit value returns handler when request parse error line function context reads writes "
    "import module result because update config option branch delta record agent message index cache token stream "
    "should check before after each other between without store query table schema column default missing failed "
    "passed running output stdout warning deprecated version install package build target release main feature bug"
).split()
SYLLABLES = "ba co de fi gra hu ik jo ka len mo nu or pe qua ri sta tu ul ven wo xi yt zo ter ing ment ant ous".split()
VOCABULARY, NAMES, CJK_WORDS = 30_000, 300, 4_000
CJK_SCRIPTS = ((0x4E00, 0x9FA5), (0x3041, 0x3096), (0xAC00, 0xD7A3))
COMMON, OWN = 0.85, 0.15
"""How much of a text is of the words that all sessions share, and of the names that its own session has."""
CODE = (
    'def {a}({b}, *, {c}=None):\n    if {b} is None:\n        raise ValueError(f"no {a}: {{{c}!r}}")\n'
    "    for {d} in {b}.{a}s():\n        yield {d}.{c}, len({d})\n    return sorted({b}, key=lambda x: x.{d})\n"
)
START = datetime(2026, 3, 1)


def zipf(count: int) -> list[float]:
    """Cumulative weights by which the first of so many words is the most frequent."""
    return list(itertools.accumulate(1 / (rank + 2.7) for rank in range(1, count + 1)))


def invented(r: random.Random) -> str:
    """A word that sounds like one."""
    return "".join(r.choice(SYLLABLES) for _ in range(r.choice([2, 2, 3, 3, 4])))


@functools.cache
def vocabulary() -> tuple[list[str], list[float]]:
    """The words that all sessions share, the most frequent first."""
    r = random.Random(11)
    words = dict.fromkeys(WORDS)
    while len(words) < VOCABULARY:
        words[invented(r)] = None
    return list(words), zipf(len(words))


@functools.cache
def cjk_vocabulary(script: int) -> tuple[list[str], list[float]]:
    """Words of two or three characters of one script."""
    r = random.Random(script)
    low, high = CJK_SCRIPTS[script]
    words: dict[str, None] = {}
    while len(words) < CJK_WORDS:
        words["".join(chr(r.randint(low, high)) for _ in range(r.choice([2, 2, 3])))] = None
    return list(words), zipf(len(words))


def name(r: random.Random) -> str:
    """An identifier."""
    parts = r.choices(vocabulary()[0][:4000], k=r.choice([2, 2, 3]))
    return "_".join(parts) if r.random() < 0.5 else parts[0] + "".join(part.title() for part in parts[1:])


class Writer:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = [name(self.random) for _ in range(NAMES)]
        self.weights = zipf(NAMES)
        self.script = seed // 12 % 3 if seed % 12 == 5 else None

    def words(self, count: int) -> list[str]:
        r = self.random
        words, weights = vocabulary()
        found = r.choices(words, cum_weights=weights, k=max(1, round(count * COMMON)))
        found += r.choices(self.names, cum_weights=self.weights, k=round(count * OWN))
        if self.script is not None:
            words, weights = cjk_vocabulary(self.script)
            found += ["".join(r.choices(words, cum_weights=weights, k=4)) for _ in range(count // 6)]
        r.shuffle(found)
        return found

    def prose(self, words: int) -> str:
        return " ".join(self.words(words)) + "."

    def code(self, pieces: int) -> str:
        r = self.random
        names = r.choices(self.names, cum_weights=self.weights, k=4 * pieces)
        return "\n".join(
            CODE.format(a=names[at], b=names[at + 1], c=names[at + 2], d=f"{names[at + 3]}{r.randint(0, 99)}")
            for at in range(0, 4 * pieces, 4)
        )

    def uuid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def token(self) -> str:
        return f"{self.random.getrandbits(140):035x}"


class MadeSession:
    """A session of Claude Code, line by line."""

    def __init__(self, seed: int) -> None:
        self.writer = Writer(seed)
        self.session = self.writer.uuid()
        self.parent: str | None = None
        self.second = 0
        self.lines: list[bytes] = []
        self.size = 0

    def add(self, kind: str, **fields) -> None:
        """A record behind the last one."""
        r = self.writer.random
        self.second += r.randint(1, 20)
        key = self.writer.uuid()
        record = {
            "parentUuid": self.parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/dev/project",
            "sessionId": self.session,
            "version": "2.1.49",
            "gitBranch": "main",
            "type": kind,
            **fields,
            "uuid": key,
            "timestamp": f"{START + timedelta(seconds=self.second):%Y-%m-%dT%H:%M:%S}.{r.randint(0, 999):03d}Z",
        }
        self.lines.append(orjson.dumps(record) + b"\n")
        self.size += len(self.lines[-1])
        self.parent = key

    def turn(self) -> None:
        """A prompt, steps, and the answer."""
        w = self.writer
        self.add("user", message={"role": "user", "content": w.prose(w.random.randint(5, 80))})
        for _ in range(w.random.randint(2, 12)):
            self.step()
        message, text = w.token(), w.prose(120)
        self.say({"type": "text", "text": text}, message, w.token(), {"input_tokens": 4, "output_tokens": 300})

    def step(self) -> None:
        """A message of the model in parts, each with its usage so far, a call, its progress and its result."""
        w, r = self.writer, self.writer.random
        message, request, call = w.token(), w.token(), "toolu_" + w.token()[:24]
        usage = {
            "input_tokens": r.randint(1, 9),
            "cache_creation_input_tokens": r.randint(100, 4000),
            "cache_read_input_tokens": r.randint(10_000, 150_000),
            "output_tokens": 2,
            "service_tier": "standard",
        }
        if r.random() < 0.5:
            thinking = {"type": "thinking", "thinking": w.prose(60), "signature": w.token() * 6}
            self.say(thinking, message, request, usage)
        self.say({"type": "text", "text": w.prose(30)}, message, request, usage)
        tool, input = r.choice(["Bash", "Read", "Edit", "Grep"]), {"command": w.prose(8)}
        use = {"type": "tool_use", "id": call, "name": tool, "input": input}
        self.say(use, message, request, usage | {"output_tokens": r.randint(50, 900)})
        for _ in range(r.choice([0, 1, 1, 3])):
            self.progress(call)
        body = w.code(r.choice([2, 6, 14, 40])) if r.random() < 0.6 else w.prose(r.randint(50, 1200))
        result = {"tool_use_id": call, "type": "tool_result", "content": body}
        self.add(
            "user",
            message={"role": "user", "content": [result]},
            toolUseResult={"stdout": body, "stderr": "", "interrupted": False},
        )

    def say(self, block: dict[str, object], message: str, request: str, usage: dict[str, object]) -> None:
        """A part of a message of the model."""
        self.add(
            "assistant",
            message={
                "model": "claude-opus-4-6",
                "id": "msg_" + message[:24],
                "type": "message",
                "role": "assistant",
                "content": [block],
                "stop_reason": None,
                "usage": usage,
            },
            requestId="req_" + request[:24],
        )

    def progress(self, call: str) -> None:
        """What a running command has printed so far."""
        w = self.writer
        output, whole = w.prose(140), w.prose(140)
        data = {"type": "bash_progress", "output": output, "fullOutput": whole, "elapsedTimeSeconds": 3}
        self.add("progress", data=data, toolUseID=f"bash-progress-{w.random.randint(0, 99)}", parentToolUseID=call)


def session(seed: int, size: int) -> bytes:
    """The lines of one session, at least `size` bytes."""
    made = MadeSession(seed)
    while made.size < size:
        made.turn()
    return b"".join(made.lines)


def make(root: Path, files: int = 800, total: int = 400_000_000) -> int:
    """Write the archive below `root`; the answer is its size."""
    r = random.Random(7)
    sizes = [min(r.lognormvariate(11.56, 1.55), 20e6) for _ in range(files)]
    scale = total / sum(sizes)
    written = 0
    for number, size in enumerate(sizes):
        data = session(number, int(size * scale))
        # The file is called as the session is: the first line names it.
        name = orjson.loads(data[: data.index(b"\n")])["sessionId"]
        path = root / f"-home-dev-project{number % 12}" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        written += len(data)
    return written
