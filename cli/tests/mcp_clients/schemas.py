"""Calls a tool with an output schema by the official Python client, which checks the result: with the schema of the list that it asks
for, or, if TOOLS.json is given, with that of an earlier list. Prints the structured content and the tools as JSON, and the whole text
to which a hint in it leads.

python schemas.py TOOLS.json|- - COMMAND ARGS…, or a URL in place of a command
"""

import asyncio
import json
import os
import re
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


async def main(known, _, command, *args):
    with open(os.devnull, "w") as errlog:
        if command.startswith("http:"):
            server = streamable_http_client(command)
        else:
            server = stdio_client(StdioServerParameters(command=command, args=args, env=dict(os.environ)), errlog=errlog)
        async with server as streams, ClientSession(*streams) as session:
            await session.initialize()
            tools = []
            if known == "-":
                tools = [json.loads(tool.model_dump_json(by_alias=True, exclude_none=True)) for tool in (await session.list_tools()).tools]
            else:
                for tool in json.load(open(known)):
                    session._tool_output_schemas[tool["name"]] = tool.get("outputSchema")
            structured = (await session.call_tool("test_long_table", {})).structured_content
            location = re.search(r'\[offcut/1 \S+ \S+ \d+\+\d+ \\"(.*?)\\"\]', json.dumps(structured))
            whole, offset = None, "1"
            # No schema of the reader is in an earlier list.
            session._tool_output_schemas["read_stored_result"] = None
            while location and offset:
                page = await session.call_tool("read_stored_result", {"path": location[1], "offset": offset})
                data = page.content[0].text.encode()
                header = re.match(rb'\[offcut/1 \S+ \S+ (\d+)\+(\d+) "[^"]*"\] ', data)
                preview = header.end() + int(header[1]) + 1
                whole = (whole or "") + data[preview : preview + int(header[2])].decode()
                going = re.search(r"offset (\S+?)\.$", data[header.end() : preview - 1].decode())
                offset = going and going[1]
    print(json.dumps({"tools": tools, "structured": structured, "whole": whole}))


asyncio.run(main(*sys.argv[1:]))
