"""The official Python client, and what is read through it of a stored result."""

import json
import os
import re
from contextlib import asynccontextmanager

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

READER = "read_stored_result"
HEADER = re.compile(r'^\[offcut/1 \S+ \S+ (\d+)\+(\d+) ("(?:[^"\\]|\\.)*")\] ')


@asynccontextmanager
async def connect(command, args):
    """A session with a server that is a command, or at a URL."""
    with open(os.devnull, "w") as errlog:
        if command.startswith("http:"):
            server = streamable_http_client(command)
        else:
            server = stdio_client(StdioServerParameters(command=command, args=args, env=dict(os.environ)), errlog=errlog)
        async with server as streams, ClientSession(*streams) as session:
            await session.initialize()
            yield session


def parse(text):
    """The location, the sentence and the preview of a hint."""
    header = HEADER.match(text)
    if not header:
        return None
    data = text.encode()
    prose = len(header[0].encode())
    preview = prose + int(header[1]) + 1
    return json.loads(header[3]), data[prose : preview - 1].decode(), data[preview : preview + int(header[2])].decode()


async def whole(session, location):
    """The whole text at a location, page by page."""
    text, offset = "", "1"
    while offset:
        page = await session.call_tool(READER, {"path": location, "offset": offset})
        _, prose, preview = parse(page.content[0].text)
        text += preview
        going = re.search(r"offset (\S+?)\.$", prose)
        offset = going and going[1]
    return text
