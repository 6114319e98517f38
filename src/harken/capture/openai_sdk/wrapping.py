"""A client whose calls are captured: `harken.capture.openai(client, session)`."""

from __future__ import annotations

from harken.capture.clients import ClientT, heard_client
from harken.capture.exchange import Capture
from harken.capture.mask import Mask
from harken.errors import BadRequest, NotFound
from harken.log import Session

from .calls import OpenAICalls


def openai(client: ClientT, session: Session, *, mask: Mask = None) -> ClientT:
    """A client of the same class, whose chat completions and responses are kept in the session as they happen.

    The client that is given stays as it is. `mask` is `True`, or a function from text to text, and masks secrets."""
    try:
        import openai as sdk
    except ImportError:
        raise NotFound("the OpenAI SDK is not installed", hint="`pip install 'harken[openai]'`") from None
    if not isinstance(client, sdk.OpenAI | sdk.AsyncOpenAI):
        raise BadRequest(f"{type(client).__name__} is no client of the OpenAI SDK", hint="`openai.OpenAI()` is one")
    return heard_client(client, session, lambda: OpenAICalls(Capture(session, "openai", mask=mask)))
