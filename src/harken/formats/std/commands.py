"""Whether a shell's command only looks, or does something. What is not known to look counts as doing.

This is no shell: words, operators, redirections and substitutions are told apart, and what each simple command is
called decides. The tables hold what agents really run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_LONGEST = 20_000
"""Characters of a command that is looked into; a longer one carries a file or a program."""
_DEEPEST = 8
"""How deep commands may lie in commands."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LOOKING = _words("""
    : [ [[ ack ag alias arch b3sum base64 basename bat break cal cat cd cksum cmp column comm continue cut date
    declare df diff dig dir dirname dirs du echo egrep exa exit export expr eza false fgrep file findstr fmt fold
    free getent grep groups head hexdump host id jobs join journalctl jq less let local locate look ls lsb_release
    lsblk lsof md5 md5sum more netstat nl nproc nslookup od paste pgrep ping popd printenv printf ps pstree pushd
    pwd pwdx read readlink readonly realpath return rev rg ripgrep seq set sha1sum sha256sum sha512sum shasum
    shift shopt sleep ss stat strings sum tac tail test tokei top tr tree true tty type umask uname uniq unset
    uptime users vmstat w wait wc whatis where whereis which who whoami xxd zcat zgrep
""")
"""Commands that change nothing outside the shell, whatever they are given; `sort -o` and the like are caught below."""

_KEYWORDS = _words("do then else elif if while until ! { } done fi esac")
_HEADERS = frozenset({"for", "case", "function"})
"""What stands up to the next operator is not run."""
_SHELLS = frozenset({"ash", "bash", "dash", "fish", "ksh", "sh", "zsh"})
_WRAPPERS = {
    "builtin": "",
    "command": "",
    "env": "-u -C --unset --chdir",
    "exec": "-a",
    "ionice": "-c -n",
    "nice": "-n --adjustment",
    "noglob": "",
    "nohup": "",
    "stdbuf": "-i -o -e",
    "sudo": "-u -g -h -p -C -U --user --group",
    "time": "-f -o",
    "timeout": "-k -s --kill-after --signal",
    "xargs": "-a -d -E -I -L -n -P -s --max-args --max-procs --replace --delimiter",
}
"""Commands that run the one that stands behind them, and their options that take a value."""

_VALUED = _words("-C -c -n -f -H -R -p --context --namespace --kubeconfig --repo --host --git-dir --prefix")
"""Options before a subcommand that take a value."""
_SUBCOMMANDS = {
    "apt": "list search show policy",
    "apt-cache": "search show policy depends",
    "brew": "list info search outdated deps config doctor",
    "cargo": "tree metadata search version",
    "conda": "list info search",
    "docker": "ps images logs inspect ls info version stats top port history diff search events",
    "gh": "list view status diff checks search",
    "git": "annotate blame cat-file check-attr check-ignore cherry count-objects describe diff diff-files diff-index"
    " diff-tree for-each-ref grep help log ls-files ls-remote ls-tree merge-base name-rev range-diff rev-list"
    " rev-parse shortlog show show-branch show-ref status var verify-commit version whatchanged",
    "go": "list env version doc",
    "helm": "list status get history show search version",
    "jj": "log status diff show st",
    "kubectl": "get describe logs top version explain api-resources cluster-info",
    "launchctl": "list print",
    "npm": "ls list view info show outdated explain why search root prefix bin ping whoami",
    "pip": "list show freeze check index inspect",
    "pip3": "list show freeze check index inspect",
    "pnpm": "ls list why outdated view root",
    "podman": "ps images logs inspect ls info version stats top port history diff",
    "rustup": "show which",
    "svn": "log status diff info list cat blame",
    "systemctl": "status show list-units list-unit-files is-active is-enabled cat",
    "terraform": "show output version providers",
    "tmux": "ls list-sessions list-windows list-panes capture-pane",
    "yarn": "list why info outdated",
}
"""Of commands with subcommands, those that look."""
_NOUNS = {
    "docker": "builder buildx compose config container context image network node secret service stack system volume",
    "gh": "auth gist issue label pr project release repo ruleset run secret variable workflow",
    "podman": "container image network pod volume",
}
"""What a subcommand may stand behind: `gh pr view`, `docker image ls`."""
_PREPARING = re.compile(r"activate(?:\.\w+)?|\.env(?:\.\w+)?|\.?\w*(?:rc|profile)|nvm\.sh")
"""Files that a shell reads to be set up for the commands that follow."""

_TOKEN = re.compile(
    r"""
      (?P<gap>[ \t\r]+|\\\r?\n)
    | (?P<comment>\#[^\n]*)
    | (?P<redirect>&>>?|[0-9]*(?:>>|>\||>&|<<<|<<-?|<>|<&|>|<))
    | (?P<break>\n|;+|\|\||\|&|\||&&|&|\(|\))
    | (?P<word>(?:[^\s;&|()<>"'\\]|\\[\s\S]|"(?:[^"\\]|\\[\s\S])*"|'[^']*')+)
    | (?P<rest>[\s\S])
    """,
    re.VERBOSE,
)
_QUOTED = re.compile(r"""\\[\s\S]|"(?:[^"\\]|\\[\s\S])*"|'[^']*'""")
_SUBSTITUTED = re.compile(r"\$\(([^()]*)\)|(?<!\\)`([^`]*)`")
_ARITHMETIC = re.compile(r"\$\(\([^()]*(?:\([^()]*\)[^()]*)*\)\)")
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_ESCAPED = re.compile(r'\\(["\\$`])')
_NOWHERE = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "$null", "nul", "NUL"})
_AWK_ACTS = re.compile(r'system\s*\(|>\s*"|\|\s*"|\|\s*getline')
_SED_ACTS = re.compile(r"(?:^|[;{}\n/0-9$])\s*[wW]\s+[^\s/]|/[gpI0-9]*w\s")


def only_looks(command: object) -> bool:
    """Whether a command, as a text or as a list of words, changes nothing."""
    if isinstance(command, str):
        return bool(command.strip()) and _looks(command, 0)
    if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        return _runs(list(command), 0)
    return False


def _looks(text: str, depth: int) -> bool:
    if len(text) > _LONGEST or depth > _DEEPEST:
        return False
    flat = _without_substitutions(text, depth)
    return flat is not None and all(_runs(words, depth) for words in _simple_commands(flat))


def _without_substitutions(text: str, depth: int) -> str | None:
    """The text with a word in place of each command in a command; None where one of those does something."""
    if "$(" not in text and "`" not in text:
        return text
    text = _ARITHMETIC.sub("0", _QUOTED.sub(_inert, text))
    for _ in range(_DEEPEST):
        inner = [one or other for one, other in _SUBSTITUTED.findall(text)]
        if not inner:
            return None if "$(" in text else text
        if not all(_looks(command, depth + 1) for command in inner):
            return None
        text = _SUBSTITUTED.sub("_", text)
    return None


def _inert(found: re.Match[str]) -> str:
    """A text in single quotes, in which nothing is substituted."""
    text = found[0]
    return text.replace("$(", "$_").replace("`", "_") if text[0] == "'" else text


def _simple_commands(text: str) -> Iterator[list[str]]:
    """The words of each simple command; a redirection into a file is a command of its own, which nobody knows."""
    words: list[str] = []
    redirect = ""
    documents: list[str] = []
    at = 0
    while found := _TOKEN.match(text, at):
        at = found.end()
        match found.lastgroup:
            case "word":
                word = _QUOTED.sub(_unquoted, found[0])
                if redirect:
                    documents += [word] if redirect.lstrip("0123456789") in ("<<", "<<-") else []
                    if ">" in redirect and not _goes_nowhere(redirect, word):
                        yield [">"]
                    redirect = ""
                else:
                    words.append(word)
            case "redirect":
                redirect = found[0]
            case "break":
                yield words
                words, redirect = [], ""
                if found[0] == "\n" and documents:
                    at = _behind_documents(text, at, documents)
                    documents = []
            case "rest":  # a quote that is never closed, a bracket that nobody opened: whatever it means
                words.append(found[0])
    yield words


def _unquoted(found: re.Match[str]) -> str:
    text = found[0]
    if text[0] == "\\":
        return text[1:]
    return _ESCAPED.sub(r"\1", text[1:-1]) if text[0] == '"' else text[1:-1]


def _goes_nowhere(redirect: str, target: str) -> bool:
    return target in _NOWHERE or (redirect.endswith(">&") and target.lstrip("-").isdigit()) or target == "-"


def _behind_documents(text: str, at: int, ends: Sequence[str]) -> int:
    """Where the command goes on behind the texts that were given in it."""
    for end in ends:
        closing = re.compile(rf"^\t*{re.escape(end)}[ \t\r]*$", re.MULTILINE).search(text, at)
        if closing is None:
            return len(text)
        at = closing.end()
    return at


def _runs(words: list[str], depth: int) -> bool:
    """Whether a simple command only looks."""
    if depth > _DEEPEST:
        return False
    at = 0
    while at < len(words) and (words[at] in _KEYWORDS or _ASSIGNED.match(words[at])):
        at += 1
    if at == len(words) or words[at] in _HEADERS:
        return True
    name, rest = words[at].replace("\\", "/").rpartition("/")[2].removesuffix(".exe"), words[at + 1 :]
    if rest in (["--version"], ["-V"]) or rest[-1:] == ["--help"]:
        return True
    if name in _WRAPPERS:
        return _wrapped(name, rest, depth)
    if name in _SHELLS:
        return _shell(rest, depth)
    if (rule := _RULES.get(name)) is not None:
        return rule(rest, depth)
    if name in _SUBCOMMANDS:
        return _subcommand(name, rest)
    return name in _LOOKING or name.casefold().startswith(("get-", "select-", "measure-", "test-path", "resolve-path"))


def _wrapped(name: str, rest: list[str], depth: int) -> bool:
    """What another command runs: its own options are passed over."""
    if name == "command" and rest[:1] and rest[0] in ("-v", "-V"):
        return True
    valued, at = _WRAPPERS[name].split(), 0
    while at < len(rest) and (rest[at].startswith("-") or (name in ("env", "sudo") and _ASSIGNED.match(rest[at]))):
        at += 2 if rest[at] in valued else 1
    at += name == "timeout"  # how long
    return _runs(rest[at:], depth + 1)


def _shell(rest: list[str], depth: int) -> bool:
    """`bash -lc "…"`: as the command inside."""
    for at, word in enumerate(rest):
        if re.fullmatch(r"-[a-z]*c", word):
            return at + 1 < len(rest) and _looks(rest[at + 1], depth + 1)
        if not word.startswith("-"):
            return False
    return False


def _subcommand(name: str, rest: list[str]) -> bool:
    plain = _plain(rest)
    looking = _SUBCOMMANDS[name].split()
    if plain and plain[0] in _NOUNS.get(name, "").split():
        plain = plain[1:]
    return bool(plain) and plain[0] in looking


def _plain(words: Sequence[str]) -> list[str]:
    """The words that are no options, nor values of those that stand before a subcommand."""
    plain: list[str] = []
    at = 0
    while at < len(words):
        if not words[at].startswith("-"):
            plain.append(words[at])
        elif not plain and words[at] in _VALUED:
            at += 1
        at += 1
    return plain


# -- commands that look or act by what they are given ------------------------------------------------------------------


def _git(rest: list[str], depth: int) -> bool:
    plain = _plain(rest)
    if not plain:
        return True
    name, given = plain[0], plain[1:]
    options = {word.partition("=")[0] for word in rest[rest.index(name) + 1 :] if word.startswith("-")}
    if "--output" in options:
        return False
    match name:
        case "branch":
            return options.isdisjoint(_BRANCH_ACTS) and (not given or not options.isdisjoint(_LISTS))
        case "tag":
            return not options & {"-d", "--delete", "-a", "-s", "-m"} and (not given or bool(options & _LISTS))
        case "stash" | "worktree" | "notes" | "bundle":
            return given[:1] in (["list"], ["show"], ["verify"])
        case "remote" | "submodule" | "reflog" | "bisect" | "lfs":
            return given[:1] in ([], ["show"], ["get-url"], ["status"], ["summary"], ["log"], ["ls-files"])
        case "config":
            reads = bool(options & {"--get", "--get-all", "--get-regexp", "--list", "-l"}) or given[:1] in (
                ["get"],
                ["list"],
            )
            return reads or (len(given) == 1 and not options & {"--unset", "--unset-all", "--edit", "-e"})
    return name in _SUBCOMMANDS["git"].split()


_BRANCH_ACTS = _words(
    "-d -D --delete -m -M --move -c -C --copy -f --force -u --set-upstream-to --unset-upstream --edit-description"
)
_LISTS = _words("-l --list --contains --no-contains --merged --no-merged --points-at -n -a -r --sort")


def _find(rest: list[str], depth: int) -> bool:
    """`find`, `fd`: looks, unless it deletes, writes, or runs what does not only look."""
    for at, word in enumerate(rest):
        if word in ("-delete", "-fls") or word.startswith("-fprint"):
            return False
        if word in ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"):
            return _runs([given for given in rest[at + 1 :] if given not in (";", "+")], depth + 1)
    return True


def _sed(rest: list[str], depth: int) -> bool:
    in_place = any(re.match(r"-[nErsuz]*i|--in-place", word) for word in rest)
    return not in_place and not any(_SED_ACTS.search(word) for word in rest if not word.startswith("-"))


def _awk(rest: list[str], depth: int) -> bool:
    return "inplace" not in rest and not any(_AWK_ACTS.search(word) for word in rest)


def _curl(rest: list[str], depth: int) -> bool:
    """Looks where it fetches and keeps nothing."""
    for at, word in enumerate(rest):
        if word in ("-X", "--request") and rest[at + 1 : at + 2] not in (["GET"], ["HEAD"]):
            return False
        if word in ("-o", "--output"):
            if not rest[at + 1 : at + 2] or rest[at + 1] not in _NOWHERE | {"-"}:
                return False
        elif re.match(r"-X(?!GET$|HEAD$).|-[a-zA-Z]*O|-[dFT]|--(?:data|form|upload-file|json|remote-name)", word):
            return False
    return True


def _wget(rest: list[str], depth: int) -> bool:
    return any(word in ("-qO-", "-O-", "--spider") for word in rest) or "-O -" in " ".join(rest)


def _sort(rest: list[str], depth: int) -> bool:
    return not any(re.match(r"-[a-zA-Z]*o|--output", word) for word in rest)


def _yq(rest: list[str], depth: int) -> bool:
    return not any(re.match(r"-[a-zA-Z]*i|--inplace|--in-place", word) for word in rest)


def _gh(rest: list[str], depth: int) -> bool:
    if _plain(rest)[:1] != ["api"]:
        return _subcommand("gh", rest)
    asked = [rest[at + 1 : at + 2] for at, word in enumerate(rest) if word in ("-X", "--method")]
    if asked:
        return asked == [["GET"]]
    return not any(word in ("-f", "-F", "--field", "--raw-field", "--input") for word in rest)


def _aws(rest: list[str], depth: int) -> bool:
    return any(word == "ls" or word.startswith(("describe-", "list-", "get-")) for word in _plain(rest)[1:2])


def _hostname(rest: list[str], depth: int) -> bool:
    return not _plain(rest)


def _source(rest: list[str], depth: int) -> bool:
    """Looks where it only makes the shell ready."""
    return bool(rest) and _PREPARING.fullmatch(rest[0].rpartition("/")[2]) is not None


_RULES = {
    ".": _source, "awk": _awk, "aws": _aws, "curl": _curl, "fd": _find, "fdfind": _find, "find": _find,
    "gawk": _awk, "gh": _gh, "git": _git, "gsed": _sed, "hostname": _hostname, "mawk": _awk, "sed": _sed,
    "sort": _sort, "source": _source, "wget": _wget, "yq": _yq,
}  # fmt: skip
