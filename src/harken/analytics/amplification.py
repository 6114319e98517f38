"""How much an agent does for each thing a person says."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from harken.events import Event, Prompt, Response
from harken.events.tally import Tally

from .steps import is_answer, is_human, said_once


class Amplification(msgspec.Struct, kw_only=True, frozen=True):
    """What came of what people said. A ratio is None where nobody said anything."""

    prompts: int
    """What people said."""
    responses: int
    calls: int
    characters_in: int
    """Of what people said."""
    characters_out: int
    """Of what models answered in words."""

    @property
    def responses_per_prompt(self) -> float | None:
        """Answers for each thing a person said."""
        return self.responses / self.prompts if self.prompts else None

    @property
    def calls_per_prompt(self) -> float | None:
        """Tool operations for each thing a person said."""
        return self.calls / self.prompts if self.prompts else None

    @property
    def characters_ratio(self) -> float | None:
        """Characters that came out for each that went in."""
        return self.characters_out / self.characters_in if self.characters_in else None


def of(events: Iterable[Event]) -> Amplification:
    """Prompts, responses and calls as `Tally` counts them, and the characters of what was said."""
    held = [event for record in said_once(events) for event in record]
    tally = Tally.of(held)
    return Amplification(
        prompts=tally.prompts.human,
        responses=tally.responses,
        calls=sum(tally.tools.values()),
        characters_in=sum(len(e.content) for e in held if isinstance(e, Prompt) and is_human(e)),
        characters_out=sum(len(e.content) for e in held if isinstance(e, Response) and is_answer(e)),
    )
