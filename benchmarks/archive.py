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


def session(seed: int, size: int) -> bytes:
    """The lines of one session, at least `size` bytes."""
    w = Writer(seed)
    name, parent, second = w.uuid(), None, 0
    lines: list[bytes] = []
    total = 0

    def add(kind: str, **fields) -> str:
        nonlocal parent, total, second
        second += w.random.randint(1, 20)
        key = w.uuid()
        stamp = f"2026-03-{1 + second // 86400 % 28:02d}T{second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}.{w.random.randint(0, 999):03d}Z"
        record = {
            "parentUuid": parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/dev/project",
            "sessionId": name,
            "version": "2.1.49",
            "gitBranch": "main",
            "type": kind,
            **fields,
            "uuid": key,
            "timestamp": stamp,
        }
        lines.append(orjson.dumps(record) + b"\n")
        total += len(lines[-1])
        parent = key
        return key

    while total < size:
        add("user", message={"role": "user", "content": w.prose(w.random.randint(5, 80))})
        for _ in range(w.random.randint(2, 12)):
            message, request, call = "msg_" + w.token()[:24], "req_" + w.token()[:24], "toolu_" + w.token()[:24]
            usage = {
                "input_tokens": w.random.randint(1, 9),
                "cache_creation_input_tokens": w.random.randint(100, 4000),
                "cache_read_input_tokens": w.random.randint(10_000, 150_000),
                "output_tokens": 2,
                "service_tier": "standard",
            }

            def part(block, usage=usage, message=message, request=request):
                add(
                    "assistant",
                    message={
                        "model": "claude-opus-4-6",
                        "id": message,
                        "type": "message",
                        "role": "assistant",
                        "content": [block],
                        "stop_reason": None,
                        "usage": usage,
                    },
                    requestId=request,
                )

            if w.random.random() < 0.5:
                part({"type": "thinking", "thinking": w.prose(60), "signature": w.token() * 6})
            part({"type": "text", "text": w.prose(30)})
            part(
                {
                    "type": "tool_use",
                    "id": call,
                    "name": w.random.choice(["Bash", "Read", "Edit", "Grep"]),
                    "input": {"command": w.prose(8)},
                },
                usage | {"output_tokens": w.random.randint(50, 900)},
            )
            for _ in range(w.random.choice([0, 1, 1, 3])):
                data = {
                    "type": "bash_progress",
                    "output": w.prose(140),
                    "fullOutput": w.prose(140),
                    "elapsedTimeSeconds": 3,
                }
                add("progress", data=data, toolUseID=f"bash-progress-{w.random.randint(0, 99)}", parentToolUseID=call)
            body = (
                w.code(w.random.choice([2, 6, 14, 40]))
                if w.random.random() < 0.6
                else w.prose(w.random.randint(50, 1200))
            )
            add(
                "user",
                message={"role": "user", "content": [{"tool_use_id": call, "type": "tool_result", "content": body}]},
                toolUseResult={"stdout": body, "stderr": "", "interrupted": False},
            )
        add(
            "assistant",
            message={
                "model": "claude-opus-4-6",
                "id": "msg_" + w.token()[:24],
                "type": "message",
                "role": "assistant",
                "content": [{"type": "text", "text": w.prose(120)}],
                "stop_reason": None,
                "usage": {"input_tokens": 4, "output_tokens": 300},
            },
            requestId="req_" + w.token()[:24],
        )
    return b"".join(lines)


def make(root: Path, files: int = 800, total: int = 400_000_000) -> int:
    """Write the archive below `root`; the answer is its size."""
    r = random.Random(7)
    sizes = [min(r.lognormvariate(11.56, 1.55), 20e6) for _ in range(files)]
    scale = total / sum(sizes)
    written = 0
    for number, size in enumerate(sizes):
        data = session(number, int(size * scale))
        path = (
            root
            / f"-home-dev-project{number % 12}"
            / f"{uuid.UUID(int=random.Random(number).getrandbits(128), version=4)}.jsonl"
        )
        # The file is called as the session is: the first line names it.
        name = orjson.loads(data[: data.index(b"\n")])["sessionId"]
        path = path.with_name(f"{name}.jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        written += len(data)
    return written
