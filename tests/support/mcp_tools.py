"""An MCP server of our own with a handful of tools: `python mcp_tools.py FOLDER` by stdio, with `--http PORT` by HTTP.

What it does it writes into FOLDER, so that a test sees how often each thing was done: `started` has a line for each
start, `done` one for each effect. `--mood` makes it a bad one.
"""

from __future__ import annotations

import argparse
import base64
import os
import signal
import sys
import time
import zlib
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp.types import AudioContent, ImageContent, TextContent, Tool, ToolAnnotations


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


def make_server(folder: Path) -> MCPServer:
    """Three tools that look or do, and some that fail."""
    server = MCPServer("ours", version="1.2.3")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def look(what: str) -> str:
        """Look at something."""
        note(folder, "looked", what)
        return f"You see {what}."

    @server.tool()
    def write(text: str, times: int = 1) -> str:
        """Write something down."""
        note(folder, "done", text * times)
        return f"Wrote {text * times}."

    @server.tool(structured_output=False)
    def draw() -> list[TextContent | ImageContent | AudioContent]:
        """Draw a dot."""
        data = base64.b64encode(picture()).decode()
        return [
            TextContent(type="text", text="Here it is:"),
            ImageContent(type="image", data=data, mime_type="image/png"),
            TextContent(type="text", text="A dot."),
            AudioContent(type="audio", data="AAAA", mime_type="audio/wav"),
        ]

    @server.tool()
    def write_and_die(text: str) -> str:
        """Write something down and die before the answer."""
        note(folder, "done", text)
        os.kill(os.getpid(), signal.SIGKILL)
        return ""

    @server.tool(annotations=ToolAnnotations(idempotent_hint=True))
    def look_and_die_once(what: str) -> str:
        """Die the first time, answer the second."""
        note(folder, "looked", what)
        if len((folder / "looked").read_text().splitlines()) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return f"You see {what}."

    @server.tool()
    def sleep(seconds: float) -> str:
        """Take a while."""
        note(folder, "slept", str(seconds))
        time.sleep(seconds)
        return "Awake."

    @server.tool()
    def fail(why: str) -> str:
        """Fail."""
        raise ValueError(why)

    return server


def hostile(server: MCPServer) -> None:
    """Offer tools that nobody should take as they are."""
    usual = server.list_tools
    odd = ["", "a b", "x\x1b[31m", "x" * 65, "ünder", "dotted.name", "dotted_name", "look", "../../etc", "task\n"]

    async def listed() -> list[Tool]:
        schemas: list[dict[str, object]] = [{"type": "object"}] * len(odd)
        extra = [Tool(name=name, input_schema=schema) for name, schema in zip(odd, schemas, strict=True)]
        deep: dict[str, object] = {"type": "object"}
        for _ in range(60):
            deep = {"type": "object", "properties": {"a": deep}}
        extra.append(Tool(name="deep", input_schema=deep))
        extra.append(Tool(name="wide", description="d" * 1_000_000, input_schema={"type": "object"}))
        return [*await usual(), *extra]

    server.list_tools = listed  # type: ignore[method-assign]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--http", type=int, default=0)
    parser.add_argument("--mood", default="good")
    parser.add_argument("--deaf", action="store_true", help="go on when the input has ended")
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
    server = make_server(given.folder)
    if given.mood == "hostile":
        hostile(server)
    if given.http:
        server.run("streamable-http", host="127.0.0.1", port=given.http)
    else:
        server.run("stdio")
    if given.deaf:
        time.sleep(600)


if __name__ == "__main__":
    main()
