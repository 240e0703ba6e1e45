"""Calls tools of a server by the official Python client, and prints the list of tools and all results as JSON.

Results that Offcut has stored are read back by its reader, and printed whole.
python client.py CALLS.json - COMMAND ARGS…, or a URL in place of a command
"""

import asyncio
import json
import os
import re
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

HEADER = re.compile(r'^\[offcut/1 \S+ \S+ (\d+)\+(\d+) ("(?:[^"\\]|\\.)*")\] ')


def parse(text):
    header = HEADER.match(text)
    if not header:
        return None
    data = text.encode()
    prose = len(header[0].encode())
    preview = prose + int(header[1]) + 1
    return json.loads(header[3]), data[prose : preview - 1].decode(), data[preview : preview + int(header[2])].decode()


async def main(calls, _, command, *args):
    stored = 0
    with open(os.devnull, "w") as errlog:
        if command.startswith("http:"):
            server = streamable_http_client(command)
        else:
            server = stdio_client(StdioServerParameters(command=command, args=args, env=dict(os.environ)), errlog=errlog)
        async with server as streams, ClientSession(*streams) as session:
            await session.initialize()
            tools = (await session.list_tools()).tools
            reader = next((tool.name for tool in tools if tool.name == "read_stored_result"), None)
            results = []
            for call in json.load(open(calls)):
                try:
                    result = await session.call_tool(call["name"], call["arguments"])
                except Exception as error:
                    results.append({"error": str(error)})
                    continue
                result = json.loads(result.model_dump_json())
                for block in result["content"]:
                    hint = reader and block["type"] == "text" and parse(block["text"])
                    if hint:
                        stored += 1
                        block["text"], offset = "", "1"
                        while offset:
                            page = await session.call_tool(reader, {"path": hint[0], "offset": offset})
                            _, prose, preview = parse(page.content[0].text)
                            block["text"] += preview
                            going = re.search(r"offset (\S+?)\.$", prose)
                            offset = going and going[1]
                results.append(result)
    listed = [json.loads(tool.model_dump_json()) for tool in tools if tool.name != reader]
    print(json.dumps({"tools": listed, "has_reader": reader is not None, "stored": stored, "results": results}))


asyncio.run(main(*sys.argv[1:]))
