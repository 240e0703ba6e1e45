"""A filter and a tool for the OpenAI Agents SDK.

    from agents import Agent, RunConfig, Runner
    from offcut import Reduction
    from offcut.openai_agents import input_filter, reader

    reduction = Reduction.in_dir(".offcut").session("chat-42")
    agent = Agent(name="…", tools=[*tools, reader(reduction)])
    config = RunConfig(call_model_input_filter=input_filter(reduction))
    result = await Runner.run(agent, "…", run_config=config)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeGuard

from agents import FunctionTool
from agents.run import CallModelData, ModelInputData

from ._reduction import Reduction


def input_filter(reduction: Reduction) -> Callable[[CallModelData[Any]], Awaitable[ModelInputData]]:
    """Returns a filter that shortens and clears results in what is sent.

    The run's own items stay whole. What was decided about a conversation is kept in its session, so that each of its
    calls is sent the same texts.
    """

    async def filtered(data: CallModelData[Any]) -> ModelInputData:
        sent = data.model_data
        beside: list[Any] = [_counted(tool) for tool in data.agent.tools if _is_sent(tool)]
        if sent.instructions is not None:
            # They are counted as a tool is. Tools of MCP servers are not: to list them may cost a request.
            beside.append(sent.instructions)
        body = await reduction.areduce({"input": sent.input, "tools": beside}, "openai-responses")
        return ModelInputData(input=body["input"], instructions=sent.instructions)

    return filtered


def _is_sent(tool: Any) -> TypeGuard[FunctionTool]:
    return isinstance(tool, FunctionTool) and tool.is_enabled is not False


def _counted(tool: FunctionTool) -> dict[str, Any]:
    return {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.params_json_schema}


def _part(part: dict[str, Any]) -> Any:
    kind = part["type"].removeprefix("input_")
    return {**part, "type": kind}


def reader(reduction: Reduction) -> FunctionTool:
    """The reader as a tool."""
    told = reduction.tool("openai-responses")

    async def read(context: Any, arguments: str) -> Any:
        content, _ = await asyncio.to_thread(reduction._content, "openai-responses", arguments or "{}")
        return content if isinstance(content, str) else [_part(one) for one in content]

    return FunctionTool(
        name=told["name"],
        description=told["description"],
        params_json_schema=told["parameters"],
        on_invoke_tool=read,
        strict_json_schema=False,
    )
