"""Messages of a framework as chat completions, for a pass over them."""

from __future__ import annotations

import json
from collections.abc import Iterator
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


def cleared(
    reduction: Reduction, messages: list[dict[str, Any]], beside: list[Any]
) -> Iterator[tuple[int, dict[str, Any], dict[str, Any]]]:
    """Runs the clear pass. Returns each message that has changed: its index, the message before and after.

    What is sent `beside` the messages is counted: tools, and instructions as texts.
    """
    before = list(messages)
    reduction.clear(messages, "openai-chat", tools=beside)
    pairs = enumerate(zip(before, messages))
    return ((nth, old, new) for nth, (old, new) in pairs if new is not old)


def new_arguments(before: dict[str, Any], after: dict[str, Any]) -> Iterator[dict[str, Any] | None]:
    """The arguments of each call of a message as they are now; None for those that have not changed."""
    for old, new in zip(before.get("tool_calls", []), after.get("tool_calls", [])):
        text = new["function"]["arguments"]
        yield None if text == old["function"]["arguments"] else json.loads(text)
