"""Secrets are found by their shape, wherever they stand, and what is masked holds nothing of them."""

from __future__ import annotations

import itertools
import json
import random
import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken import secrets
from harken.errors import BadRequest
from harken.secrets import FoundSecret


def _letters(count: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    return "".join(random.Random(count).choices(alphabet, k=count))


URL_SAFE = string.ascii_letters + string.digits + "-_"
# Put together here, so that no scanner takes this file for a leak.
SECRETS = {
    "anthropic-key": "sk-" + "ant-api03-" + _letters(60),
    "openai-key": "sk-" + "proj-" + _letters(48),
    "github-token": "ghp" + "_" + _letters(36),
    "gitlab-token": "glpat" + "-" + _letters(20),
    "aws-access-key": "AKIA" + _letters(16, string.ascii_uppercase + "234567"),
    "google-key": "AIza" + _letters(35),
    "slack-token": "xoxb" + "-123456789012-" + _letters(24),
    "npm-token": "npm" + "_" + _letters(36),
    "pypi-token": "pypi-" + "AgEI" + _letters(60),
    "hugging-face-token": "hf" + "_" + _letters(34),
    "sendgrid-key": "SG" + "." + _letters(22) + "." + _letters(43),
    "stripe-key": "sk" + "_live_" + _letters(24),
    "private-key": "-----BEGIN RSA " + "PRIVATE KEY-----\n" + _letters(64) + "\n-----END RSA " + "PRIVATE KEY-----",
    "jwt": "eyJ" + _letters(20) + ".eyJ" + _letters(40) + "." + _letters(43),
    "bearer-token": _letters(40),
    "url-password": "h4rd-t0-guess!",
}
BEFORE = {"bearer-token": "Authorization: Bearer ", "url-password": "postgres://owner:"}
BEHIND = {"url-password": "@db.internal/data"}


def _text(rule: str) -> str:
    return f"first line\n{BEFORE.get(rule, '')}{SECRETS[rule]}{BEHIND.get(rule, '')}\nlast line"


class TestEveryRule:
    def test_there_is_a_secret_for_each(self) -> None:
        assert {rule.name for rule in secrets.RULES} == SECRETS.keys()

    @pytest.mark.parametrize("rule", SECRETS)
    def test_finds_its_secret_and_no_more(self, rule: str) -> None:
        data = _text(rule).encode()

        found = list(secrets.find(data))

        assert [(rule, SECRETS[rule].encode())] == [(f.rule, data[f.start : f.end]) for f in found]

    @pytest.mark.parametrize("rule", SECRETS)
    def test_finds_it_in_a_line_of_json(self, rule: str) -> None:
        data = json.dumps({"content": json.dumps({"text": _text(rule)})}).encode()

        found = list(secrets.find(data))

        assert [rule] == [f.rule for f in found]
        assert SECRETS[rule].split("\n")[0].encode() in data[found[0].start : found[0].end]

    @pytest.mark.parametrize("rule", SECRETS)
    def test_masks_it(self, rule: str) -> None:
        text, found = secrets.mask(f"é {_text(rule)}")

        assert f"é first line\n{BEFORE.get(rule, '')}[masked: {rule}]{BEHIND.get(rule, '')}\nlast line" == text
        assert [rule] == [f.rule for f in found]


class TestAPrivateKeyThatAToolPrinted:
    HALVES = (_letters(64), _letters(63))

    def _is_found(self, text: str) -> None:
        for data in (text, json.dumps(text), json.dumps(text, ensure_ascii=False), json.dumps(json.dumps(text))):
            raw = bytearray(data.encode())
            for found in secrets.find(bytes(raw)):
                raw[found.start : found.end] = b"*" * (found.end - found.start)
            assert not [half for half in self.HALVES if half.encode() in raw]
            assert not [half for half in self.HALVES if half in secrets.mask(data)[0]]

    @pytest.mark.parametrize(
        "before",
        ["     {}→", "     {}\t", "{}:", "conf/key.pem:{}:", "+", "-", "> ", "    > ", "# ", " * ", "| ", "// "],
    )
    def test_is_found_whatever_stands_before_each_line(self, before: str) -> None:
        begin, end = "-----BEGIN RSA " + "PRIVATE KEY-----", "-----END RSA " + "PRIVATE KEY-----"
        lines = [begin, *self.HALVES, end]

        self._is_found("".join(f"{before.format(number)}{line}\n" for number, line in enumerate(lines, 1)))

    @pytest.mark.parametrize("head", ["Version: GnuPG v1.4.11 (GNU/Linux)", "Comment: GPGTools - https://gpgtools.org"])
    def test_is_found_below_what_pgp_writes_above_it(self, head: str) -> None:
        kind = "PGP " + "PRIVATE KEY BLOCK-----"

        self._is_found("\n".join([f"-----BEGIN {kind}", head, "", *self.HALVES, f"-----END {kind}"]))


class TestWhatIsNoSecret:
    @pytest.mark.parametrize(
        "text",
        [
            "AKIAIOSFODNN7EXAMPLE",
            "sk-ant-api03-xxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "https://user:${PASSWORD}@host",
            "https://user:password@host",
            "https://example.org:8080/path@home",
            "Bearer authentication-is-described-below",
            "task-anthropic-and-proj-files-are-here-for-you",
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        ],
    )
    def test_is_left_alone(self, text: str) -> None:
        assert (text, []) == secrets.mask(text)

    def test_text_with_half_a_surrogate_pair_is_masked_too(self) -> None:
        text, _ = secrets.mask("\ud800 " + SECRETS["google-key"])

        assert "\ud800 [masked: google-key]" == text


@pytest.mark.parametrize("before", ["GH_TOKEN_", "mcp__hub__", "token-", "x"])
def test_a_token_that_looks_like_nothing_else_is_found_inside_a_word(before: str) -> None:
    assert f"{before}[masked: github-token]" == secrets.mask(before + SECRETS["github-token"])[0]


class TestLettersThatComeByChance:
    @pytest.mark.parametrize("word", ["my_", "My-", "mY_", "YOUR-", "your_"])
    def test_make_no_sample_of_a_real_key(self, word: str) -> None:
        key = "sk-" + "ant-api03-" + _letters(40) + word + _letters(50)

        assert ("[masked: anthropic-key]", 1) == ((masked := secrets.mask(key))[0], len(masked[1]))

    def test_hide_next_to_no_key(self) -> None:
        chance = random.Random(1)
        keys = ["sk-" + "ant-api03-" + "".join(chance.choices(URL_SAFE, k=95)) for _ in range(5000)]

        assert [] == [key for key in keys if not list(secrets.find(key.encode()))]

    @pytest.mark.parametrize(
        "text", ["sk-" + "ant-your-key-goes-in-this-place", "sk-" + "proj-my-secret-key-1234567890"]
    )
    def test_are_not_taken_for_words_that_stand_alone(self, text: str) -> None:
        assert (text, []) == secrets.mask(text)


class TestOwnRules:
    def test_find_what_they_describe(self) -> None:
        rule = secrets.own_rule("house-key", "HOUSE-", r"HOUSE-[0-9]{8}")

        assert [FoundSecret(4, 18, "house-key")] == list(secrets.find(b"the HOUSE-12345678!", [rule]))

    def test_may_have_a_group_for_the_secret_itself(self) -> None:
        rule = secrets.own_rule("pin", "pin=", r"pin=([0-9]{4})")

        assert ("pin=[masked: pin];", [FoundSecret(4, 8, "pin")]) == secrets.mask("pin=1234;", [rule])

    def test_that_end_inside_a_character_break_no_text(self) -> None:
        rule = secrets.own_rule("odd", "é", r"(?s)é.")

        text, _ = secrets.mask("éü", [rule])

        assert text.startswith("[masked: odd]")

    @pytest.mark.parametrize("prefix, pattern", [("", "a"), ("a", "a"), ("ab", "a(")])
    def test_that_cannot_work_are_refused(self, prefix: str, pattern: str) -> None:
        with pytest.raises(BadRequest) as refused:
            secrets.own_rule("mine", prefix, pattern)

        assert "'mine'" in str(refused.value) and refused.value.hint


class TestTwoRulesAtOnePlace:
    def test_give_spans_that_do_not_overlap(self) -> None:
        data = b"Bearer " + SECRETS["jwt"].encode()

        spans = list(secrets.find(data))

        assert [(7, len(data))] == [(f.start, f.end) for f in spans]

    @given(st.lists(st.sampled_from([*SECRETS.values(), "x", " ", "\n", "://a:", "@b"]), max_size=12))
    def test_whatever_stands_together_is_covered_once_and_in_order(self, parts: list[str]) -> None:
        data = "".join(parts).encode()

        spans = [(f.start, f.end) for f in secrets.find(data)]

        assert all(start < end for start, end in spans)
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))


class TestHostileText:
    @pytest.mark.parametrize(
        "unit", ["eyJ", "://a", "-----BEGIN PRIVATE KEY-----", "sk-ant-a-", "xox", "Bearer ", "://"]
    )
    def test_costs_no_more_than_its_length(self, unit: str) -> None:
        data = (unit * (300_000 // len(unit))).encode()

        began = time.process_time()
        list(secrets.find(data))

        assert time.process_time() - began < 2
