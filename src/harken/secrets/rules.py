"""The rules, each with the shape that its issuer gives to a secret. Every repetition in a pattern has a bound: what is
searched was written by strangers, and must not cost more than its length."""

from __future__ import annotations

import re
from dataclasses import dataclass

from harken.errors import BadRequest

_LEAST_PREFIX = 2


@dataclass(frozen=True, slots=True)
class Rule:
    """What one kind of secret looks like. The secret is the pattern's first group, or all of it where it has none."""

    name: str
    prefixes: tuple[bytes, ...]
    """Bytes of which every such secret has one."""
    pattern: re.Pattern[bytes]
    back: int = 0
    """How many bytes before the prefix the pattern begins."""
    samples: bool = True
    """Whether what is plainly a sample (`EXAMPLE`, `xxxx`) is left out."""


def own_rule(name: str, prefix: str, pattern: str) -> Rule:
    """A rule of the user's: what it is called, how every such secret begins, and a pattern that matches from there."""
    if not name or len(prefix.encode()) < _LEAST_PREFIX:
        raise BadRequest(
            f"the rule {name!r} cannot be used: its prefix {prefix!r} is too short",
            hint=f"a rule has a name, and a prefix of at least {_LEAST_PREFIX} characters that every such secret has",
        )
    try:
        compiled = re.compile(pattern.encode(), re.ASCII)
    except re.error as error:
        raise BadRequest(
            f"the rule {name!r} cannot be used: its pattern is not valid: {error}",
            hint="a pattern is a regular expression of Python's `re`",
        ) from error
    return Rule(name, (prefix.encode(),), compiled, samples=False)


# A secret begins where no word goes on; in JSON, that may be behind an escape such as \n or \u003d.
_START = r"(?:(?<![A-Za-z0-9_\-])|(?<=\\[bfnrt])|(?<=\\u[0-9a-fA-F]{4}))"
_END = r"(?![A-Za-z0-9_\-])"
_LINE = r"(?:(?<=\n)|(?<=\\n))"  # where a line begins; JSON has \n for the end of the one before
_LINES = (  # the inside of a private key, as a tool may print it
    rf"(?:{_LINE}(?:Version|Comment): [^\n\r\"\\]{{1,200}}"  # what PGP writes above a key
    rf"|{_LINE}[A-Za-z0-9_./\-]{{1,120}}:[0-9]{{1,6}}:"  # `grep -n`
    rf"|{_LINE}[ \t]{{0,16}}[>#*|]{{1,3}}"  # quoted, or in a comment
    r"|\xe2\x86\x92|\\+u2192"  # Claude Code's Read has `     2→` before a line; later versions have a tab
    r"|[A-Za-z0-9+/=\s:,]|-(?!----)|\\+[nrt/])"
)


def _rule(name: str, *prefixes: str, pattern: str, back: int = 0) -> Rule:
    return Rule(name, tuple(prefix.encode() for prefix in prefixes), re.compile(pattern.encode(), re.ASCII), back)


RULES: tuple[Rule, ...] = (
    _rule("anthropic-key", "sk-ant-", pattern=r"sk-ant-[a-z0-9]{2,20}-[A-Za-z0-9_\-]{20,256}"),
    _rule(
        "openai-key",
        "sk-proj-",
        "sk-svcacct-",
        "sk-admin-",
        pattern=r"sk-(?:proj|svcacct|admin)-[A-Za-z0-9_\-]{20,256}",
    ),
    _rule("openai-key", "T3BlbkFJ", pattern=r"sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}", back=23),
    _rule(
        "github-token",
        *("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        pattern=r"gh[opusr]_[A-Za-z0-9]{36,255}",  # wherever it stands: nothing else looks so
    ),
    _rule("github-token", "github_pat_", pattern=r"github_pat_[A-Za-z0-9_]{22,255}"),
    _rule("gitlab-token", "glpat-", pattern=r"glpat-[A-Za-z0-9_\-]{20,255}"),
    _rule("aws-access-key", "AKIA", "ASIA", pattern=_START + r"A[KS]IA[A-Z2-7]{16}" + _END),
    _rule("google-key", "AIza", pattern=r"AIza[A-Za-z0-9_\-]{35}" + _END),
    _rule("slack-token", "xox", pattern=_START + r"xox[abeoprs]-[A-Za-z0-9\-]{10,255}"),
    _rule("npm-token", "npm_", pattern=_START + r"npm_[A-Za-z0-9]{36}" + _END),
    _rule("pypi-token", "pypi-AgEI", pattern=r"pypi-AgEI[A-Za-z0-9_\-]{50,1000}"),
    _rule("hugging-face-token", "hf_", pattern=_START + r"hf_[A-Za-z0-9]{30,40}" + _END),
    _rule("sendgrid-key", "SG.", pattern=_START + r"SG\.[A-Za-z0-9_\-]{22}\.[A-Za-z0-9_\-]{43}" + _END),
    _rule("stripe-key", "k_live_", pattern=r"[rs]k_live_[A-Za-z0-9]{16,255}", back=1),
    _rule(
        "private-key",
        "-----BEGIN ",
        pattern=r"-----BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
        + f"{_LINES}{{16,65536}}"
        + r"(?:-----END (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----)?",
    ),
    _rule(
        "jwt",
        "eyJ",
        pattern=_START + r"eyJ[A-Za-z0-9_\-]{10,2000}\.eyJ[A-Za-z0-9_\-]{10,8000}\.[A-Za-z0-9_\-]{10,2000}",
    ),
    _rule("bearer-token", "Bearer ", pattern=r"Bearer ((?=[A-Za-z._~+/\-]{0,40}[0-9])[A-Za-z0-9._~+/\-]{20,4096}=*)"),
    _rule(
        "url-password",
        "://",
        r":\/\/",
        pattern=r""":\\?/\\?/[^\s:/@"'\\<>`]{0,128}:([^\s/@"'\\<>`]{3,128})@[A-Za-z0-9\[]""",
    ),
)
"""What is looked for where nothing else is said, the commonest issuers first."""
