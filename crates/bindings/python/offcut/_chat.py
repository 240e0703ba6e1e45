"""Messages of a framework as chat completions, for a pass over them."""

from __future__ import annotations

import json
from typing import Any

from ._reduction import Reduction


def call(id: str | None, name: str, arguments: Any, *, is_fixed: bool) -> dict[str, Any]:
    """A call. The arguments of one that `is_fixed` are left alone: its provider has signed it."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    signed: dict[str, Any] = {"extra_content": {}} if is_fixed else {}
    return {"id": id or "", "type": "function", "function": {"name": name, "arguments": text}, **signed}


def assistant(content: Any, calls: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}


def result(id: str | None, content: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id or "", "content": content}


def cleared(reduction: Reduction, messages: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Runs the clear pass. Returns each message that has changed, by its index."""
    before = list(messages)
    reduction.clear(messages, "openai-chat")
    pairs = enumerate(zip(before, messages))
    return {nth: new for nth, (old, new) in pairs if new is not old}


def new_arguments(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The arguments of each call of a message."""
    return [json.loads(one["function"]["arguments"]) for one in message.get("tool_calls", [])]
