"""An MCP server of our own with a handful of tools: `python mcp_tools.py FOLDER` by stdio, with `--http PORT` by HTTP.

What it does it writes into FOLDER, so that a test sees how often each thing was done: `started` has a line for each
start, `done` one for each effect. `--mood` makes it a bad one. It speaks the little of the protocol that its tools need
by itself, because the `mcp` package takes most of a second to import; `--package` has that package serve them.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import signal
import sys
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAME, VERSION = "ours", "1.2.3"
HINTS = {"look": "readOnlyHint", "look_and_die_once": "idempotentHint"}
"""What the server says of tools that may be called twice."""
TYPES = {"str": "string", "int": "integer", "float": "number"}
ODD = ["", "a b", "x\x1b[31m", "x" * 65, "ünder", "dotted.name", "dotted_name", "look", "../../etc", "task\n"]
"""Names of tools that nobody should take as they are."""
Block = dict[str, str]
LOST = {"404": (404, -32001, "Session not found"), "400": (400, -32000, "Bad Request: No valid session ID provided")}
"""How servers refuse a request of a session that they do not know."""


class Refusal(Exception):
    """An error of the protocol in place of an answer, and the status it has by HTTP."""

    def __init__(self, code: int, message: str, status: int) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message}
        self.status = status


def picture() -> bytes:
    """A sound PNG of one pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    head = (1).to_bytes(4, "big") * 2 + b"\x08\x02\x00\x00\x00"
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")) + chunk(b"IEND", b"")
    )


def note(folder: Path, name: str, text: str) -> None:
    with (folder / name).open("a") as file:
        file.write(text + "\n")


def tools_of(folder: Path) -> list[Callable[..., Any]]:
    """Tools that look or do, and some that fail."""

    def look(what: str) -> str:
        """Look at something."""
        note(folder, "looked", what)
        return f"You see {what}."

    def write(text: str, times: int = 1) -> str:
        """Write something down."""
        note(folder, "done", text * times)
        return f"Wrote {text * times}."

    def draw() -> list[Block]:
        """Draw a dot."""
        return [
            {"type": "text", "text": "Here it is:"},
            {"type": "image", "data": base64.b64encode(picture()).decode(), "mimeType": "image/png"},
            {"type": "text", "text": "A dot."},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        ]

    def write_and_die(text: str) -> str:
        """Write something down and die before the answer."""
        note(folder, "done", text)
        os.kill(os.getpid(), signal.SIGKILL)
        return ""

    def look_and_die_once(what: str) -> str:
        """Die the first time, answer the second."""
        note(folder, "looked", what)
        if len((folder / "looked").read_text().splitlines()) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return f"You see {what}."

    def sleep(seconds: float) -> str:
        """Take a while."""
        note(folder, "slept", str(seconds))
        time.sleep(seconds)
        return "Awake."

    def meet(people: int) -> str:
        """Wait until so many are here."""
        note(folder, "met", "here")
        for _ in range(600):
            if len((folder / "met").read_text().splitlines()) >= people:
                return "Met."
            time.sleep(0.05)
        return "Nobody came."

    def fail(why: str) -> str:
        """Fail."""
        raise ValueError(why)

    def refuse(code: int, status: int = 200) -> str:
        """Write something down, and refuse."""
        note(folder, "done", str(code))
        raise Refusal(code, "Too many people ask", status)

    return [look, write, draw, write_and_die, look_and_die_once, sleep, meet, fail, refuse]


# -- by hand -----------------------------------------------------------------------------------------------------------


def offered(function: Callable[..., Any]) -> dict[str, Any]:
    """A tool as it is listed."""
    name = function.__name__
    given = {key: {"type": TYPES[kind]} for key, kind in function.__annotations__.items() if key != "return"}
    required = list(given)[: len(given) - len(function.__defaults__ or ())]
    schema = {"type": "object", "properties": given, "required": required}
    hints = {HINTS[name]: True} if name in HINTS else {}
    return {"name": name, "description": function.__doc__, "inputSchema": schema, "annotations": hints}


def hostile() -> list[dict[str, Any]]:
    """Tools that nobody should take as they are."""
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(60):
        deep = {"type": "object", "properties": {"a": deep}}
    plain = {"type": "object"}
    return [
        *({"name": name, "inputSchema": plain} for name in ODD),
        {"name": "deep", "inputSchema": deep},
        {"name": "wide", "description": "d" * 1_000_000, "inputSchema": plain},
    ]


class Server:
    """Answers the requests of a client, wherever they come from."""

    def __init__(self, tools: list[Callable[..., Any]], more: list[dict[str, Any]]) -> None:
        self.tools = {function.__name__: function for function in tools}
        self.listed = [*map(offered, tools), *more]

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to one request."""
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        given = request.get("params", {})
        match request["method"]:
            case "initialize":
                told = {"protocolVersion": given["protocolVersion"], "capabilities": {"tools": {}}}
                return answer | {"result": told | {"serverInfo": {"name": NAME, "version": VERSION}}}
            case "ping":
                return answer | {"result": {}}
            case "tools/list":
                return answer | {"result": {"tools": self.listed}}
            case "tools/call":
                try:
                    return answer | {"result": self.call(given["name"], given.get("arguments") or {})}
                except Refusal as refusal:
                    return answer | {"error": refusal.error, "status": refusal.status}
        return answer | {"error": {"code": -32601, "message": "Method not found"}}

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            said = self.tools[name](**arguments)
        except Refusal:
            raise
        except Exception as problem:
            text = f"Error executing tool {name}: {problem}"
            return {"content": [{"type": "text", "text": text}], "isError": True}
        return {"content": said if isinstance(said, list) else [{"type": "text", "text": said}]}


def serve_stdio(server: Server) -> None:
    """A line for each message; calls are answered side by side. It ends with its input, once all are answered."""
    guard = threading.Lock()

    def reply(request: dict[str, Any]) -> None:
        answer = server.answer(request)
        answer.pop("status", None)
        line = json.dumps(answer) + "\n"
        with guard:
            sys.stdout.write(line)
            sys.stdout.flush()

    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "tools/call":
            threading.Thread(target=reply, args=(message,)).start()
        elif "id" in message:
            reply(message)


def serve_http(server: Server, port: int, lost: str = "") -> None:
    """A POST for each message. With `lost` it hands out a session, and refuses requests of others so."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            own = str(os.getpid())
            if lost and message["method"] != "initialize" and self.headers["mcp-session-id"] != own:
                status, code, words = LOST[lost]
                answer: dict[str, Any] = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": words}}
            else:
                answer = server.answer(message) if "id" in message else {}
                status = answer.pop("status", 200 if answer else 202)
            text = str(answer.get("error", {}).get("message", "")) if status >= 500 else json.dumps(answer)
            data = text.encode() if answer else b""
            self.send_response(status)
            self.send_header("content-type", "text/plain" if status >= 500 else "application/json")
            if lost and message["method"] == "initialize":
                self.send_header("mcp-session-id", own)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


# -- by the package ----------------------------------------------------------------------------------------------------


def serve_by_package(tools: list[Callable[..., Any]], port: int) -> None:
    from mcp.server.mcpserver import MCPServer
    from mcp.types import AudioContent, ImageContent, TextContent, ToolAnnotations

    kinds = {"text": TextContent, "image": ImageContent, "audio": AudioContent}
    server = MCPServer(NAME, version=VERSION)
    for function in tools:
        name = function.__name__
        hints = ToolAnnotations.model_validate({HINTS[name]: True}) if name in HINTS else None
        if name != "draw":
            server.tool(annotations=hints)(function)

    @server.tool(structured_output=False)
    def draw() -> list[Any]:
        """Draw a dot."""
        (blocks,) = (function() for function in tools if function.__name__ == "draw")
        return [kinds[block["type"]].model_validate(block) for block in blocks]

    if port:
        server.run("streamable-http", host="127.0.0.1", port=port)
    else:
        server.run("stdio")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--http", type=int, default=0)
    parser.add_argument("--mood", default="good")
    parser.add_argument("--deaf", action="store_true", help="go on when the input has ended")
    parser.add_argument("--lost", choices=LOST, default="", help="by HTTP: how a session is refused that is not known")
    parser.add_argument("--package", action="store_true", help="have the `mcp` package serve")
    given = parser.parse_args()
    note(given.folder, "started", str(os.getpid()))
    if given.mood == "dies":
        sys.exit("no such database: secret-sk-ant-api03-" + "a" * 90)
    if given.mood == "hangs":
        time.sleep(600)
    if given.mood == "nonsense":
        while True:
            print("<html>{not json", flush=True)
            time.sleep(0.05)
    if given.deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    tools = tools_of(given.folder)
    if given.package:
        serve_by_package(tools, given.http)
    else:
        server = Server(tools, hostile() if given.mood == "hostile" else [])
        if given.http:
            serve_http(server, given.http, given.lost)
        else:
            serve_stdio(server)
    if given.deaf:
        time.sleep(600)


if __name__ == "__main__":
    main()
