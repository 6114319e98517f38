"""Whatever stands in a transcript stays text: no field of it runs, loads or links to anything, in any view."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

import harken

from .conftest import Served, Visit

pytestmark = pytest.mark.page

PAYLOADS = (
    "<img src=x onerror=window.PWNED=1>",
    "<script>window.PWNED=1</script>",
    '"><svg onload=window.PWNED=1>',
    "[click](javascript:window.PWNED=1)",
    "![beacon](http://evil.example/beacon.png)",
    '<a href="javascript:window.PWNED=1">x</a>',
    '<iframe src="javascript:window.PWNED=1"></iframe>',
    "{{constructor.constructor('window.PWNED=1')()}}",
    "</script><script>window.PWNED=1</script>",
    "<style>@import 'http://evil.example/x.css';</style>",
    "\u202etxt.exe\u202c \u001b]52;c;ZXZpbA==\u0007\u001b[31mred\u001b[0m",
    "[x](data:text/html,<script>window.PWNED=1</script>)",
)
ALL = "\n\n".join(PAYLOADS)


def records(session: str) -> Iterator[dict[str, Any]]:
    """A session in which every field that a reader sees holds every payload."""
    about = {
        "sessionId": session,
        "cwd": f"/tmp/{PAYLOADS[0]}",
        "version": PAYLOADS[1],
        "gitBranch": ALL,
        "userType": ALL,
    }
    parent = None
    for number, (kind, message, more) in enumerate(
        [
            ("user", {"role": "user", "content": ALL}, {}),
            ("assistant", _said([{"type": "thinking", "thinking": ALL, "signature": ALL}]), {}),
            ("assistant", _said([{"type": "text", "text": ALL}]), {}),
            ("assistant", _said([_call("c1", "Bash", {"command": ALL, "description": ALL})]), {}),
            ("user", _answered("c1", ALL, failed=False), {}),
            ("assistant", _said([_call("c2", "Edit", {"file_path": ALL, "old_string": "a", "new_string": ALL})]), {}),
            ("user", _answered("c2", ALL, failed=True), {}),
            ("assistant", _said([_call("c3", ALL, {ALL: {ALL: [ALL]}})]), {}),
            ("user", _answered("c3", ALL, failed=False), {}),
            ("assistant", _said([_call("c4", "TodoWrite", {"todos": [{"content": ALL, "status": ALL}]})]), {}),
            ("user", _answered("c4", ALL, failed=False), {}),
            ("assistant", _said([_call("c5", "Task", {"description": ALL, "prompt": ALL, "subagent_type": ALL})]), {}),
            ("user", _answered("c5", ALL, failed=False), {}),
            (
                "system",
                None,
                {"subtype": "compact_boundary", "content": ALL, "compactMetadata": {"trigger": ALL, "preTokens": 9}},
            ),
            ("user", {"role": "user", "content": ALL}, {"isCompactSummary": True}),
            ("user", {"role": "user", "content": ALL}, {"isMeta": True}),
            ("summary", None, {"summary": ALL, "leafUuid": ALL}),
        ]
    ):
        record = f"00000000-0000-4000-8000-{number:012d}"
        time = f"2026-11-01T09:00:{number:02d}.000Z"
        line = {
            **about,
            "type": kind,
            "uuid": record,
            "parentUuid": parent,
            "timestamp": time,
            "isSidechain": False,
            **more,
        }
        if message is not None:
            line["message"] = message
        parent = record
        yield line


def _said(content: list[dict[str, Any]]) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    about = {"id": "msg_" + str(len(json.dumps(content))), "role": "assistant", "model": ALL, "usage": usage}
    return {**about, "content": content, "stop_reason": ALL}


def _call(name: str, tool: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": tool, "input": given}


def _answered(name: str, words: str, *, failed: bool) -> dict[str, Any]:
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": name, "content": words, "is_error": failed}],
    }


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    where = tmp_path_factory.mktemp("hostile")
    session = "11111111-2222-4333-8444-555555555555"
    path = where / "home" / "projects" / "-x" / f"{session}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(json.dumps(one) for one in records(session)) + "\n")
    with harken.Session(where / "native.jsonl") as log:
        log.log_agent_created("a", name=PAYLOADS[0], language_model=ALL, role="root")
        log.log_agent_created("b", name=PAYLOADS[2], language_model=ALL, parent="a", role="child")
        said = log.log_transcript_entry("a", {"role": "user", "content": ALL})
        log.log_transcript_entry("b", {"role": "user", "content": ALL + " changed"}, substance=said)
        log.log_transcript_entry("b", {"role": "assistant", "content": ALL})
    with harken.open(where / "store.db") as repo:
        told = list(repo.import_sessions([where / "home", where / "native.jsonl"]))
        assert {"new"} == {one.status for one in told}
        repo.annotate(session, ALL)
        repo.index.catch_up()
        native = next(one.session for one in told if one.session != session)
    served = Served(where / "store.db", 0, "--no-watch")
    yield served, f"{session} {native}"
    served.stop()


ADDRESSES = (
    *("/", "/sessions", "/commits", "/stats", "/documents", "/search?q=PWNED"),
    *(f"/s/{{0}}?v={view}" for view in ("", "flow", "lanes", "commits", "agents", "raw")),
    *(f"/s/{{1}}?v={view}" for view in ("", "flow", "lanes", "commits", "agents", "raw")),
    "/s/{0}?q=PWNED",
    "/search?q=%3Cimg%20src=x%20onerror=window.PWNED=1%3E",
    "/s/%3Cimg%20src=x%20onerror=window.PWNED=1%3E",
)


@pytest.mark.parametrize("address", ADDRESSES)
def test_nothing_of_a_transcript_runs_or_loads(browser: Browser, hostile: tuple[Served, str], address: str) -> None:
    served, names = hostile
    visit = Visit(browser.new_context(viewport={"width": 1440, "height": 900}), served).sign_in()
    page = visit.open(address.format(*names.split()))
    page.wait_for_timeout(1200)
    for key in ("x", "j", "j", "j"):
        page.keyboard.press(key)
    page.wait_for_timeout(400)
    assert page.evaluate("() => window.PWNED === undefined")
    assert [] == visit.abroad
    assert [] == page.evaluate(
        "() => [...document.links].map(a => a.protocol).filter(p => !['http:', 'https:', 'mailto:'].includes(p))"
    )
    assert [] == page.evaluate(
        """() => [...document.querySelectorAll('iframe, object, embed, script:not([src]), [onerror], [onload]')]
            .map(element => element.outerHTML)"""
    )
    assert 0 == page.evaluate(
        "() => [...document.body.innerText].filter(c => '\\u202e\\u001b\\u0007'.includes(c)).length"
    )
    page.context.close()
