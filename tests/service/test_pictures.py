"""Pictures of a transcript: what they are is decided by their bytes."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import harken
from harken.events import Image, Prompt, Response
from harken.service.routing import API
from support.contexts import keep
from support.service import client, problem, serving, token

PNG = b"\x89PNG\r\n\x1a\n" + zlib.compress(b"x")
SHOWN = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0rest",
    "image/gif": b"GIF89a\x00\x00\x3b",
    "image/webp": b"RIFF\x08\x00\x00\x00WEBPVP8 ",
}
HIDDEN = [b"<svg onload=alert(1)>", b"<!doctype html><script>alert(1)</script>", b"%PDF-1.7", b""]


def image(data: bytes, media_type: str) -> Image:
    return Image(media_type=media_type, data=base64.b64encode(data).decode())


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder: Path = tmp_path_factory.mktemp("pictures")
    pictures = tuple(image(data, "image/png") for data in (*SHOWN.values(), *HIDDEN))
    odd = (Image(media_type="image/png", data="no base64!"), Image(url="https://evil.example/x.png"))
    with harken.open(folder / "store.db") as repo:
        events = [
            Prompt(content="look", message_id="m1", images=pictures + odd),
            Response(content="yes", message_id="m2"),
        ]
        keep(repo, events, session_id="s/agent 1")
        with serving(repo) as service, client(service, token(service, "context/read")) as asked:
            yield asked


@pytest.mark.parametrize("number", range(len(SHOWN)))
def test_a_picture_is_shown_as_what_its_bytes_say(asking: httpx.Client, number: int) -> None:
    media_type, data = list(SHOWN.items())[number]
    answer = asking.get(f"{API}/pictures/s%2Fagent%201/m1/0/{number}")

    assert (200, media_type, data) == (answer.status_code, answer.headers["content-type"], answer.content)
    assert "nosniff" == answer.headers["x-content-type-options"]


def test_what_is_no_picture_is_not_there(asking: httpx.Client) -> None:
    for number in range(len(SHOWN), len(SHOWN) + len(HIDDEN) + 3):
        assert (404, "not_found") == problem(asking.get(f"{API}/pictures/s%2Fagent%201/m1/0/{number}"))


@pytest.mark.parametrize(
    "rest", ["s/m1/0/0", "s%2Fagent%201/m2/0/0", "s%2Fagent%201/m1/1/0", "s/x", "a/b/c/d", "s/m/-1/0"]
)
def test_a_place_without_a_picture_is_not_there(asking: httpx.Client, rest: str) -> None:
    assert (404, "not_found") == problem(asking.get(f"{API}/pictures/{rest}"))


def test_the_id_of_a_session_may_hold_a_slash(asking: httpx.Client) -> None:
    assert PNG == asking.get(f"{API}/pictures/s/agent%201/m1/0/0").content
