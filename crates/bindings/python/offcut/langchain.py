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
from typing import Any, Literal

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage, convert_to_messages
from langchain_core.tools import StructuredTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.types import Command

from . import _chat
from ._reduction import Reduction, spelled_parts

#: What is beside a message of chat completions, and the blocks without thoughts: they sign nothing.
_UNSIGNED = {"refusal", "function_call", "tool_calls", "__openai_function_call_ids__"}
_MIME = ("mime_type", "media_type", "mimeType")
_BLOCKS = {"text", "output_text", "refusal", "tool_use", "function_call", "tool_call"}
#: What OpenAI has beside a call: other things may sign it.
_EXTRAS = {"item_id", "status", "namespace", "async"}
_ROLES: dict[type[BaseMessage], str] = {SystemMessage: "system", HumanMessage: "user"}


class OffcutMiddleware(AgentMiddleware):
    """Shortens what tools return, clears old results before a model call, and adds the reader to the tools.

    Cleared messages are replaced in the agent's state, so a checkpoint has them too.
    """

    def __init__(self, reduction: Reduction):
        super().__init__()
        self.reduction = reduction
        self.tools = [reader(reduction)] if reduction.reader_name else []
        # What was last sent beside messages, and the conversation: agents, threads and sub-agents may share a middleware.
        self._beside: tuple[str | None, list[Any]] = (None, [])

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        of, beside = self._beside
        is_same = of is not None and of == _conversation(state)
        changed = cleared(self.reduction, state["messages"], beside if is_same else [])
        return {"messages": changed} if changed else None

    async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return await asyncio.to_thread(self.before_model, state, runtime)

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        self._know(request)
        return handler(request)

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        self._know(request)
        return await handler(request)

    def _know(self, request: Any) -> None:
        """Keeps what is sent beside the messages. The agent tells it after the pass, so the next one counts it."""
        tools = [tool if isinstance(tool, dict) else convert_to_openai_tool(tool) for tool in request.tools]
        beside = [*tools, request.system_message.text] if request.system_message else tools
        self._beside = (_conversation(request.state), beside)

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return self._read(request.tool_call) or self._shown(request, handler(request))

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        page = await asyncio.to_thread(self._read, request.tool_call)
        return page or await asyncio.to_thread(self._shown, request, await handler(request))

    def _read(self, call: Any) -> ToolMessage | None:
        """The reader's answer, also where a tool of the agent has taken its name; none if the call names nothing stored."""
        if (answered := self.reduction._answer(call)) is None:
            return None
        content, is_error = answered
        status: Literal["error", "success"] = "error" if is_error else "success"
        return ToolMessage(content, name=call["name"], tool_call_id=call["id"] or "", status=status)

    def _shown(self, request: Any, result: Any) -> Any:
        # Nobody but the user sees this one.
        if getattr(request.tool, "return_direct", False):
            return result
        call = request.tool_call
        if isinstance(result, list):
            return [self._shown(request, one) for one in result]
        if isinstance(result, dict) and "tool" in (result.get("role"), result.get("type")):
            [result] = convert_to_messages([result])
        if isinstance(result, Command):
            update = result.update
            if isinstance(update, dict) and isinstance(update.get("messages"), list):
                messages = [self._shown(request, one) for one in update["messages"]]
                return replace(result, update={**update, "messages": messages})
            return result
        if not isinstance(result, ToolMessage):
            return result
        before, is_error = _parts(result.content), result.status == "error"
        if not isinstance(before, str) and not spelled_parts(before):
            return result
        content = self.reduction.truncate(
            before, tool=call["name"], call_id=call["id"] or "", arguments=call["args"], is_error=is_error
        )
        return result if content is before else result.model_copy(update={"content": content})


def _conversation(state: Any) -> str | None:
    """The id of the first message."""
    return next((message.id for message in state["messages"]), None)


def reader(reduction: Reduction) -> StructuredTool:
    """The reader as a tool."""
    told = reduction.tool("anthropic")

    def read(**arguments: Any) -> Any:
        content, is_error = reduction._content("openai-chat", arguments)
        if is_error:
            raise ToolException(content)
        return content

    async def aread(**arguments: Any) -> Any:
        return await asyncio.to_thread(read, **arguments)

    known = {"name": told["name"], "description": told["description"], "args_schema": told["input_schema"]}
    return StructuredTool.from_function(read, aread, handle_tool_error=True, **known)


def cleared(reduction: Reduction, messages: list[BaseMessage], beside: list[Any]) -> list[BaseMessage]:
    """The messages that a pass has changed. A message with the same id takes the place of the one before."""
    changes = _chat.cleared(reduction, [_plain(message) for message in messages], beside)
    return [_changed(messages[nth], old, new) for nth, old, new in changes]


def _parts(content: Any) -> Any:
    if isinstance(content, list) and any(isinstance(one, str) for one in content):
        return [{"type": "text", "text": one} if isinstance(one, str) else one for one in content]
    return content


def _is_other(block: Any) -> bool:
    if not isinstance(block, dict) or block.get("type") not in _BLOCKS:
        return True
    return not _EXTRAS.issuperset(block.get("extras") or ())


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
        pairs = list(zip(message.tool_calls, _chat.new_arguments(old, new)))
        calls: list[Any] = [call if args is None else {**call, "args": args} for call, args in pairs]
        new_args = {call["id"]: args for call, args in pairs if args is not None}
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
    if kind == "tool_call" and block.get("id") in arguments:
        return {**block, "args": arguments[block["id"]]}
    return block
