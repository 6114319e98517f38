"""Words and times that mean what the standard has a word for: the tables that checks and repairs read."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache

from harken import clock

from .model_base import STATUSES, Status

_MEANINGS = {
    "good": """
        success successful succeeded succeed completed complete done finished finish ok okay passed pass resolved closed
        delivered 成功 已成功 完成 已完成 全部完成 已结束 通过 已通过 执行成功 完了 成功しました 완료 성공
        erledigt abgeschlossen fertig erfolgreich completado terminado éxito exitoso terminé réussi succès
        concluído sucesso выполнено завершено успешно
    """,
    "bad": """
        failed failure fail error errored crashed timeout timed_out exception
        失败 已失败 错误 出错 执行失败 失敗 エラー 실패
        fehlgeschlagen fehler gescheitert fallido fallado échoué échec erreur falhou falha ошибка неудача
    """,
    "running": """
        in_progress inprogress running active ongoing started working processing wip pending todo open
        进行中 执行中 处理中 進行中 実行中 진행중 in_arbeit läuft en_curso en_progreso en_cours em_andamento в_процессе
    """,
    "stopped": """
        aborted abort cancelled canceled cancel interrupted stopped killed terminated 中止 已中止 终止
        已终止 取消 已取消 中断 キャンセル 취소 abgebrochen cancelado annulé отменено
    """,
    "half": "partial partially partially_completed partial_success incomplete 部分完成",
}
_MEANING = {word: meaning for meaning, words in _MEANINGS.items() for word in words.split()}
_STATUS = {"good": ("success", "completed"), "bad": ("failed",), "running": ("in_progress",), "half": ("partial",)}

OTHER_WORDS: dict[str, str] = {
    # phases
    "understanding": "understand", "analysis": "understand", "analyze": "understand", "exploration": "explore",
    "research": "explore", "planning": "plan", "design": "plan", "execution": "execute", "implement": "execute",
    "implementation": "execute", "coding": "execute", "verification": "verify", "testing": "verify", "test": "verify",
    "validation": "verify", "review": "verify",
    "理解": "understand", "分析": "understand", "需求分析": "understand", "探索": "explore", "调研": "explore",
    "规划": "plan", "计划": "plan", "设计": "plan", "执行": "execute", "实施": "execute", "实现": "execute",
    "开发": "execute", "编码": "execute", "验证": "verify", "测试": "verify", "检查": "verify", "审查": "verify",
    "混合": "mixed",
    # messages
    "任务分配": "task_assignment", "分配任务": "task_assignment", "任务下发": "task_assignment",
    "任务进度": "task_progress", "进度更新": "task_progress", "任务完成": "task_completion",
    "审查请求": "review_request", "评审请求": "review_request", "审查结果": "review_result",
    "评审结果": "review_result", "反馈": "feedback", "中止": "abort", "终止": "abort", "确认": "acknowledgment",
    # verdicts
    "approve": "approved", "accepted": "approved", "lgtm": "approved", "reject": "rejected",
    "request_changes": "changes_requested", "needs_changes": "changes_requested",
    "change_requested": "changes_requested", "needs_revision": "changes_requested", "needs_work": "changes_requested",
    "pass": "approved", "passed": "approved", "approved_with_comments": "approved",
    "approve_with_comments": "approved", "approved_with_suggestions": "approved",
    "通过": "approved", "已通过": "approved", "批准": "approved", "需要修改": "changes_requested",
    "需修改": "changes_requested", "要求修改": "changes_requested", "拒绝": "rejected", "驳回": "rejected",
    "genehmigt": "approved", "freigegeben": "approved", "abgelehnt": "rejected", "zurückgewiesen": "rejected",
    "aprobado": "approved", "rechazado": "rejected", "aprovado": "approved", "rejeitado": "rejected",
    "approuvé": "approved", "rejeté": "rejected", "承認": "approved", "却下": "rejected", "要修正": "changes_requested",
    # patterns and modes
    "masterworker": "master_worker", "orchestrator_worker": "master_worker", "hierarchical": "master_worker",
    "p2p": "peer_to_peer", "peer": "peer_to_peer", "sequential": "pipeline", "sequence": "pipeline",
    "multi": "multi_agent", "multiagent": "multi_agent", "multi_agents": "multi_agent", "team": "multi_agent",
    "single_agent": "single", "singleagent": "single", "solo": "single",
    # levels
    "normal": "medium", "mid": "medium", "urgent": "high", "critical": "high",
    "p0": "high", "p1": "high", "p2": "medium", "p3": "low",
    "高": "high", "中": "medium", "低": "low", "hoch": "high", "mittel": "medium", "niedrig": "low", "gering": "low",
    "alta": "high", "media": "medium", "baja": "low", "baixa": "low", "haute": "high", "élevée": "high",
    "moyenne": "medium", "basse": "low", "faible": "low",
    # categories of calls, phases by whom, severities
    "taskmanagement": "task_management", "communication": "interaction", "execution_action": "action",
    "assistant": "agent", "ai": "agent", "llm": "agent", "user": "human", "automatic": "auto", "system": "auto",
    "blocker": "critical", "must": "must_fix", "should": "should_fix",
    # messages
    "assignment": "task_assignment", "progress": "task_progress", "completion": "task_completion",
    "task_complete": "task_completion", "task_completed": "task_completion", "acknowledgement": "acknowledgment",
    "ack": "acknowledgment", "acknowledge": "acknowledgment", "acknowledged": "acknowledgment",
    "assign": "task_assignment", "assign_task": "task_assignment", "task_assigned": "task_assignment",
    "delegate": "task_assignment", "delegation": "task_assignment", "task_delegation": "task_assignment",
    "handoff": "task_assignment", "status_report": "task_progress", "progress_update": "task_progress",
    "progress_report": "task_progress", "task_update": "task_progress", "task_result": "task_completion",
    "task_done": "task_completion", "request_review": "review_request", "code_review_request": "review_request",
    "review_response": "review_result", "review_feedback": "review_result", "review_completed": "review_result",
    "review_complete": "review_result", "review_completion": "review_result", "cancellation": "abort",
    "question": "feedback", "clarification": "feedback", "guidance": "feedback", "correction": "feedback",
}  # fmt: skip
"""Other words for values of closed lists; which of them may stand in a field is for its list to say."""


def plain_word(value: object) -> str:
    """A word as tables have it: small letters, `_` between its parts; empty where it is no text."""
    text = value.strip() if isinstance(value, str) and len(value) < 100 else ""
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text).lower()
    return _ENDS.sub("", re.sub(r"[\s\-_]+", "_", text)).removesuffix("阶段")


_ENDS = re.compile(r"^[\W_]+|[\W_]+$")
"""What stands around a word: points, marks, little pictures."""


_WORD_ENDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\s\-]+")


@lru_cache(4096)
def plain_key(key: str) -> str:
    """A key as the standard spells its own: small letters, `_` between the words."""
    return _WORD_ENDS.sub("_", key.strip()).lower() if len(key) < 60 else key


def known_word(value: object, allowed: tuple[str, ...]) -> str | None:
    """The word of a closed list that a value is another spelling of, or another word for; None where it is neither."""
    word = plain_word(value)
    if word in allowed:
        return word
    if OTHER_WORDS.get(word) in allowed:
        return OTHER_WORDS[word]
    meant = _STATUS.get(_MEANING.get(word, ""), ())
    return next((one for one in meant if one in allowed), None)


def is_stopped(value: object) -> bool:
    """Whether a status says that the work was stopped: no list has a word for that, `failed` is the nearest."""
    return _MEANING.get(plain_word(value)) == "stopped"


_STATUSES: dict[str, Status] = {"success": "success", "failed": "failed", "in_progress": "in_progress"}


def known_status(value: object) -> Status | None:
    """How something stands, in whatever words; what was stopped has failed. None where the words are not known."""
    return _STATUSES.get(known_word(value, STATUSES) or ("failed" if is_stopped(value) else ""))


def fell_short(value: object) -> bool:
    """Whether the status of a session says that it ended before all was done: it was stopped, or half of it is done.
    `failed` is the nearest word that the standard has. What a call gave in part, it gave."""
    return is_stopped(value) or _MEANING.get(plain_word(value)) == "half"


def session_status(value: object) -> Status | None:
    """How a session or a sub-session stands, in whatever words; None where they are not known."""
    return "failed" if fell_short(value) else known_status(value)


# -- times -------------------------------------------------------------------------------------------------------------

_DATE = r"(?P<year>[0-9]{4})(?:[-/.]|年)(?P<month>[0-9]{1,2})(?:[-/.]|月)(?P<day>[0-9]{1,2})日?"
_CLOCK = (
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?P<part>[.,][0-9]+)?)?"
    r"\s*(?P<zone>[Zz]|UTC|GMT|[+-][0-9]{2}:?[0-9]{2})?"
)
_SPELLED = re.compile(rf"{_DATE}(?:[Tt,]?\s*{_CLOCK})?")
_BASIC = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})T([0-9]{2})([0-9]{2})([0-9]{2})(Z|[+-][0-9]{2}:?[0-9]{2})?")
_FIRST_SECOND, _LAST_SECOND = 946_684_800, 4_102_444_800  # the years 2000 to 2099


def known_time(value: object) -> str | None:
    """A time as the standard has it, from another spelling that has only one reading; None where there is none."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _from_number(value)
    if not isinstance(value, str) or len(value) > 60:
        return None
    text = value.strip()
    found = _from_digits(text) or _from_words(text)
    return found if clock.parse_instant(found) is not None else None


def _from_number(value: float) -> str | None:
    """Seconds or milliseconds since 1970; their sizes do not meet within a hundred years."""
    if abs(value) >= 1e18:
        return None
    for scale in (1, 1000, 1_000_000):
        if _FIRST_SECOND <= value / scale < _LAST_SECOND:
            instant = int(value * (clock.SECOND // scale))
            return clock.format_instant(instant) if instant % clock.SECOND else clock.format_seconds(instant)
    return None


def _from_digits(text: str) -> str | None:
    if text.isdigit() and text.isascii() and len(text) in (10, 13, 16):
        return _from_number(int(text))
    if found := _BASIC.fullmatch(text):
        year, month, day, hour, minute, second, zone = found.groups()
        return f"{year}-{month}-{day}T{hour}:{minute}:{second}{zone or ''}"
    found = _SPELLED.fullmatch(text)
    if found is None:
        return None
    date = f"{found['year']}-{int(found['month']):02}-{int(found['day']):02}"
    if found["hour"] is None:
        return date
    zone = found["zone"] or ""
    zone = "Z" if zone.upper() in ("Z", "UTC", "GMT") else zone
    part = (found["part"] or "").replace(",", ".")
    return f"{date}T{int(found['hour']):02}:{found['minute']}:{found['second'] or '00'}{part}{zone}"


_MAIL = re.compile(r"([A-Z][a-z]{2}, )?\d{1,2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}(:\d{2})?( (GMT|UTC|Z|[+-]\d{4}))?")
"""The date of mail and of HTTP, with a zone that means one thing: `CST` has three meanings."""
_BROWSER = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2} \d{2} \d{4} \d{2}:\d{2}:\d{2}) GMT([+-]\d{4})( \(.*\))?")
"""What a date of JavaScript says of itself."""


def _from_words(text: str) -> str | None:
    """Dates with the name of a month: that of mail and of HTTP, and as people write them."""
    try:
        if found := _BROWSER.fullmatch(text):
            moment = datetime.strptime(" ".join(found.groups()[:2]), "%b %d %Y %H:%M:%S %z")
            return moment.isoformat().replace("+00:00", "Z")
        if not _MAIL.fullmatch(text):
            return _from_people(text)
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return _from_people(text)
    return moment.isoformat().replace("+00:00", "Z")


def _from_people(text: str) -> str | None:
    for form in ("%b %d, %Y %H:%M:%S", "%B %d, %Y %H:%M:%S", "%b %d, %Y", "%B %d, %Y", "%d %B %Y", "%d %b %Y"):
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC).isoformat().replace("+00:00", "Z")
        except ValueError:
            continue
    return None


_NOTHING = frozenset(["", "-", "--", "?", "n/a", "na", "none", "null", "nil", "unknown", "tbd", "未知", "无"])


def says_nothing(value: object) -> bool:
    """Whether a text stands where nothing was to be said."""
    return isinstance(value, str) and value.strip().lower() in _NOTHING


_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)?")
_UNITS = {
    "": 1,
    "ms": 1,
    "mil": 1,
    "s": 1000,
    "sec": 1000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "hou": 3_600_000,
}


def known_duration(value: object) -> float | None:
    """Milliseconds, from a text like `1200`, `1.2s` or `3 min`."""
    found = _DURATION.fullmatch(value.strip().lower()) if isinstance(value, str) and len(value) < 40 else None
    if found is None:
        return None
    amount = float(found[1]) * _UNITS[(found[2] or "")[:3]]
    return int(amount) if amount.is_integer() else amount
