"""Context editors as a process beside an agent: lines of JSON in, lines of JSON out.

    {"add": [messages]}                     → {"keep": N, "messages": [...]}: the next request, from message N of the last one on
    {"new": true}                       → {"tools": [...]}: a new conversation, and the tools that the editor adds to it
    {"call": {"name": …, "arguments": {…}}} → {"result": …}: a call of one of these tools
                                            → {"arguments": {…}}: any other call, to be run with these arguments if there are any
"""
import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from copy import deepcopy
from pathlib import Path

from record import tokens_of


class Documented:
    """Anthropic's strategy, written after its documentation."""

    tools: list = []

    def request(self, history: list[dict]) -> list[dict]:
        from documented import PLACEHOLDER

        results = [at for at, message in enumerate(history) if message["role"] == "tool"]
        cleared = set(results[:-3]) if sum(map(tokens_of, history)) > 100_000 else set()
        return [{**message, "content": PLACEHOLDER} if at in cleared else message for at, message in enumerate(history)]


class Request:
    """What LangChain's middleware reads of a request."""

    def __init__(self, messages: list):
        self.messages = messages

    def override(self, messages: list) -> "Request":
        return Request(messages)


class LangChain:
    """`ContextEditingMiddleware`."""

    tools: list = []

    def __init__(self, **options):
        from langchain.agents.middleware import ContextEditingMiddleware
        from langchain.agents.middleware.context_editing import ClearToolUsesEdit
        from langchain_peers import _langchain, _number, _text, count

        self.middleware = ContextEditingMiddleware(edits=[ClearToolUsesEdit(**options)], token_counter=count)
        self.there, self.number, self.text = _langchain, _number, _text

    def request(self, history: list[dict]) -> list[dict]:
        sent: list = []
        request = Request([self.there(message, at) for at, message in enumerate(history)])
        self.middleware.wrap_model_call(request, lambda edited: sent.extend(edited.messages))
        return [self._back(message, history) for message in sent]

    def _back(self, message, history: list[dict]) -> dict:
        # A cleared result is a new message with the same call id.
        call = getattr(message, "tool_call_id", None)
        at = self.number(message) if call is None else next(i for i, m in enumerate(history) if m.get("tool_call_id") == call)
        original, text = history[at], self.text(message)
        return original if (original.get("content") or "") == text else {**original, "content": text}


class AgentFramework:
    """Microsoft Agent Framework's default compaction."""

    tools: list = []

    def __init__(self):
        from agent_framework import ContextWindowCompactionStrategy, apply_compaction
        from agent_framework_peer import Tokens, _message

        self.strategy = ContextWindowCompactionStrategy(
            max_context_window_tokens=128_000, max_output_tokens=16_384, tokenizer=Tokens()
        )
        self.apply, self.there = apply_compaction, _message
        self.messages: list = []

    def request(self, history: list[dict]) -> list[dict]:
        self.messages += [self.there(history[at], at) for at in range(len(self.messages_of(history)), len(history))]
        self.taken = len(history)
        sent = asyncio.run(self.apply(self.messages, strategy=self.strategy))
        return [self._back(message, history) for message in sent]

    def messages_of(self, history: list[dict]) -> list[dict]:
        return history[: getattr(self, "taken", 0)]

    def _back(self, message, history: list[dict]) -> dict:
        known = message.message_id or ""
        return history[int(known[1:])] if re.fullmatch(r"m\d+", known) else {"role": message.role, "content": message.text}


class Headroom:
    """`compress`, without its text model, and the tool by which a model reads back."""

    tools = [
        {
            "type": "function",
            "function": {
                "name": "headroom_retrieve",
                "description": "Return the original of compressed content by the hash in its marker.",
                "parameters": {"type": "object", "properties": {"hash": {"type": "string"}}, "required": ["hash"]},
            },
        }
    ]

    def __init__(self, frozen: bool = False):
        from headroom import compress

        self.compress, self.frozen, self.sent, self.taken = compress, frozen, [], 0

    def request(self, history: list[dict]) -> list[dict]:
        given = self.sent + history[self.taken :] if self.frozen else history
        options = {"frozen_message_count": len(self.sent)} if self.frozen else {}
        result = self.compress(deepcopy(given), model="gpt-4o", kompress_model="disabled", **options)
        self.sent, self.taken = deepcopy(result.messages), len(history)
        return result.messages

    def call(self, arguments: dict) -> str:
        from headroom.cache.compression_store import get_compression_store

        entry = get_compression_store().retrieve(arguments["hash"])
        return entry.original_content if entry else "nothing is stored under this hash"


class Rtk:
    """The program rtk in front of shell commands, as its hooks for agents put it there."""

    tools: list = []

    def __init__(self):
        self.program = Path(sys.executable).parent / "rtk"
        # It keeps a history of commands, and writes what it left out to files below it.
        self.home = tempfile.TemporaryDirectory()

    def request(self, history: list[dict]) -> list[dict]:
        return history

    def rewritten(self, name: str, arguments: dict) -> dict | None:
        if name != "bash":
            return None
        asked = arguments["command"]
        command = subprocess.run([self.program, "rewrite", asked], capture_output=True, text=True).stdout.strip() or asked
        environment = {"HOME": self.home.name, "RTK_TELEMETRY_DISABLED": "1", "PATH": f"{self.program.parent}:{os.environ['PATH']}"}
        exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
        return {"command": f"export {exports}; {command}"}


EDITORS = {
    "anthropic-documented": Documented,
    "langchain-clear": LangChain,
    "langchain-clear-30k": lambda: LangChain(trigger=30_000, keep=1),
    "agent-framework": AgentFramework,
    "headroom": Headroom,
    "headroom-frozen": lambda: Headroom(frozen=True),
    "rtk": Rtk,
}


def main() -> None:
    answers = sys.stdout
    # Libraries print too.
    sys.stdout = sys.stderr
    editor, history, previous = EDITORS[sys.argv[1]](), [], []
    for line in sys.stdin:
        asked = json.loads(line)
        if asked.get("new"):
            editor, history, previous = EDITORS[sys.argv[1]](), [], []
            answer = {"tools": editor.tools}
        elif "call" in asked:
            call = asked["call"]
            if any(tool["function"]["name"] == call["name"] for tool in editor.tools):
                answer = {"result": editor.call(call["arguments"])}
            else:
                answer = {"arguments": editor.rewritten(**call) if hasattr(editor, "rewritten") else None}
        else:
            history += asked["add"]
            sent, keep = editor.request(history), 0
            while keep < min(len(sent), len(previous)) and sent[keep] == previous[keep]:
                keep += 1
            answer = {"keep": keep, "messages": sent[keep:]}
            previous = deepcopy(sent)
        print(json.dumps(answer, ensure_ascii=False), file=answers, flush=True)


if __name__ == "__main__":
    main()
