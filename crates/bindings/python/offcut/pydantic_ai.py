"""A capability for pydantic-ai's agents.

    from pydantic_ai import Agent
    from offcut import Reduction
    from offcut.pydantic_ai import Offcut

    agent = Agent(model, tools=tools, capabilities=[Offcut(Reduction.in_dir(".offcut"))])
"""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai import BinaryContent, FunctionToolset, Tool, ToolReturn
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters

from . import _chat
from ._reduction import Reduction


@dataclass
class Offcut(AbstractCapability[Any]):
    """Shortens what tools return, clears old results before a model call, and adds the reader to the tools."""

    reduction: Reduction

    def get_toolset(self) -> Any:
        return FunctionToolset([reader(self.reduction)]) if self.reduction.reader_name else None

    async def after_tool_execute(self, ctx: Any, *, call: ToolCallPart, tool_def: Any, args: Any, result: Any) -> Any:
        value = result.return_value if isinstance(result, ToolReturn) else result
        part = ToolReturnPart(call.tool_name, value)
        if part.files:
            return result
        if not isinstance(value, (str, bytes)):
            value = part.model_response_str()
        shown = await self.reduction.atruncate(
            value, tool=call.tool_name, call_id=call.tool_call_id, arguments=call.args
        )
        if shown is value:
            return result
        return replace(result, return_value=shown) if isinstance(result, ToolReturn) else shown

    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        beside = _beside(request_context.model_request_parameters)
        messages = await asyncio.to_thread(cleared, self.reduction, list(request_context.messages), beside)
        request_context.messages = messages
        ctx.messages[:] = messages
        return request_context


def reader(reduction: Reduction) -> Tool:
    """The reader as a tool."""
    told = reduction.tool("anthropic")

    async def read(**arguments: Any) -> Any:
        content, _ = await asyncio.to_thread(reduction._content, "anthropic", arguments)
        return content if isinstance(content, str) else [_medium(one) for one in content]

    return Tool.from_schema(read, told["name"], told["description"], told["input_schema"])


def _medium(block: dict[str, Any]) -> Any:
    source = block.get("source", {})
    data = source.get("data")
    return block.get("text", "") if data is None else BinaryContent(base64.b64decode(data), media_type=source["media_type"])


def _beside(parameters: ModelRequestParameters) -> list[Any]:
    tools = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters_json_schema}
        for tool in parameters.tool_defs.values()
        if not tool.defer_loading
    ]
    return [*tools, *(part.content for part in parameters.instruction_parts or [])]


def cleared(reduction: Reduction, messages: list[ModelMessage], beside: list[Any]) -> list[ModelMessage]:
    """The messages after a pass, which counts the tools and instructions `beside` them."""
    plain: list[dict[str, Any]] = []
    # Of each message in `plain`, the message and its part; a response has no part.
    places: list[tuple[int, int]] = []
    for nth, message in enumerate(messages):
        if isinstance(message, ModelResponse):
            plain.append(_response(message))
            places.append((nth, -1))
            continue
        for at, part in enumerate(message.parts):
            plain.append(_part(part))
            places.append((nth, at))
    after = list(messages)
    for index, old, new in _chat.cleared(reduction, plain, beside):
        nth, at = places[index]
        after[nth] = _changed(after[nth], at, old, new)
    return after


def _response(message: ModelResponse) -> dict[str, Any]:
    calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
    # A provider may have signed what stands beside its thoughts.
    is_fixed = any(not isinstance(part, (TextPart, ToolCallPart)) for part in message.parts)
    of_calls = [
        _chat.call(
            part.tool_call_id, part.tool_name, part.args, is_fixed=is_fixed or part.provider_details is not None
        )
        for part in calls
    ]
    return _chat.assistant("".join(part.content for part in message.parts if isinstance(part, TextPart)), of_calls)


def _part(part: Any) -> dict[str, Any]:
    if isinstance(part, ToolReturnPart):
        # Chat completions can't mark an error, and errors stay; so do files, and content of a shape of its own.
        stays = part.outcome != "success" or type(part) is not ToolReturnPart or bool(part.files)
        return _chat.result(part.tool_call_id, "" if stays else part.model_response_str())
    if isinstance(part, SystemPromptPart):
        return {"role": "system", "content": part.content}
    if isinstance(part, UserPromptPart):
        content: Any = part.content
        if not isinstance(content, str):
            content = [{"type": "text", "text": text} for text in content if isinstance(text, str)]
        return {"role": "user", "content": content or ""}
    if getattr(part, "tool_name", None):
        # An error too.
        return _chat.result(part.tool_call_id, "")
    return {"role": "user", "content": str(getattr(part, "content", ""))}


def _changed(message: ModelMessage, at: int, old: dict[str, Any], new: dict[str, Any]) -> ModelMessage:
    parts: list[Any] = list(message.parts)
    if isinstance(message, ModelRequest):
        content = new["content"]
        if isinstance(content, list):
            texts = iter(content)
            content = [next(texts)["text"] if isinstance(one, str) else one for one in parts[at].content]
        parts[at] = replace(parts[at], content=content)
        return replace(message, parts=parts)
    arguments = _chat.new_arguments(old, new)
    for nth, part in enumerate(parts):
        if isinstance(part, ToolCallPart) and (args := next(arguments)) is not None:
            parts[nth] = replace(part, args=args)
    return replace(message, parts=parts)
