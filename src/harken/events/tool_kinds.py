"""What kind of thing a tool does, by its name: for whoever draws calls, and for whoever counts them."""

from __future__ import annotations

import re
from functools import lru_cache

READ, SEARCH, EDIT, COMMAND, WEB, AGENT, TASK, ASK, OTHER = KINDS = (
    "read", "search", "edit", "command", "web", "agent", "task", "ask", "other",
)  # fmt: skip

SHELLS = frozenset({
    "bash", "exec", "execcommand", "execute", "executecommand", "localshell", "localshellcall", "powershell",
    "runcommand", "runshellcommand", "runterminalcmd", "shell", "shellcommand", "terminal", "unifiedexec",
})  # fmt: skip
EDITORS = frozenset({"strreplaceeditor", "strreplacebasededittool", "texteditor", "fileeditor"})
"""One tool for looking and for editing; `command` says which."""

_TOOLS = {
    READ: """
        cat listdir listdirectory listmcpresources listmcpresourcetemplates listmcpresourcestool ls lsp notebookread
        openfile read readfile readmanyfiles readmcpresource readmcpresourcetool skill view viewimage
    """,
    SEARCH: """
        codebasesearch filesearch find findfiles glob grep search searchfilecontent searchfiles toolsearch
        toolsearchcall
    """,
    EDIT: "applypatch createfile edit editfile multiedit notebookedit replace strreplace write writefile",
    COMMAND: "bashoutput jsrepl killbash killshell monitor python repl slashcommand writestdin",
    WEB: "fetch googlewebsearch webfetch websearch websearchcall",
    AGENT: """
        agent agentoutputtool closeagent consult delegate discuss followuptask getagentresult interruptagent listagents
        resumeagent sendinput sendmessage spawn spawnagent spawnagentsoncsv task taskoutput taskstop teamcreate
        teamdelete tell wait waitagent whisper
    """,
    TASK: """
        creategoal enterplanmode exitplanmode getgoal schedulewakeup taskcreate taskget tasklist taskupdate todoread
        todowrite updategoal updateplan writetodos
    """,
    ASK: "ask askquestion askuserquestion requestpermissions requestuserinput",
}
_BY_NAME = {name: kind for kind, names in _TOOLS.items() for name in names.split()} | dict.fromkeys(SHELLS, COMMAND)
_BY_WORD = (
    (WEB, ("web", "fetch", "http", "browser", "navigate", "url")),
    (SEARCH, ("search", "find", "grep", "glob", "query", "lookup")),
    (EDIT, ("edit", "replace", "patch", "insert", "write", "create", "save", "delete", "remove", "update", "rename")),
    (READ, ("read", "view", "open", "get", "list", "show", "cat")),
    (COMMAND, ("run", "exec", "execute", "shell", "command")),
    (AGENT, ("agent", "spawn", "delegate")),
)
"""What a tool that nobody knows does, by a word in its name."""
_MARKS = re.compile(r"[\W_]+")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_QUALIFIED = re.compile(r"[\w-]+(?:[./:][\w-]+)+")


@lru_cache(1 << 10)
def tool_kind(name: str) -> str:
    """What a tool does: one of `KINDS`."""
    name = name[:200]
    key = bare_name(name)
    if key in EDITORS:
        return EDIT
    if not is_foreign(name) and key in _BY_NAME:
        return _BY_NAME[key]
    words = {word.casefold() for word in _WORD.findall(own_name(name))}
    return next((kind for kind, some in _BY_WORD if words.intersection(some)), OTHER)


def bare_name(name: str) -> str:
    """A tool's own name without capitals and marks."""
    return _MARKS.sub("", own_name(name)).casefold()


def is_foreign(name: str) -> bool:
    """Whether it is the tool of an MCP server: `Task` means something else there."""
    return name.startswith("mcp__")


def own_name(name: str) -> str:
    """The tool's name without that of its server or namespace."""
    if is_foreign(name):
        return name.split("__", 2)[-1]
    return re.split(r"[./:]", name)[-1] if _QUALIFIED.fullmatch(name) else name
