"""Calls tools of a server by the official Python client, and prints the list of tools and all results as JSON.

Results that Offcut has stored are read back by its reader, and printed whole.
python client.py CALLS.json - COMMAND ARGS…, or a URL in place of a command
"""

import asyncio
import json
import sys

from reading import READER, connect, parse, whole


async def main(calls, _, command, *args):
    stored = 0
    async with connect(command, args) as session:
        tools = (await session.list_tools()).tools
        reader = next((tool.name for tool in tools if tool.name == READER), None)
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
                    block["text"] = await whole(session, hint[0])
            results.append(result)
    listed = [json.loads(tool.model_dump_json()) for tool in tools if tool.name != reader]
    print(json.dumps({"tools": listed, "has_reader": reader is not None, "stored": stored, "results": results}))


asyncio.run(main(*sys.argv[1:]))
