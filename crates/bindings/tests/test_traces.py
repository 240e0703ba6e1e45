"""Transcripts through the class and through the program: the same bytes, in four formats.

`OFFCUT_TRACES` names a folder of JSON files with chat completions, and `OFFCUT` the program.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from offcut import Reduction

FOLDER, PROGRAM = os.environ.get("OFFCUT_TRACES"), os.environ.get("OFFCUT")
pytestmark = pytest.mark.skipif(not (FOLDER and PROGRAM), reason="without OFFCUT_TRACES and OFFCUT")
FILES = sorted(path for path in Path(FOLDER or "/nowhere").glob("*.json"))


def written(messages, format):
    """The messages in another format."""
    if format == "openai-chat":
        return {"messages": messages}
    all, names = [], {}
    for one in messages:
        calls = one.get("tool_calls") or []
        names |= {call["id"]: call["function"]["name"] for call in calls}
        text = one.get("content") or ""
        parsed = [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls]
        if format == "openai-responses":
            if one["role"] == "tool":
                all.append({"type": "function_call_output", "call_id": one["tool_call_id"], "output": text})
                continue
            all.append({"role": one["role"], "content": text})
            all += [{"type": "function_call", "call_id": id, "name": name, "arguments": args} for id, name, args in parsed]
            continue
        role = {"assistant": "assistant", "tool": "user"}.get(one["role"], "user")
        if format == "anthropic":
            blocks = [{"type": "tool_use", "id": id, "name": name, "input": _object(args)} for id, name, args in parsed]
            if one["role"] == "tool":
                blocks = [{"type": "tool_result", "tool_use_id": one["tool_call_id"], "content": text}]
            elif text:
                blocks.insert(0, {"type": "text", "text": text})
            all.append({"role": role, "content": blocks})
            continue
        parts = [{"functionCall": {"id": id, "name": name, "args": _object(args)}} for id, name, args in parsed]
        if one["role"] == "tool":
            id = one["tool_call_id"]
            parts = [{"functionResponse": {"id": id, "name": names.get(id, "tool"), "response": {"output": text}}}]
        elif text:
            parts.insert(0, {"text": text})
        all.append({"role": "model" if role == "assistant" else "user", "parts": parts})
    return {{"openai-responses": "input", "anthropic": "messages", "gemini": "contents"}[format]: all}


def _object(arguments):
    try:
        value = json.loads(arguments)
    except ValueError:
        value = arguments
    return value if isinstance(value, dict) else {"arguments": value}


@pytest.mark.parametrize("format", ["openai-chat", "openai-responses", "anthropic", "gemini"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem[:60])
def test_a_transcript(tmp_path, path, format):
    body = written(json.loads(path.read_text())["messages"], format)
    (field,) = body
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    store = str(tmp_path / "store")

    def program(command, *arguments):
        ran = subprocess.run(
            [PROGRAM, command, "--config", "recommended", "--backend", store, "--format", format, *arguments],
            input=text.encode(),
            capture_output=True,
            check=True,
        )
        return ran.stdout.decode()

    reduction = Reduction.in_dir(store)
    assert reduction.session("a").reduce(text) == program("reduce", "--session", "a")
    messages = body[field]
    before = list(messages)
    reduction.session("b").clear(messages, format)
    assert {field: messages} == json.loads(program("clear", "--session", "b"))
    assert len(messages) == len(before)
