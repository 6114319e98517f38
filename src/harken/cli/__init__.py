"""The command line: parse, ask, show. One file per command, loaded when it is called.

Only this package reads the arguments, the environment and the home folder. The table below names every command with
its one line, so that `harken --help` loads none of them; a test holds the lines against the commands' own.
"""

from __future__ import annotations

import errno
import importlib
import inspect
import sys
from collections.abc import Sequence

import click

from harken import __version__
from harken.errors import HarkenError

from . import ui

COMMANDS: dict[str, tuple[str, str]] = {
    "agents": ("agents", "List the agents of a session"),
    "annotate": ("annotate", "Add a remark to a commit"),
    "backup": ("backup", "Copy the store while it is in use"),
    "branch": ("branch", "List, make, move or remove branches"),
    "chat": ("chat", "Talk with agents in a session that is kept"),
    "checkpoint": ("checkpoint", "Make a commit from a file or from stdin"),
    "compact": ("compact", "Fold a chain into a summary, and keep what it hides"),
    "completion": ("completion", "Print the completion script for a shell"),
    "config": ("config", "Show the configuration, and who says what"),
    "current-context": ("current_context", "Print the commit that the running agent stands on"),
    "diff": ("diff", "Say what one context knows that another does not"),
    "doctor": ("doctor", "Check the installation and the store, and say what is wrong"),
    "export": ("export", "Write a session as a page, Markdown, text, JSON lines or a trace, without secrets"),
    "forget": ("forget", "Take a session or a secret out of the store for good"),
    "fork": ("fork", "Start a branch from any commit"),
    "fsck": ("fsck", "Check the store, and repair it on request"),
    "gc": ("gc", "Remove what nothing needs"),
    "import": ("import_", "Take in the sessions of Claude Code, Codex and other runtimes"),
    "index": ("index", "Bring the index of words and numbers up to date"),
    "log": ("log", "Show the chain of commits behind a commit"),
    "materialize": ("materialize", "Write out the conversation that a commit stands for"),
    "moves": ("moves", "List where branches and tags have been moved"),
    "pin": ("pin", "Keep a commit's bytes for ever, or stop doing so"),
    "resolve": ("resolve", "Find what a principal knew at a time"),
    "resume": ("resume", "Continue a conversation in Claude Code, Codex or another runtime"),
    "run": ("run", "Run Claude Code, Codex or another runtime and keep what it knows as it goes"),
    "search": ("search", "Find what was said or done, in any session"),
    "secrets": ("secrets", "Find what looks like a key or a password"),
    "serve": ("serve", "Show the store as a page, and answer programs over HTTP or a socket"),
    "sessions": ("sessions", "List the sessions in the store"),
    "show": ("show", "Show one commit, with what was said about it"),
    "snapshot": ("snapshot", "Store a commit's whole conversation, so that the walk is short"),
    "sql": ("sql", "Ask the index a question in SQL"),
    "stats": ("stats", "Count tokens, what they cost, prompts and tools, each once"),
    "std": ("std", "Check, repair, write and show session documents (STD-001, STD-008)"),
    "summarize": ("summarize", "Write a line about each commit that has none"),
    "tag": ("tag", "List, make, move or remove tags"),
    "token": ("token", "Make, list and revoke tokens for programs that ask `harken serve`"),
    "trace": ("trace", "Follow a message back to where it came from and on to who heard it"),
    "undo": ("undo", "Take back the last move of a branch or tag"),
    "view": ("view", "Look at a session from one side or another"),
    "watch": ("watch", "Go on importing as sessions grow"),
}
"""Name to (module, first line of its help). The command is the module's function of the same name."""


_DISK_HINTS = {
    errno.ENOSPC: "the disk is full; nothing that was acknowledged is lost",
    errno.EDQUOT: "the quota is used up; nothing that was acknowledged is lost",
    errno.EROFS: "the file system is read-only",
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and loads a module only for the one that runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f".{COMMANDS[cmd_name][0]}", __name__)
        command: click.Command = getattr(module, cmd_name.replace("-", "_") + "_command")
        _keep_examples(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] == "help":  # as git has it
            if not args[1:]:
                ui.block(ctx.get_help())
                ctx.exit()
            args = [*args[1:], "--help"]
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as problem:
            from .suggesting import command_for  # only who mistyped needs it

            meant = command_for(args[0], COMMANDS)
            more = f"Did you mean '{meant}'?" if meant else "`harken --help` lists the commands."
            raise click.UsageError(f"{problem.message} {more}", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


def _keep_examples(command: click.Command) -> None:
    """Tell click to leave indented paragraphs of a help text as they are laid out: they are commands to copy."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    command.help = "\n\n".join("\b\n" + text if text.startswith("    ") else text for text in paragraphs)
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            _keep_examples(inner)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="harken")
@click.option(
    "--store",
    "location",
    envvar="HARKEN_STORE",
    metavar="PATH|URL",
    help="The store to use (default: HARKEN_STORE, the configuration's, or one in the user's data folder); or the "
    "service that has it, like http://localhost:8037 (with a token in HARKEN_TOKEN) or unix:/path/to/its/socket",
)
def harken(location: str | None) -> None:
    """Keep what agents did, what each of them heard and what each of them knew

    Data is printed on stdout, remarks on stderr; `--json` prints one object per line (docs/API.md lists the keys), and
    an error as {"error": {"code", "message", "hint"}} on stderr. Exit codes: 0 ok, 1 failure, 2 usage, 3 not found,
    4 conflict, 5 bad record under --strict, 9 corrupt.
    """


def main(args: Sequence[str] | None = None) -> None:
    """The entry point: runs a command and turns what went wrong into an exit code."""
    ui.replace_missing_streams()
    ui.be_lenient()
    words = list(sys.argv[1:] if args is None else args)
    sys.exit(_run(words, as_json=_wants_json(words)))


def _wants_json(words: list[str]) -> bool:
    """Whether errors are for a program too; what stands behind `--` is for somebody else."""
    return "--json" in (words[: words.index("--")] if "--" in words else words)


def _run(words: list[str], *, as_json: bool) -> int:
    """The exit code of a command; whatever went wrong is said on stderr."""
    try:
        result = harken.main(args=words, prog_name="harken", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as unexplained:
        problem = _explained(unexplained)
        if as_json:
            ctx = problem.ctx if isinstance(problem, click.UsageError) else None
            hint = ctx.get_usage() if ctx else "`harken COMMAND --help` says how it is used"
            ui.json_failure("bad_request", problem.format_message(), " ".join(hint.split()))
        else:
            problem.show()
        return problem.exit_code
    except HarkenError as problem:
        return _fail(_about_file(problem, words), as_json=as_json)
    except (KeyboardInterrupt, click.Abort):
        if as_json:
            ui.json_failure("interrupted", "interrupted")
        else:
            ui.note("interrupted")
        return 130
    except BrokenPipeError:
        ui.detach_stdout()
        return 0
    except OSError as problem:
        return _fail(_about_disk(problem), as_json=as_json)
    except Exception as problem:
        if not as_json:
            raise
        hint = "a fault of Harken itself; without --json it is told where"
        ui.json_failure("internal", f"{type(problem).__name__}: {problem}", hint)
        return 1
    return result if isinstance(result, int) else 0


def _about_disk(problem: OSError) -> HarkenError:
    """What a system call refused, as an error of ours; a removed working folder is the reason for many."""
    from .runtimes import working_folder

    if isinstance(problem, FileNotFoundError) and not str(problem.filename).startswith("/"):
        try:
            working_folder()
        except HarkenError as removed:
            return removed
    return HarkenError(str(problem), hint=_DISK_HINTS.get(problem.errno or 0))


def _about_file(problem: HarkenError, words: list[str]) -> HarkenError:
    """The error; where a file or a folder was named and a REF is wanted, with what to do about that."""
    from .options import is_file, is_folder

    for word in words if problem.code == "not_found" else ():
        if not str(problem).endswith(repr(word)):
            continue
        if is_file(word):
            problem.hint = f"it is a file; `harken import {word}` brings its session into the store"
        elif "/" in word and is_folder(word):
            problem.hint = f"it is a folder; `harken import {word}` brings the sessions in it into the store"
        elif _is_called_like_a_file(word):
            problem.hint = "nor is there a file of that name"
    return problem


def _is_called_like_a_file(word: str) -> bool:
    return word.startswith(("/", "./", "../", "~")) or word.endswith((".json", ".jsonl"))


def _explained(problem: click.ClickException) -> click.ClickException:
    """The same error; one about an option of `harken` itself says where that goes, any other which may be meant."""
    if isinstance(problem, click.NoSuchOption) and problem.option_name == "--store" and problem.ctx is not None:
        command = problem.ctx.command_path.removeprefix("harken ")
        text = f"--store goes before the command: `harken --store PATH {command} ...`"
        return click.UsageError(text, problem.ctx)
    if isinstance(problem, click.NoSuchOption):
        from .suggesting import advice_for  # only who mistyped needs it

        if advice := advice_for(problem):
            return click.UsageError(f"{problem.message} {advice}", problem.ctx)
    return problem


def _fail(problem: HarkenError, *, as_json: bool) -> int:
    if as_json:
        ui.json_failure(problem.code, str(problem), problem.hint)
    else:
        ui.failure(problem)
    return problem.exit_code
