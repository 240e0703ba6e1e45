"""Middleware for the clients of the Anthropic SDK.

    import anthropic
    from offcut import Reduction
    from offcut.anthropic import OffcutMiddleware, reader

    reduction = Reduction.in_dir(".offcut").session("chat-42")
    client = anthropic.Anthropic(middleware=[OffcutMiddleware(reduction)])
    runner = client.beta.messages.tool_runner(tools=[*tools, reader(reduction)], …)
"""

from __future__ import annotations

import asyncio
from typing import Any

from anthropic import AsyncCallNext, CallNext, Middleware, beta_async_tool, beta_tool

from ._reduction import Reduction


class OffcutMiddleware(Middleware):
    """Shortens and clears results in what is sent. The caller's own messages stay whole.

    What was decided about a conversation is kept in its session, so that each of its requests is sent the same texts.
    """

    def __init__(self, reduction: Reduction):
        self.reduction = reduction

    def handle(self, request: Any, call_next: CallNext) -> Any:
        return call_next(self._reduced(request))

    async def handle_async(self, request: Any, call_next: AsyncCallNext) -> Any:
        return await call_next(await asyncio.to_thread(self._reduced, request))

    def _reduced(self, request: Any) -> Any:
        body = request.json
        if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
            return request
        is_count = request.url.partition("?")[0].endswith("/count_tokens")
        return request.copy(body=self.reduction._reduced(body, "anthropic", repeats_only=is_count))


def reader(reduction: Reduction, *, is_async: bool = False) -> Any:
    """The reader as a tool of `tool_runner`; `is_async` for that of an `AsyncAnthropic`."""
    told = reduction.tool("anthropic")

    def read(**arguments: Any) -> Any:
        return reduction._content("anthropic", arguments)[0]

    async def aread(**arguments: Any) -> Any:
        return await asyncio.to_thread(read, **arguments)

    known = {"name": told["name"], "description": told["description"], "input_schema": told["input_schema"]}
    return beta_async_tool(aread, **known) if is_async else beta_tool(read, **known)
