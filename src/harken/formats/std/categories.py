"""What kind of work a call is: one of the five categories of STD-001."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from harken.events.tool_kinds import EDITORS, SHELLS, bare_name, is_foreign, own_name

from .commands import only_looks

ToolCategory = Literal["perception", "action", "interaction", "planning", "task_management"]

_TOOLS: dict[ToolCategory, str] = {
    "perception": """
        agentoutputtool bashoutput codebasesearch fetch filesearch find findfiles getagentresult glob
        googlewebsearch grep listdir listdirectory listmcpresources listmcpresourcestool listmcpresourcetemplates ls
        lsp monitor notebookread openfile read readfile readmanyfiles readmcpresource readmcpresourcetool search
        searchfilecontent searchfiles skill slashcommand taskoutput toolsearch toolsearchcall view viewimage
        webfetch websearch websearchcall
    """,
    "action": """
        applypatch artifact computer createfile edit editfile enterworktree exitworktree imagegeneration
        imagegenerationcall jsrepl killbash killshell multiedit notebookedit python repl replace strreplace taskstop
        write writefile
    """,
    "interaction": """
        agent askquestion askuserquestion brief closeagent followuptask interruptagent listagents requestpermissions
        requestuserinput resumeagent sendinput sendmessage sendusermessage spawnagent spawnagentsoncsv
        structuredoutput task teamcreate teamdelete wait waitagent
    """,
    "planning": "enterplanmode exitplanmode",
    "task_management": """
        creategoal getgoal schedulewakeup taskcreate taskget tasklist taskupdate todoread todowrite updategoal
        updateplan writetodos
    """,
}
"""Tools by their names without capitals and marks. Codex's `update_plan` keeps a list of things to do, as `TodoWrite`
does; a skill is text that is read; waiting for another agent is dealing with it."""
_BY_NAME = {name: category for category, names in _TOOLS.items() for name in names.split()}

_VERBS: dict[ToolCategory, str] = {
    "perception": """
        analyze browse check compare count describe diff evaluate export fetch find get glob grep info inspect list
        load lookup peek preview query read resolve retrieve scan screenshot search show snapshot stat status
        summarize view watch
    """,
    "action": """
        add append apply archive assign build cancel clear click close commit copy create delete deploy disable drag
        edit enable exec execute fill format hover import insert install invoke kill launch make merge modify move
        navigate notify open patch post press publish push put remove rename replace reply resize restart revert run
        save scroll select send set start stop submit sync trigger type uninstall update upload upsert write
    """,
    "interaction": "ask consult delegate discuss elicit handoff message report say spawn tell whisper",
    "planning": "plan",
    "task_management": "todo todos",
}
"""What a tool that nobody knows does, by the first of these words in its name."""
_BY_VERB = {verb: category for category, verbs in _VERBS.items() for verb in verbs.split()}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def tool_category(name: str, params: Mapping[str, Any] | None = None) -> ToolCategory:
    """The category of a call. A shell's is told by its command: `perception` where it only looks. A tool that is not
    known is told by the verb in its name; `action` where that says nothing, since it may have done anything."""
    key = bare_name(name)
    given: Mapping[str, Any] = params if isinstance(params, Mapping) else {}
    if key in SHELLS and not is_foreign(name):
        return "perception" if only_looks(command_of(given)) else "action"
    if key in EDITORS:
        return "perception" if given.get("command") == "view" else "action"
    if key == "writestdin":  # Codex waits for a running command by writing nothing to it
        return "action" if given.get("chars") else "perception"
    if not is_foreign(name) and key in _BY_NAME:
        return _BY_NAME[key]
    words = (word.casefold() for word in _WORD.findall(own_name(name)[:200]))
    return next((_BY_VERB[word] for word in words if word in _BY_VERB), "action")


def command_of(params: Mapping[str, Any]) -> object:
    """What a shell was told to run: a text, or a list of words; None where it is not said."""
    for key in ("command", "cmd", "script"):
        if (found := params.get(key)) is not None:
            return found
    action = params.get("action")  # Codex's local shell
    return command_of(action) if isinstance(action, Mapping) and "action" not in action else None
