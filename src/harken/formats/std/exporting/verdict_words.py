"""What stands around a word for a verdict, and what that makes of it: it is taken back, or of an earlier time."""

from __future__ import annotations

import re

_SAID_OF = r"(?:verdict|decision|conclusion|outcome|status|result|review|round|iteration|pass|attempt|turn|time)"
_EARLIER_WORDS = r"(?:previous|prior|earlier|former|last|old|initial|original|first|preceding|past|superseded|outdated)"
_AT_FIRST = r"(?:previously|earlier|formerly|originally|initially|before|last\s+time|at\s+first|back\s+then|then)"

# -- the answer behind the word ----------------------------------------------------------------------------------------

_ANSWERS = re.compile(r"[\"'”’`*_)\]\s]*(?:[:：]|={1,3}>?|\|)(?:[\s`*_]|\"(?!\")|'(?!'))*")
"""What makes of the words behind a verdict an answer: `Approved: no`, `"approved": false`, a cell of a table."""
_REMARKS = re.compile(r"[\"'”’`*_\]\s]*(?:\(|-+>?\s|–|—|→)[\s\"'`*_]*")
"""The same, where what follows may as well be a remark: Approved (no remarks)."""
_CROSS = r"[❌✗✘✖✕🚫👎⛔]"
_FAULTS = (
    r"(?:issues?|problems?|findings?|concerns?|blockers?|changes?|remarks?|comments?|objections?|bugs?|errors?|faults?|"
    r"regressions?|defects?|nits?|notes?|suggestions?|complaints?|modifications?|edits?|fixes|revisions?|"
    r"to\s+(?:add|address|change|complain|correct|do|fix|improve|note|report|revise))"
)
_ENDS = r"[\W_]*$|[\"'`*_)\]\s]*[.,;:!|({}\[\]—–→]|\s+-"
_NO_FAULTS = re.compile(
    rf"(?:no|zero|0|none|nothing|not\s+(?:an?|any|one)(?:\s+single)?)\s+(?:[\w-]+\s+){{0,3}}?{_FAULTS}"
    rf"(?={_ENDS}|\s+(?:are|at|found|from|have|is|left|needed|necessary|remain|remaining|requested|required|so\s+far|that|"
    r"were|was)\b)",
    re.I,
)
"""Nothing to complain of: that approves, and asks for no changes."""
_NO_WORD = (
    r"(?:no|none|nope|nothing|nobody|never|false|nil|null|undefined|n/?a|negative|pending|undecided|unknown|tbd|todo|"
    r"zero|nein|non|nej|否|不|无|無|没有|なし|いいえ|not\s+(?:applicable|at\s+all|at\s+(?:this|the)\s+\w+|by\s+me|given|"
    r"granted|necessary|needed|now|required|so\s+far|yet))"
    rf"(?={_ENDS}|\s+(?:as|at|because|due|for|from|needed|necessary|requested|required|since|so\s+far|till?|until|yet)\b)"
)
_SAYS_NO = re.compile(_NO_WORD, re.I)
_NO = re.compile(
    rf"(?:{_NO_WORD}|0(?![\d.:-]*\d)(?:\s*(?:/|of|out\s+of)\s*\d+)?|{_CROSS}|\[\s*\]|\{{\s*\}}|\"\"|''|☐|[-–—]+[\W_]*$)",
    re.I,
)
_NOT_APPROVED = re.compile(
    r"(?:no|not|never|nobody|none|nothing|neither|cannot|\w+n['’]t|pending|awaiting|waiting|conditional\w*|partial\w*|"
    r"if|once|when|unless|until|after|provided|maybe|perhaps)\b",
    re.I,
)
"""What speaks against an approval, or leaves it open; of what is rejected, and of changes, it may be the reason."""
_COUNT = re.compile(
    rf"\d+(?:\s*(?:/|of|out\s+of)\s*\d+)?(?![\d:-]|[.)]\s)(?!\s+(?:[\w-]+\s+){{0,3}}?{_FAULTS}\b)", re.I
)
"""A number of what was approved or rejected: of files, say; not of faults, of an entry in a list, or in a date."""
_CROSSED = re.compile(rf"[\"'”’`*_)\]\s]*{_CROSS}")
_MARKS = " \t\r\"'`*_:：#"


def taken_back(verdict: str, after: str, below: str) -> int | None:
    """Where in `after`, the words behind a verdict, the answer ends that takes it back: no, nothing, not yet, or a mere
    number of something. None where there is no such answer. `below` is the next line, which answers a heading."""
    if verdict == "approved" and (crossed := _CROSSED.match(after)):
        return crossed.end()
    if not after.strip(_MARKS):
        return len(after) if _is_no(verdict, below.lstrip(_MARKS + ">+-•"), _SAYS_NO) else None
    if answers := _ANSWERS.match(after):
        length = _length_of_no(verdict, after[answers.end() :])
        return None if length is None else answers.end() + length
    if (remark := _REMARKS.match(after)) and (denied := _NO.match(after, remark.end())):
        return None if _NO_FAULTS.match(after, remark.end()) else denied.end()
    return None


def _is_no(verdict: str, said: str, no: re.Pattern[str]) -> bool:
    return bool(verdict != "approved" if _NO_FAULTS.match(said) else no.match(said))


def _length_of_no(verdict: str, said: str) -> int | None:
    """How much of an answer takes a verdict back."""
    if clean := _NO_FAULTS.match(said):
        return None if verdict == "approved" else clean.end()
    found = _NO.match(said)
    if found is None and verdict != "changes_requested":
        found = _COUNT.match(said)
    if found is None and verdict == "approved":
        found = _NOT_APPROVED.match(said)
    return found.end() if found else None


# -- the marks before it -----------------------------------------------------------------------------------------------

_EMPTY_BOX = re.compile(r"(?:\[\s*\]|\(\s*\)|☐|⬜|◻)\ufe0f?[\s*_`\"']*$")
_CROSS_BEFORE = re.compile(rf"{_CROSS}[\s*_`\"']*$")
_COUNTED = re.compile(r"(?:^|[^\w.#])(\d+)(?:\s*/\s*\d+)?[\s*_`]+$")


def is_marked_off(verdict: str, before: str) -> bool:
    """Whether a mark or a number before the word says that it is not the verdict: an empty box, a cross before an
    approval, how many there are. Changes that are counted are requested."""
    if _EMPTY_BOX.search(before) or (verdict == "approved" and _CROSS_BEFORE.search(before)):
        return True
    counted = _COUNTED.search(before)
    return counted is not None and (verdict != "changes_requested" or not int(counted[1][:9]))


# -- the time that it is of --------------------------------------------------------------------------------------------

_EARLIER = re.compile(
    rf"\b{_EARLIER_WORDS}(?:['’]s)?\s+(?:\w+(?:['’]s)?\s+){{0,2}}?{_SAID_OF}\b"
    rf"|\b{_SAID_OF}\W{{1,3}}{_AT_FIRST}\b|[(\[]\s*(?:{_EARLIER_WORDS}|{_AT_FIRST})\s*[)\]]"
    rf"|^\W*{_AT_FIRST}\b|\"(?:previous|prior|last|earlier|old)\w*\"\s*:\s*\{{",
    re.I,
)
_IN_EARLIER = re.compile(
    rf"\W*(?:(?:in|during|at|from)\s+)?(?:(?:the|my|our|your)\s+)?(?:{_EARLIER_WORDS}\s+(?:\w+\s+)?{_SAID_OF}|{_AT_FIRST})\W*,",
    re.I,
)
_EARLIER_BEHIND = re.compile(
    rf"\s*[(\[]\s*(?:(?:in|during|at|from)\s+)?(?:(?:the|my|our)\s+)?"
    rf"(?:{_AT_FIRST}|{_EARLIER_WORDS}\s+(?:\w+\s+)?{_SAID_OF})\s*[)\],;]",
    re.I,
)
_PRESENT = re.compile(r"\b(?:now|this\s+time|today|final|current|new|updated|revised|latest|present|overall)\b", re.I)
_PART = re.compile(r"[,;—–]| - ")
_OLD_SECTION = re.compile(
    rf"\W*(?:(?:the|my|our|your)\s+)?(?:{_AT_FIRST}\W*$|{_EARLIER_WORDS}\s+(?:\w+\s+){{0,2}}?{_SAID_OF}\b)", re.I
)


def is_earlier(before: str, after: str) -> bool:
    """Whether a verdict is one of an earlier time, by the words around it: the previous verdict."""
    part = _PART.split(before)[-1]
    if _EARLIER_BEHIND.match(after):
        return True
    return not _PRESENT.search(part) and bool(_EARLIER.search(part) or _IN_EARLIER.match(before))


def is_present(before: str) -> bool:
    """Whether what is called the verdict is said to be that of now, or the last word."""
    return _PRESENT.search(_PART.split(before)[-1]) is not None


def is_of_earlier(heading: str) -> bool:
    """Whether what stands below a heading is about an earlier time: `## Previous review`."""
    return _OLD_SECTION.match(heading) is not None
