"""A command line taken apart, for runtimes to make a plan of. Pure: lists of words in, values out.

A wrapper needs three things from the words the user typed: the prompt (the stream does not repeat it), how the answer
was to be shown, and where to put words of its own. A table names the options that take a value; an option that stands
in no table is taken to be a switch, as most of them are.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from .base import Template

NONE: frozenset[str] = frozenset()


def option_names(text: str) -> frozenset[str]:
    """The options named in a text, with blanks between them."""
    return frozenset(text.split())


class OptionTable(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a program that take values."""

    one: frozenset[str] = NONE
    """Those that take one."""
    many: frozenset[str] = NONE
    """Those that take all words up to the next option."""
    perhaps: frozenset[str] = NONE
    """Those that take one or none."""


class CommandWords(msgspec.Struct, frozen=True):
    """A command line taken apart: plain words with their places, and options with their values."""

    plain: list[tuple[int, str]]
    options: dict[str, str]


def take_apart(words: Sequence[str], table: OptionTable) -> CommandWords:
    """The plain words and the options of a command line."""
    plain: list[tuple[int, str]] = []
    options: dict[str, str] = {}
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            plain += list(enumerate(words[at:], at))
            break
        if not word.startswith("-") or word == "-":
            plain.append((at - 1, word))
            continue
        name, equals, value = word.partition("=")
        if equals:
            options[name] = value
            continue
        options[word] = ""
        if word in table.one and at < len(words):
            options[word] = words[at]
            at += 1
        elif word in table.many or word in table.perhaps:
            while at < len(words) and not words[at].startswith("-"):
                options[word] = words[at]
                at += 1
                if word in table.perhaps:
                    break
    return CommandWords(plain, options)


def without_option(words: Sequence[str], option: str) -> list[str]:
    """The words without an option and its value."""
    left: list[str] = []
    skip = False
    for at, word in enumerate(words):
        if word == "--":
            return [*left, *words[at:]]
        if skip:
            skip = False
        elif word == option:
            skip = True
        elif not word.startswith(option + "="):
            left.append(word)
    return left


def with_template(template: Template, words: Sequence[str]) -> list[str]:
    """The words behind what a template says, in the options that several programs have for it."""
    options = {
        "--model": template.model,
        "--system-prompt": template.system_prompt,
        "--append-system-prompt": template.append_system_prompt,
    }
    said = [word for option, value in options.items() if value for word in (option, value)]
    return [*said, *template.arguments, *words]
