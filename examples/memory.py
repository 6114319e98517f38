"""Long-term memory: a hook gathers what it hears into a file, and in a later session brings it back."""

from __future__ import annotations

import json
from pathlib import Path

from stage import main, script

from harken import SessionViewer, load_session
from harken.agents import Approve, Hook, Moment


def memory(store: Path) -> Hook:
    """A hook that remembers sentences in a file and reminds the agent of those that share a word with a prompt."""

    def recall(moment: Moment) -> Approve | None:
        known: list[str] = json.loads(store.read_text()) if store.exists() else []
        words = {word for word in _words(moment.text) if len(word) > 2}
        found = [fact for fact in known if words & _words(fact) and fact != moment.text]
        if moment.text not in known and not moment.text.endswith("?"):
            store.write_text(json.dumps([*known, moment.text]))
        return Approve(say="You know: " + " ".join(found)) if found else None

    return Hook(name="Memory", points=("prompt",), function=recall)


def _words(text: str) -> set[str]:
    return {word.strip(".,;:!?").lower() for word in text.split()}


async def play(file: Path) -> str:
    """Two sessions: the second is a new log and knows nothing but what the hook brings."""
    store = file.with_name("memory.json")
    for name, said in (
        (file.with_name("yesterday.jsonl"), "My dog is called Rex. He is three."),
        (file, "What shall I give my dog for his birthday?"),
    ):
        root, session = load_session(name, language_model=script("memory.toml"), hooks=[memory(store)])
        with session:
            root.harken(said)
            reply = await root.response()
    return reply


def show(viewer: SessionViewer) -> None:
    """The second session, with what was brought back into it."""
    print(viewer.extract_agent_perspective(next(iter(viewer.list_agents()))))


if __name__ == "__main__":
    main(play, show)
