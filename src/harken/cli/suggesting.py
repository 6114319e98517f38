"""What somebody meant who typed a command or an option that is not there; loaded only then."""

from __future__ import annotations

import difflib
from collections.abc import Collection

import click

MEANT = {
    "sessions": ("ls", "list", "dir", "session", "projects", "recent", "all"),
    "search": ("find", "grep", "rg", "query", "lookup", "where", "locate"),
    "log": ("history", "commits", "reflog", "changes"),
    "show": ("cat", "describe", "info", "inspect", "print", "head"),
    "view": ("open", "read", "dialog", "timeline", "transcript", "conversation", "messages", "tree"),
    "stats": ("cost", "costs", "usage", "tokens", "price", "spend", "count", "report", "daily", "monthly"),
    "forget": ("delete", "rm", "remove", "erase", "purge", "redact", "drop", "clean", "scrub"),
    "secrets": ("leaks", "keys", "passwords", "scan"),
    "resume": ("continue", "restore", "attach", "switch"),
    "export": ("save", "share", "html", "markdown", "md", "convert", "dump"),
    "materialize": ("checkout", "restore-file", "render"),
    "import": ("add", "sync", "load", "ingest", "pull", "fetch"),
    "watch": ("follow", "daemon", "tail"),
    "run": ("exec", "start", "wrap"),
    "fork": ("copy", "clone"),
    "checkpoint": ("commit", "put"),
    "fsck": ("check", "verify", "repair", "validate"),
    "gc": ("prune", "vacuum", "compress"),
    "doctor": ("status", "diagnose", "health"),
    "config": ("settings", "configure", "init", "set"),
    "annotate": ("note", "comment", "describe-commit"),
    "summarize": ("summary", "summaries", "summarise"),
    "index": ("reindex", "rebuild"),
    "sql": ("select", "db", "sqlite"),
    "undo": ("revert", "reset", "back"),
    "compact": ("squash",),
    "agents": ("agent", "subagents", "sub-agents"),
    "backup": ("cp", "mirror"),
    "completion": ("completions", "complete"),
}
"""A command, and the words by which people look for it."""

OPTIONS = {
    "-n": ("--limit", "--max", "--count", "--number", "--lines", "--head"),
    "-o": ("--output", "--out", "--file", "--outfile"),
    "--json": ("--format=json", "--output-json", "--jsonl", "-j"),
    "--since": ("--after", "--newer", "--days", "--from"),
    "--until": ("--before", "--older"),
    "--project": ("--folder", "--dir", "--directory", "--path", "--cwd", "--repo"),
    "--runtime": ("--agent", "--tool", "--source", "--provider"),
    "--all": ("-a", "--everything", "--agents", "--subagents"),
    "--in": ("--runtime", "--with", "--to"),
    "--to": ("--format", "--as", "--type"),
    "--format": ("--to", "--as", "--type"),
    "--yes": ("-y", "--force", "--confirm"),
    "--full": ("--long", "--verbose", "-v", "--whole"),
    "--match": ("--grep", "--filter", "--search", "--title"),
    "--by": ("--group-by", "--group", "--per"),
}
"""An option, and others that people try for it."""

FILTERS = {
    "agent": "reviewer",
    "runtime": "NAME",
    "project": "shop",
    "model": "opus",
    "tool": "Bash",
    "role": "human",
    "file": "runner.py",
    "since": "7d",
    "until": "2026-01-31",
    "session": "5b6258c8",
}
"""The filters of a query, each with a value."""
_COLOURS = ("--no-color", "--no-colour", "--no-colors", "--color", "--colour")
_COMMAND_OF = {word: command for command, words in MEANT.items() for word in words}


def command_for(word: str, known: Collection[str]) -> str | None:
    """The command that the word means, of those there are: one that is spelled like it, else one for the same job."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.8)
    meant = _COMMAND_OF.get(word.lower())
    return next((name for name in (*close, meant) if name in known), None) or next(
        iter(difflib.get_close_matches(word, known, n=1)), None
    )


def advice_for(problem: click.NoSuchOption) -> str:
    """What to do in place of giving an option that the command does not have; empty where nobody knows."""
    if problem.ctx is None:
        return ""
    wanted = problem.option_name
    if wanted in _COLOURS:
        return "NO_COLOR=1 before the command, or the configuration file, turns colours off."
    if problem.ctx.command.name == "search":
        words = (wanted.lstrip("-"), *(name.lstrip("-") for name, words in OPTIONS.items() if wanted in words))
        if (filter := next((word for word in words if word in FILTERS), None)) is not None:
            return f"In a query that is a filter: {filter}:{FILTERS[filter]}"
    known = {name for param in problem.ctx.command.params for name in (*param.opts, *param.secondary_opts)}
    meant = next((name for name, words in OPTIONS.items() if name in known and wanted in words), None)
    return f"Did you mean '{meant}'?" if meant else ""
