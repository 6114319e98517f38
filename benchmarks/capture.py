"""Calls of the SDKs with capture and without, against a scripted model in a process of its own; entries into a slice.

Each call is made bare and captured in turns, so that a busy machine slows both. A conversation grows by two messages a
call, as a program's loop has it, and starts anew after ten calls.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from harken import capture
from harken.capture import JsonlSliceFactory, MemorySliceFactory, Session, SliceFactoryConfig, TranscriptEntry

CALLS = 300
LONGEST = 10
ENTRIES = 20_000
TESTS = Path(__file__).resolve().parents[1] / "tests"
WORDS = "the café was loud and neither of them had meant to stay so long over one cold cup of coffee "
Ask = Callable[[list[dict[str, str]]], str]
SERVE = """
import socket, sys
from support.scripted_model import Say, ScriptedModel
listener = socket.create_server(("127.0.0.1", 0))
model = ScriptedModel()
model.answer = lambda *request: [Say("Go on. " * 20)]
model.serve(listener)
print(listener.getsockname()[1], flush=True)
sys.stdin.read()
"""


@contextmanager
def scripted_model() -> Iterator[str]:
    """The address of a model that always answers the same."""
    program = [sys.executable, "-c", SERVE]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as model:
        assert model.stdout is not None
        yield f"http://127.0.0.1:{model.stdout.readline().strip()}"
        model.communicate("")


def openai_calls(url: str, session: Session) -> tuple[Ask, Ask]:
    """Chat completions of OpenAI's SDK."""
    from openai import OpenAI

    def ask(client: Any) -> Ask:
        return lambda messages: client.chat.completions.create(model="m", messages=messages).choices[0].message.content

    bare = OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0)
    return ask(bare), ask(capture.openai(bare, session))


def anthropic_calls(url: str, session: Session) -> tuple[Ask, Ask]:
    """Messages of Anthropic's SDK, streamed."""
    from anthropic import Anthropic

    def ask(client: Any) -> Ask:
        def asked(messages: list[dict[str, str]]) -> str:
            with client.messages.stream(model="m", max_tokens=100, messages=messages) as stream:
                return str(stream.get_final_text())

        return asked

    bare = Anthropic(api_key="k", base_url=url, max_retries=0)
    return ask(bare), ask(capture.anthropic(bare, session))


def google_calls(url: str, session: Session) -> tuple[Ask, Ask]:
    """Contents of Google's SDK."""
    from google import genai

    def ask(client: Any) -> Ask:
        def asked(messages: list[dict[str, str]]) -> str:
            roles = {"user": "user", "assistant": "model"}
            contents = [{"role": roles[one["role"]], "parts": [{"text": one["content"]}]} for one in messages]
            return str(client.models.generate_content(model="m", contents=contents).text)

        return asked

    bare = genai.Client(api_key="k", http_options={"base_url": url})
    return ask(bare), ask(capture.google(bare, session))


def litellm_calls(url: str, session: Session) -> tuple[Ask, Ask]:
    """LiteLLM's completion."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would ask the network for prices
    import litellm

    def ask(completion: Any) -> Ask:
        how = {"model": "openai/m", "api_base": f"{url}/v1", "api_key": "k"}
        return lambda messages: completion(messages=messages, **how).choices[0].message.content

    return ask(litellm.completion), ask(capture.litellm(session).completion)


Taken = tuple[float, float]
"""Seconds that passed, and of those how many the processor worked for this thread."""


def taken(ask: Ask, messages: list[dict[str, str]]) -> Taken:
    start, worked = time.perf_counter(), time.thread_time()
    ask(messages)
    return time.perf_counter() - start, time.thread_time() - worked


def in_turns(bare: Ask, captured: Ask) -> tuple[list[Taken], list[Taken]]:
    """How long each call took, bare and captured."""
    times: tuple[list[Taken], list[Taken]] = ([], [])
    messages: list[dict[str, str]] = []
    answer = bare([{"role": "user", "content": "Hello."}])
    for number in range(CALLS):
        if number % LONGEST == 0:
            messages = [{"role": "user", "content": f"{WORDS}{number}"}]
        both = ((0, bare), (1, captured))
        for at, ask in both if number % 2 else reversed(both):
            times[at].append(taken(ask, messages))
        messages = [*messages, {"role": "assistant", "content": answer}, {"role": "user", "content": f"{number}"}]
    return times


def row(name: str, bare: list[Taken], captured: list[Taken], limit: str) -> str:
    """Both as p50 and p99, in milliseconds. What capture adds is the median of what it added to each call."""
    pairs = list(zip(bare, captured, strict=True))
    more, work = (median(b[at] - a[at] for a, b in pairs) for at in (0, 1))
    (a50, a99), (b50, b99) = (
        (at[49], at[98]) for at in (quantiles([passed for passed, _ in one], n=100) for one in (bare, captured))
    )
    shown = [f"{1000 * one:.2f}" for one in (a50, b50, more, work, a99, b99, b99 - a99)]
    p50, own50, more50, worked, p99, own99, more99 = shown
    ratio = f"{b50 / a50:.2f}×"
    return f"| {name} | {p50} | {own50} | {ratio} | {more50} | {worked} | {limit} | {p99} | {own99} | {more99} |"


def entries_per_second(folder: Path) -> float:
    """Entries through a LOG slice on disk."""
    config = SliceFactoryConfig(
        state_factory=MemorySliceFactory(), log_factory=JsonlSliceFactory(base_dir=folder / "slices")
    )
    when = datetime.now(UTC)
    entries = [TranscriptEntry("user" if at % 2 else "assistant", f"{WORDS}{at}", when) for at in range(ENTRIES)]
    with Session(folder / "entries.jsonl", ack="os", slice_config=config) as session:
        start = time.perf_counter()
        for entry in entries:
            session.dispatch(entry)
        return ENTRIES / (time.perf_counter() - start)


def main(out: Callable[[str], object]) -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("HARKEN_BENCH_DIR")) as name, scripted_model() as url:
        folder = Path(name)
        heads = "bare p50 | captured p50 | ratio | more | of it work | limit | bare p99 | captured p99 | more"
        out(f"| a call, ms | {heads} |")
        out("|---|---|---|---|---|---|---|---|---|---|")
        for calls in (openai_calls, anthropic_calls, google_calls, litellm_calls):
            for ack in ("os", "disk"):
                with Session(folder / f"{calls.__name__}-{ack}.jsonl", ack=ack) as session:
                    bare, captured = in_turns(*calls(url, session))
                kind = (calls.__doc__ or "").rstrip(".")
                out(row(f'{kind}, `ack="{ack}"`', bare, captured, "1.00" if ack == "os" else "–"))
        out("")
        out("| entries into a session and a LOG slice on disk | entries/s | limit |")
        out("|---|---|---|")
        out(f'| `ack="os"`, {ENTRIES:,} entries | {entries_per_second(folder):,.0f} | 10,000 |')


if __name__ == "__main__":
    main(print)
