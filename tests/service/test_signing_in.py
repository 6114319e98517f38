"""Tokens in their file, and a browser that is signed in."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from harken import BadRequest, Conflict, Corrupt, HarkenError, NotFound
from harken.clock import SECOND
from harken.service import tokens as token_module
from harken.service.routing import API
from harken.service.running import RunningService
from harken.service.settings import OWNER
from harken.service.tokens import BROWSER_LASTS, MOST_BROWSERS, MOST_WORDS, WORD_LASTS, LoginWords, TokenFile
from support.service import client, owner, problem, token


class SetClock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1_800_000_000 * SECOND

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def tokens(tmp_path: Path, clock: SetClock) -> TokenFile:
    return TokenFile(tmp_path / "store.db-tokens", now=clock)


def test_a_token_is_known_by_its_secret_and_kept_without_it(tokens: TokenFile) -> None:
    made = tokens.create("ci", ("context/write",), principal="ci", machine="runner-1")

    assert made.token == tokens.find(made.secret)
    assert tokens.find(made.secret + "x") is None
    assert tokens.path is not None
    assert 0o600 == tokens.path.stat().st_mode & 0o777
    assert made.secret not in tokens.path.read_text()
    assert made.secret.removeprefix("hk_") not in tokens.path.read_text()


def test_another_process_sees_at_once_what_was_made_and_revoked(tokens: TokenFile) -> None:
    other = TokenFile(tokens.path)
    made = tokens.create("ci", ("admin",))

    assert other.find(made.secret) is not None
    tokens.revoke("ci")
    assert other.find(made.secret) is None


def test_a_token_ends_when_it_was_said(tokens: TokenFile, clock: SetClock) -> None:
    made = tokens.create("short", ("admin",), seconds=60)

    clock.now += 59 * SECOND
    assert tokens.find(made.secret) is not None
    clock.now += SECOND
    assert tokens.find(made.secret) is None


def test_when_a_token_was_used_is_noted_to_the_minute(tokens: TokenFile, clock: SetClock) -> None:
    made = tokens.create("ci", ("admin",))

    tokens.note_use(made.token)
    used = clock.now
    clock.now += 30 * SECOND
    (known,) = tokens.all()
    tokens.note_use(known)

    assert [used] == [one.used for one in tokens.all()]


def test_what_makes_no_sense_makes_no_token(tokens: TokenFile) -> None:
    tokens.create("ci", ("admin",))

    with pytest.raises(Conflict, match="'ci' already"):
        tokens.create("ci", ("admin",))
    with pytest.raises(BadRequest, match="no grant everything"):
        tokens.create("x", ("everything",))
    with pytest.raises(BadRequest, match="no grant at all"):
        tokens.create("x", ())
    with pytest.raises(BadRequest, match="no name of a token"):
        tokens.create("../x", ("admin",))
    with pytest.raises(NotFound):
        tokens.revoke("nobody")


def test_a_file_that_others_may_write_to_is_not_trusted(tokens: TokenFile) -> None:
    made = tokens.create("ci", ("admin",))
    assert tokens.path is not None
    tokens.path.chmod(0o622)

    with pytest.raises(HarkenError, match="others may write"):
        TokenFile(tokens.path).find(made.secret)


def test_a_file_that_is_no_list_of_tokens_says_so(tokens: TokenFile) -> None:
    assert tokens.path is not None
    tokens.path.write_text("[")
    tokens.path.chmod(0o600)

    with pytest.raises(Corrupt, match="no list of tokens"):
        tokens.all()


def test_many_at_once_lose_no_token(tokens: TokenFile) -> None:
    files = [TokenFile(tokens.path) for _ in range(4)]

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda number: files[number % 4].create(f"t{number}", ("admin",)), range(24)))

    assert {one.token.name for one in made} == {one.name for one in tokens.all()}


def test_who_asks_does_not_wait_for_who_writes(tokens: TokenFile) -> None:
    made = tokens.create("ci", ("admin",))

    with tokens._changing():
        found: list[object] = []
        thread = threading.Thread(target=lambda: found.append(tokens.find(made.secret)))
        thread.start()
        thread.join(5)
        assert [made.token] == found


# -- words -------------------------------------------------------------------------------------------------------------


def test_a_word_is_good_once_and_for_ten_minutes() -> None:
    now = [0.0]
    words = LoginWords(monotonic=lambda: now[0])
    first, second = words.new(), words.new()

    assert words.take(first)
    assert not words.take(first)
    now[0] = WORD_LASTS
    assert not words.take(second)
    assert not words.take("never")


def test_only_the_newest_words_are_kept() -> None:
    words = LoginWords()
    made = [words.new() for _ in range(MOST_WORDS + 1)]

    assert [False] + [True] * MOST_WORDS == [words.take(word) for word in made]


# -- the browser -------------------------------------------------------------------------------------------------------


@pytest.fixture
def browser(service: RunningService) -> Iterator[httpx.Client]:
    with client(service) as asking:
        yield asking


def word_of(service: RunningService) -> str:
    """The word of the address that is printed."""
    return urlsplit(service.login_url()).fragment.removeprefix("token=")


def test_the_printed_address_signs_a_browser_in_once(service: RunningService, browser: httpx.Client) -> None:
    word = word_of(service)

    signed_in = browser.post(f"{API}/login", json={"word": word})

    assert 200 == signed_in.status_code
    assert ["admin"] == signed_in.json()["grants"]
    assert 200 == browser.post(f"{API}/sessions", json={}).status_code
    with client(service) as other:
        assert (401, "not_signed_in") == problem(other.post(f"{API}/login", json={"word": word}))


def test_the_cookie_is_for_the_server_alone(service: RunningService, browser: httpx.Client) -> None:
    answer = browser.post(f"{API}/login", json={"word": word_of(service)})
    (cookie,) = answer.headers.get_list("set-cookie")
    name, *flags = cookie.split("; ")

    assert name.startswith(f"harken_{service.port}=hk_")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(flags)
    (lasts,) = [flag for flag in flags if flag.startswith("Max-Age")]
    assert BROWSER_LASTS - 10 < int(lasts.partition("=")[2]) <= BROWSER_LASTS


def test_a_browser_that_signs_out_is_out(service: RunningService, browser: httpx.Client) -> None:
    browser.post(f"{API}/login", json={"word": word_of(service)})
    cookies = dict(browser.cookies)

    assert 204 == browser.post(f"{API}/logout", json={}).status_code
    with client(service, cookie="; ".join(f"{name}={value}" for name, value in cookies.items())) as other:
        assert (401, "not_signed_in") == problem(other.post(f"{API}/sessions", json={}))


def test_a_token_signs_a_browser_in_with_its_grants_until_it_is_revoked(
    service: RunningService, browser: httpx.Client
) -> None:
    secret = token(service, "context/read", name="phone")

    assert ["context/read"] == browser.post(f"{API}/login", json={"word": secret}).json()["grants"]
    assert 200 == browser.post(f"{API}/sessions", json={}).status_code
    assert (403, "not_allowed") == problem(browser.post(f"{API}/gc", json={}))
    service.app.tokens.revoke("phone")
    assert (401, "not_signed_in") == problem(browser.post(f"{API}/sessions", json={}))


def test_a_token_that_signs_in_again_and_again_takes_no_place_from_others(tokens: TokenFile, clock: SetClock) -> None:
    own, by = tokens.sign_in(None), tokens.create("phone", ("context/read",)).token
    made = []
    for _ in range(MOST_BROWSERS + 5):
        clock.now += SECOND
        made.append(tokens.sign_in(by))

    assert [False] * 5 + [True] * MOST_BROWSERS == [tokens.find(one.secret) is not None for one in made]
    assert tokens.find(own.secret) is not None
    assert 2 + MOST_BROWSERS == len(tokens.all())


def test_browsers_are_not_counted_among_the_tokens_of_programs(
    tokens: TokenFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_module, "MOST_TOKENS", 2)
    by = tokens.create("phone", ("context/read",)).token
    for _ in range(4):
        tokens.sign_in(by)

    assert "ci" == tokens.create("ci", ("context/write",)).token.name
    with pytest.raises(Conflict):
        tokens.create("more", ("context/write",))
    assert tokens.sign_in(None).token.is_browser


def test_a_browsers_own_cookie_signs_no_other_in(service: RunningService, browser: httpx.Client) -> None:
    browser.post(f"{API}/login", json={"word": word_of(service)})
    cookie = browser.cookies[f"harken_{service.port}"]

    with client(service) as other:
        assert 401 == other.post(f"{API}/login", json={"word": cookie}).status_code


def test_a_form_of_another_page_cannot_use_the_cookie(service: RunningService, browser: httpx.Client) -> None:
    browser.post(f"{API}/login", json={"word": word_of(service)})

    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        answer = browser.post(f"{API}/sessions", content=b"{}", headers={"content-type": kind})
        assert (415, "bad_request") == problem(answer)
    assert 415 == browser.post(f"{API}/sessions").status_code


def test_a_cookie_of_a_server_on_another_port_is_none_of_ours(service: RunningService, browser: httpx.Client) -> None:
    secret = token(service, "admin")

    with client(service, cookie=f"harken_1={secret}") as other:
        assert 401 == other.post(f"{API}/sessions", json={}).status_code


def test_the_word_is_never_in_the_address_that_a_server_sees(service: RunningService) -> None:
    assert service.login_url().startswith(f"{service.url}#token=")


def test_the_owner_needs_no_token_over_the_socket_and_a_token_there_is_only_itself(service: RunningService) -> None:
    assert service.socket is not None
    with owner(service.socket) as asking:
        assert 200 == asking.post(f"{API}/gc", json={"dry_run": True}).status_code
        less = {"authorization": f"Bearer {token(service, 'context/read')}"}
        assert (403, "not_allowed") == problem(asking.post(f"{API}/gc", json={"dry_run": True}, headers=less))


def test_a_browser_can_be_signed_in_where_nothing_can_be_written(
    tokens: TokenFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(token_module, "write_whole", refuse)
    made = tokens.sign_in(None)

    assert made.token == tokens.find(made.secret)
    with pytest.raises(OSError, match="Read-only"):
        tokens.create("ci", ("admin",))
    tokens.sign_out(made.token)
    assert tokens.find(made.secret) is None


def test_no_token_can_be_called_as_the_owner_is(tokens: TokenFile) -> None:
    """Limits and the log go by the name."""
    tokens.create("socket", ("context/read",))

    assert OWNER.name not in {one.name for one in tokens.all()}
    with pytest.raises(BadRequest):
        tokens.create(OWNER.name, ("context/read",))
