"""`harken completion`: the script that makes a shell complete our commands."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, ShellComplete, get_completion_class

from . import harken, ui

SHELLS = ("bash", "zsh", "fish")


class BashScript(BashComplete):
    """Click's, which does not know that bash takes `runtime:codex` for three words, and forgets what was offered
    where a file may stand too."""

    source_template = r"""
%(complete_func)s() {
    local IFS=$'\n' response completion type value word glued= before= i
    local -a words=()

    for ((i = 0; i <= COMP_CWORD; i++)); do
        word="${COMP_WORDS[i]}"
        if [[ ($word == :* || $glued) && $i -gt 0 && $COMP_LINE == *"${words[-1]}$word"* ]] &&
            [[ $word || ${COMP_LINE:0:COMP_POINT} != *[[:space:]] ]]; then
            words[-1]+="$word"
        else
            words+=("$word")
        fi
        [[ $word == *: ]] && glued=1 || glued=
    done
    # What stands before the last colon is not replaced, and so must not be repeated.
    [[ $COMP_WORDBREAKS == *:* ]] && before="${words[-1]%%"${words[-1]##*:}"}"

    response=$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((${#words[@]} - 1)) %(complete_var)s=bash_complete $1)

    COMPREPLY=()
    for completion in $response; do
        IFS=',' read -r type value <<< "$completion"

        if [[ $type == 'dir' ]]; then
            compopt -o dirnames
        elif [[ $type == 'file' ]]; then
            compopt -o default
        elif [[ $type == 'plain' ]]; then
            COMPREPLY+=("${value#"$before"}")
            [[ $value == *: ]] && compopt -o nospace
        fi
    done

    return 0
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def completion_command(shell: str) -> None:
    """Print the completion script for a shell

    Load it once per shell, or put the line into the shell's start-up file:

        eval "$(harken completion bash)"
    """
    found: type[ShellComplete] | None = BashScript if shell == "bash" else get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"no completion for {shell}")
    ui.block(found(harken, {}, "harken", "_HARKEN_COMPLETE").source().lstrip())
