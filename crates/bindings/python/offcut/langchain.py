"""Middleware for LangChain's agents.

    from langchain.agents import create_agent
    from offcut import Reduction
    from offcut.langchain import OffcutMiddleware

    agent = create_agent(model, tools, middleware=[OffcutMiddleware(Reduction.in_dir(".offcut"))])
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.types import Command

from . import _chat
from ._offcut import are_parts
from ._reduction import Reduction, _dumps

#: What is beside a message of chat completions, and the blocks without thoughts: they sign nothing.
_UNSIGNED = {"refusal", "function_call", "tool_calls"}
_MIME = ("mime_type", "media_type", "mimeType")
_BLOCKS = {"text", "output_text", "refusal", "tool_use", "function_call"}
_ROLES: dict[type[BaseMessage], str] = {SystemMessage: "system", HumanMessage: "user"}


class OffcutMiddleware(AgentMiddleware):
    """Shortens what tools return, clears old results before a model call, and adds the reader to the tools.

    Cleared messages are replaced in the agent's state, so a checkpoint has them too.
    """

    def __init__(self, reduction: Reduction):
        super().__init__()
        self.reduction = reduction
        self.tools = [reader(reduction)] if reduction.reader_name else []

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        changed = cleared(self.reduction, state["messages"])
        return {"messages": changed} if changed else None

    async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return await asyncio.to_thread(self.before_model, state, runtime)

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return self._read(request.tool_call) or self._shown(request, handler(request))

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        page = await asyncio.to_thread(self._read, request.tool_call)
        return page or await asyncio.to_thread(self._shown, request, await handler(request))

    def _read(self, call: Any) -> ToolMessage | None:
        """The reader's answer, also where a tool of the agent has taken its name; none if the call names nothing stored."""
        content = self.reduction._answer(call)
        return None if content is None else ToolMessage(content, name=call["name"], tool_call_id=call["id"] or "")

    def _shown(self, request: Any, result: Any) -> Any:
        # Nobody but the user sees this one.
        if getattr(request.tool, "return_direct", False):
            return result
        call = request.tool_call
        if isinstance(result, Command):
            update = result.update
            if isinstance(update, dict) and isinstance(update.get("messages"), list):
                messages = [self._shown(request, one) for one in update["messages"]]
                return replace(result, update={**update, "messages": messages})
            return result
        if not isinstance(result, ToolMessage):
            return result
        before, is_error = _parts(result.content), result.status == "error"
        if not isinstance(before, str) and not are_parts(_dumps(before)):
            return result
        content = self.reduction.truncate(
            before, tool=call["name"], call_id=call["id"] or "", arguments=call["args"], is_error=is_error
        )
        return result if content is before else result.model_copy(update={"content": content})


def reader(reduction: Reduction) -> StructuredTool:
    """The reader as a tool."""
    told = reduction.tool("anthropic")

    def read(**arguments: Any) -> Any:
        return reduction._content("openai-chat", arguments)

    async def aread(**arguments: Any) -> Any:
        return await asyncio.to_thread(read, **arguments)

    return StructuredTool.from_function(
        read, aread, name=told["name"], description=told["description"], args_schema=told["input_schema"]
    )


def cleared(reduction: Reduction, messages: list[BaseMessage]) -> list[BaseMessage]:
    """The messages that a pass has changed. A message with the same id takes the place of the one before."""
    changes = _chat.cleared(reduction, [_plain(message) for message in messages])
    return [_changed(messages[nth], old, new) for nth, old, new in changes]


def _parts(content: Any) -> Any:
    if isinstance(content, list) and any(isinstance(one, str) for one in content):
        return [{"type": "text", "text": one} if isinstance(one, str) else one for one in content]
    return content


def _is_other(block: Any) -> bool:
    return not isinstance(block, dict) or block.get("type") not in _BLOCKS or "extras" in block


def _image(part: Any) -> Any:
    """An image as chat completions have it, whoever wrote it."""
    source = part.get("source", part) if isinstance(part, dict) and part.get("type") == "image" else {}
    data, mime = source.get("base64") or source.get("data"), next(filter(None, map(source.get, _MIME)), None)
    return {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{data}"}} if data and mime else part


def _plain(message: BaseMessage) -> dict[str, Any]:
    content = _parts(message.content)
    if isinstance(message, ToolMessage):
        if isinstance(content, list):
            content = [_image(part) for part in content]
        # Chat completions can't mark an error, and errors stay.
        return _chat.result(message.tool_call_id, "" if message.status == "error" else content)
    if isinstance(message, AIMessage):
        # Beside thoughts, and what a provider keeps of them, calls may be signed.
        others = (value for key, value in message.additional_kwargs.items() if key not in _UNSIGNED)
        is_fixed = any(value is not None for value in others) or isinstance(content, list) and any(map(_is_other, content))
        calls = [_chat.call(one["id"], one["name"], one["args"], is_fixed=is_fixed) for one in message.tool_calls]
        return _chat.assistant(message.text if isinstance(content, list) else content, calls)
    return {"role": _ROLES.get(type(message), "user"), "content": content}


def _changed(message: BaseMessage, old: dict[str, Any], new: dict[str, Any]) -> BaseMessage:
    if isinstance(message, AIMessage):
        arguments = _chat.new_arguments(old, new)
        calls: list[Any] = [call if args is None else {**call, "args": args} for call, args in zip(message.tool_calls, arguments)]
        new_args = {call["id"]: call["args"] for call in calls}
        content = message.content
        if isinstance(content, list):
            content = [_with_arguments(block, new_args) for block in content]
        return message.model_copy(update={"tool_calls": calls, "content": content})
    return message.model_copy(update={"content": new["content"]})


def _with_arguments(block: Any, arguments: dict[str | None, Any]) -> Any:
    """The block of a call with the arguments that the call has now."""
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "tool_use" and block.get("id") in arguments:
        return {**block, "input": arguments[block["id"]]}
    if kind == "function_call" and block.get("call_id") in arguments:
        return {**block, "arguments": json.dumps(arguments[block["call_id"]], ensure_ascii=False)}
    return block
