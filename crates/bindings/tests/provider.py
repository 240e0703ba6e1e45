"""A provider on loopback whose model calls a tool, reads what was stored of its result, and says what it read."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LOG = "".join(f"{nth}: a line of the log\n" for nth in range(3_000)) + "the leak is in pool.rs\n" + "an end\n" * 2_000
LOCATION = re.compile(r'\[offcut/1 [^"\]]*\\?"([^"\\]+)')


class Provider:
    """Serves chat completions, Responses and Anthropic's messages. `rounds` is how often the tool is called.

    With a `script`, each of its steps is one answer: a text, or calls, in which `LOCATION` is where the first result was stored.
    """

    def __init__(self, rounds: int = 1, script: list[Any] | None = None):
        self.bodies: list[dict[str, Any]] = []
        self.texts: list[str] = []
        self.script = script
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers["content-length"])).decode()
                body = json.loads(text)
                if "thread" in body:
                    # Histories that the provider keeps: the SDK then sends everything.
                    details = {"error_code": "thread_unsupported_request", "unsupported": []}
                    error = {"type": "invalid_request_error", "message": "no threads", "details": details}
                    return self.answer(400, json.dumps({"type": "error", "error": error}), "application/json")
                provider.bodies.append(body)
                provider.texts.append(text)
                if self.path.startswith("/v1/messages"):
                    answer, events = provider.anthropic(body)
                elif self.path.startswith("/v1/responses"):
                    answer, events = provider.responses(body)
                else:
                    answer, events = provider.chat(body)
                is_stream = bool(body.get("stream"))
                data = "".join(events) if is_stream else json.dumps(answer)
                self.answer(200, data, "text/event-stream" if is_stream else "application/json")

            def answer(self, status: int, data: str, kind: str) -> None:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data.encode())))
                self.end_headers()
                self.wfile.write(data.encode())

            def log_message(self, *_: Any) -> None:
                pass

        self.rounds = rounds
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def next(self, results: list[str], text: str) -> list[tuple[str, str, dict[str, Any]]] | str:
        """The next calls: for each, its id, the tool and the arguments; or the answer."""
        found = LOCATION.search(json.dumps(text, ensure_ascii=False))
        path = found.group(1) if found else "nothing was stored"
        if self.script and len(self.bodies) <= len(self.script):
            step = self.script[len(self.bodies) - 1]
            return json.loads(json.dumps(step).replace("LOCATION", path))
        if self.script is None and len(results) < self.rounds:
            return [(f"call_{len(results)}x7Qm2Zk", "logs", {"nth": len(results)})]
        if self.script is None and len(results) == self.rounds:
            return [("call_readR5t8Wq", "read_file", {"path": path, "pattern": "leak"})]
        return "It says: " + results[-1]

    def chat(self, body: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        results = [_text(one["content"]) for one in body["messages"] if one["role"] == "tool"]
        step = self.next(results, "\n".join(results))
        message: dict[str, Any] = {"role": "assistant", "content": step if isinstance(step, str) else None}
        if not isinstance(step, str):
            functions = [(id, {"name": name, "arguments": json.dumps(arguments)}) for id, name, arguments in step]
            message["tool_calls"] = [{"id": id, "type": "function", "function": function} for id, function in functions]
        reason = "stop" if isinstance(step, str) else "tool_calls"
        usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
        base = {"id": f"chatcmpl-{len(self.bodies)}", "created": 1, "model": "m", "usage": usage}
        answer = {**base, "object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": reason}]}
        delta = dict(message)
        if "tool_calls" in delta:
            delta["tool_calls"] = [{"index": nth, **call} for nth, call in enumerate(delta["tool_calls"])]
        chunks = [
            {**base, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {**base, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        ]
        return answer, [f"data: {json.dumps(one)}\n\n" for one in chunks] + ["data: [DONE]\n\n"]

    def responses(self, body: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        outputs = [one for one in body["input"] if isinstance(one, dict) and one.get("type") == "function_call_output"]
        results = [_text(one["output"]) for one in outputs]
        step = self.next(results, "\n".join(results))
        if isinstance(step, str):
            part = {"type": "output_text", "text": step, "annotations": []}
            items = [{"id": f"msg_{len(self.bodies)}", "type": "message", "role": "assistant", "status": "completed", "content": [part]}]
        else:
            base = {"type": "function_call", "status": "completed"}
            items = [
                {**base, "id": f"fc_{id}", "call_id": id, "name": name, "arguments": json.dumps(arguments)} for id, name, arguments in step
            ]
        usage = {"input_tokens": 10, "output_tokens": 10, "total_tokens": 20, "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        answer = {"id": f"resp_{len(self.bodies)}", "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": items, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": usage}
        events: list[dict[str, Any]] = [{"type": "response.created", "response": {**answer, "status": "in_progress", "output": []}}]
        for nth, item in enumerate(items):
            events.append({"type": "response.output_item.added", "output_index": nth, "item": item})
            events.append({"type": "response.output_item.done", "output_index": nth, "item": item})
        events.append({"type": "response.completed", "response": answer})
        events = [{**one, "sequence_number": nth} for nth, one in enumerate(events)]
        return answer, [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events]

    def anthropic(self, body: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        blocks = [one for message in body["messages"] if isinstance(message["content"], list) for one in message["content"]]
        results = [_text(one["content"]) for one in blocks if one["type"] == "tool_result"]
        step = self.next(results, "\n".join(results))
        if isinstance(step, str):
            content: list[dict[str, Any]] = [{"type": "text", "text": step}]
        else:
            content = [{"type": "tool_use", "id": id, "name": name, "input": arguments} for id, name, arguments in step]
        usage = {"input_tokens": 10, "output_tokens": 10}
        reason = "end_turn" if isinstance(step, str) else "tool_use"
        answer = {"id": f"msg_{len(self.bodies)}", "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": reason, "stop_sequence": None, "usage": usage}
        events: list[dict[str, Any]] = [{"type": "message_start", "message": {**answer, "content": [], "stop_reason": None}}]
        for nth, block in enumerate(content):
            if block["type"] == "text":
                start, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                start, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            events.append({"type": "content_block_start", "index": nth, "content_block": start})
            events.append({"type": "content_block_delta", "index": nth, "delta": delta})
            events.append({"type": "content_block_stop", "index": nth})
        events.append({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage})
        events.append({"type": "message_stop"})
        return answer, [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events]

    def check(self, answer: str) -> None:
        """The model read what was stored, and was never sent the whole log."""
        assert "the leak is in pool.rs" in answer, answer
        assert len(self.bodies) == self.rounds + 2
        for body in self.bodies:
            assert len(json.dumps(body)) < 20_000 + 40_000 * (self.rounds > 1), len(json.dumps(body))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or [])


if __name__ == "__main__":
    # For tests in other languages: serves until its input ends, and then writes the bodies.
    import sys

    given = json.loads(sys.argv[1])
    provider = Provider(given) if isinstance(given, int) else Provider(script=given)
    print(provider.url, flush=True)
    sys.stdin.read()
    print(json.dumps(provider.texts), flush=True)
