"""Calls a tool with an output schema by the official Python client, which checks the result: with the schema of the list that it asks
for, or, if TOOLS.json is given, with that of an earlier list. Prints the structured content and the tools as JSON, and the whole text
to which a hint in it leads.

python schemas.py TOOLS.json|- - COMMAND ARGS…, or a URL in place of a command
"""

import asyncio
import json
import re
import sys

from reading import READER, connect, whole


async def main(known, _, command, *args):
    async with connect(command, args) as session:
        tools = []
        if known == "-":
            tools = [json.loads(tool.model_dump_json(by_alias=True, exclude_none=True)) for tool in (await session.list_tools()).tools]
        else:
            for tool in json.load(open(known)):
                session._tool_output_schemas[tool["name"]] = tool.get("outputSchema")
        structured = (await session.call_tool("test_long_table", {})).structured_content
        location = re.search(r'\[offcut/1 \S+ \S+ \d+\+\d+ \\"(.*?)\\"\]', json.dumps(structured))
        # No schema of the reader is in an earlier list.
        session._tool_output_schemas[READER] = None
        read = location and await whole(session, location[1])
    print(json.dumps({"tools": tools, "structured": structured, "whole": read}))


asyncio.run(main(*sys.argv[1:]))
