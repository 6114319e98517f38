"""`harken.capture.litellm`: the one name of this folder; LiteLLM is imported when it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harken.capture.mask import Mask
from harken.errors import NotFound
from harken.log import Session

if TYPE_CHECKING:
    from .capturing import LiteLLMCapture


def litellm(session: Session, *, mask: Mask = None) -> LiteLLMCapture:
    """What captures calls of LiteLLM into a session: call its `completion`, `acompletion`, `responses` or `aresponses`
    in place of LiteLLM's, or use it in a `with` block, in which the calls that others make are captured, too.

    `mask` is `True`, or a function from text to text, and masks secrets."""
    try:
        from .capturing import LiteLLMCapture
    except ImportError as problem:
        if (problem.name or "").partition(".")[0] == "harken":
            raise
        raise NotFound(f"LiteLLM is not installed: {problem}", hint="`pip install 'harken[agents]'`") from None
    return LiteLLMCapture(session, mask=mask)
