"""A server of revision 2026-07-28 over stdio, and a client of it over HTTP, by the official Python SDK.

python modern.py, or python modern.py URL, which prints what the client has seen as JSON.
"""

import asyncio
import json
import re
import sys


def serve():
    from mcp.server.mcpserver import Context, MCPServer

    server = MCPServer("modern")

    @server.tool()
    def lines(count: int) -> str:
        return "a line of a log\n" * count

    @server.tool()
    async def steps(context: Context) -> str:
        for step in range(3):
            await context.report_progress(step, 3)
        return "done"

    server.run("stdio")


async def visit(url):
    from mcp.client.client import Client

    steps = []

    async def progress(step, *_):
        steps.append(step)

    async with Client(url) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        done = await client.call_tool("steps", {}, progress_callback=progress)
        calls = [client.call_tool("lines", {"count": count}) for count in (1, 5000, 2)]
        results = [result.content[0].text for result in await asyncio.gather(*calls)]
        path = json.loads(re.search(r'"(?:[^"\\]|\\.)*"', results[1])[0])
        page = await client.call_tool(tools[-1], {"path": path, "offset": "4999"})
    seen = {"tools": tools, "steps": steps, "done": done.content[0].text, "results": results, "page": page.content[0].text}
    print(json.dumps(seen))


if len(sys.argv) > 1:
    asyncio.run(visit(sys.argv[1]))
else:
    serve()
