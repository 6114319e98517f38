"""A session as one HTML file that needs nothing else: no script, no network, light and dark.

Every piece of the transcript goes through `_text` and is text from then on. The policy in the head forbids everything
but this file's own style and the pictures inside it, so that a mistake here would still run nothing and load nothing.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Iterator

from harken.events import Image
from harken.events.base import excerpt
from harken.text import safe

from .documents import (
    COMPACTION,
    MEDIA_TYPES,
    DocumentFoot,
    DocumentHead,
    DocumentWriter,
    PictureFile,
    listed,
    moment,
    picture_bytes,
)
from .passages import AgentBegins, AgentEnds, Aside, Remark, Speech, Step, SummedUp

STYLE = """
:root{color-scheme:light dark;--bg:#f7f6f3;--surface:#fff;--sunk:#efede8;--line:#e3e0d9;--ink:#1a1917;--ink3:#635f58;
--accent:#0b665f;--alert:#b01e2e}
@media (prefers-color-scheme:dark){:root{--bg:#131415;--surface:#1a1b1d;--sunk:#0e0f10;--line:#2b2d30;--ink:#ebe9e4;
--ink3:#9f9c94;--accent:#5fc4b6;--alert:#ff8a80}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:56rem;padding:24px 16px 48px;background:var(--bg);color:var(--ink);
font:400 14px/22px -apple-system,BlinkMacSystemFont,"Segoe UI",Cantarell,Roboto,"Noto Sans",Arial,sans-serif}
h1{font-size:20px;line-height:28px;margin:0 0 8px;overflow-wrap:anywhere}
h2{font-size:14px;margin:24px 0 4px;color:var(--accent);overflow-wrap:anywhere}
h2.user{color:var(--ink)}
time,.dim{font-weight:400;font-size:12px;color:var(--ink3);margin-left:8px}
dl{display:grid;grid-template-columns:max-content 1fr;gap:0 12px;margin:0 0 16px;font-size:12px;color:var(--ink3)}
dd{margin:0;overflow-wrap:anywhere}
.said{white-space:pre-wrap;overflow-wrap:anywhere;margin:0 0 8px}
.user+.said{background:var(--surface);border:1px solid var(--line);border-radius:6px;padding:8px 12px}
pre{margin:4px 0;padding:8px 12px;background:var(--sunk);border-radius:6px;white-space:pre-wrap;overflow-wrap:anywhere;
font:400 12px/18px ui-monospace,"SF Mono",Menlo,Consolas,monospace}
details{margin:4px 0;border-left:2px solid var(--line);padding-left:12px}
details.agent{border-left-color:var(--accent)}
summary{cursor:pointer;overflow-wrap:anywhere}
code{font:400 12px/18px ui-monospace,"SF Mono",Menlo,Consolas,monospace}
.remark{margin:4px 0;font-size:12px;color:var(--ink3);overflow-wrap:anywhere}
.alert{color:var(--alert)}
hr{border:0;border-top:1px solid var(--line);margin:24px 0 8px}
img{max-width:100%;border:1px solid var(--line)}
footer{font-size:12px;color:var(--ink3)}
"""
STYLE_HASH = "sha256-MHiXPGyvtpZxDfvUwOMrv2kF5SLmUwPfFAIO5gkjJQ4="
"""The hash of the style in base64: the policy names it in place of allowing every style."""
POLICY = f"default-src 'none'; style-src '{STYLE_HASH}'; img-src data:; base-uri 'none'; form-action 'none'"


_OUTCOMES = {"failed": ' <b class="alert">failed</b>', "no result": ' <span class="dim">no result</span>'}


class PageWriter(DocumentWriter):
    """Writes HTML; pictures are part of it."""

    def begin(self, head: DocumentHead) -> str:
        title = _text(excerpt(head.title, 200))
        facts = "".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>\n" for name, value in head.facts)
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
            '<meta name="referrer" content="no-referrer">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<dl>\n{facts}</dl>\n"
        )

    def end(self, foot: DocumentFoot) -> str:
        lines = "".join(f"<p>{_text(line)}</p>\n" for line in foot.lines())
        return f"<hr>\n<footer>\n{lines}<p>Exported by Harken.</p>\n</footer>\n</body>\n</html>\n"

    def speaker(self, who: str, time: str, *, is_user: bool) -> str:
        kind = ' class="user"' if is_user else ""
        return f"<h2{kind}>{_text(who)}{f'<time>{time}</time>' if time else ''}</h2>\n"

    def speech(self, said: Speech) -> Iterator[str | PictureFile]:
        for part in said.parts:
            if isinstance(part, Image):
                yield self._picture(part)
            else:
                yield f'<div class="said">{_text(part.strip(chr(10)))}</div>\n'

    def aside(self, aside: Aside) -> Iterator[str | PictureFile]:
        yield f'<details><summary class="dim">{_text(aside.title)}</summary>\n'
        yield from self._code(aside.parts)
        yield "</details>\n"

    def step(self, step: Step) -> Iterator[str | PictureFile]:
        outcome = _OUTCOMES.get(step.outcome, "")
        what = f" <code>{_text(step.what)}</code>" if step.what else ""
        yield f"<details><summary><b>{_text(step.tool)}</b>{what}{outcome}</summary>\n"
        short, long = listed(step.arguments)
        if short:
            yield f"<pre>{_text(chr(10).join(short))}</pre>\n"
        for name, value in long:
            yield (f'<p class="remark">{_text(name)}</p>\n' if name else "") + f"<pre>{_text(value)}</pre>\n"
        if step.answered:
            yield f'<p class="remark">{"failed" if step.failed else "result"}</p>\n'
            yield from self._code(step.parts)
        yield "</details>\n"

    def remark(self, remark: Remark) -> str:
        time = moment(remark.time)
        kind = "remark alert" if remark.alert else "remark"
        return f'<p class="{kind}">{_text(remark.text)}{f"<time>{time}</time>" if time else ""}</p>\n'

    def summed_up(self, summary: SummedUp) -> str:
        line = f'<hr>\n<p class="remark">{COMPACTION}</p>\n'
        if not summary.text.strip():
            return line
        return f"{line}<details><summary>The summary</summary>\n<pre>{_text(summary.text)}</pre>\n</details>\n"

    def agent_begins(self, agent: AgentBegins) -> str:
        time = moment(agent.time)
        return (
            f'<details class="agent"><summary>Sub-agent <b>{_text(agent.name)}</b>'
            f"{f'<time>{time}</time>' if time else ''}</summary>\n"
        )

    def agent_ends(self, agent: AgentEnds) -> str:
        return "</details>\n"

    def _code(self, parts: Iterable[str | Image]) -> Iterator[str]:
        for part in parts:
            if isinstance(part, Image):
                yield self._picture(part)
            elif part.strip():
                yield f"<pre>{_text(part)}</pre>\n"

    def _picture(self, image: Image) -> str:
        found = picture_bytes(image)
        if found is None:
            return f'<p class="remark">{_text(self.absent_picture(image))}</p>\n'
        kind, data = found
        # Encoded anew: what stood in the record may hold characters that are none of base64.
        return f'<p><img alt="picture" src="data:{MEDIA_TYPES[kind]};base64,{base64.b64encode(data).decode()}"></p>\n'


def _text(text: str) -> str:
    """Text of a transcript as HTML: every mark that could be more than text is escaped, controls are made visible."""
    return html.escape(safe(text))
