"""Transcripts through both languages, the program and its server: the same bytes, in four formats.

`OFFCUT_TRACES` names a folder of JSON files with chat completions, `OFFCUT` the program, and `OFFCUT_MODULE` the module of Node.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from offcut import Reduction

FOLDER, PROGRAM = os.environ.get("OFFCUT_TRACES"), os.environ.get("OFFCUT")
pytestmark = pytest.mark.skipif(not (FOLDER and PROGRAM), reason="without OFFCUT_TRACES and OFFCUT")
FILES = sorted(path for path in Path(FOLDER or "/nowhere").glob("*.json"))
PATHS = {
    "openai-chat": "openai/v1/chat/completions",
    "openai-responses": "openai/v1/responses",
    "anthropic": "anthropic/v1/messages",
    "gemini": "gemini/v1beta/models/m:generateContent",
}


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


@pytest.fixture(scope="module")
def node():
    """Asks the class of Node."""
    # Beside the package, whose name Node looks up from there.
    script = Path(os.environ["OFFCUT_MODULE"]).with_name("tests") / "traces.mjs"
    running = subprocess.Popen(["node", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", bufsize=1)

    def ask(**question):
        print(json.dumps(question), file=running.stdin)
        return running.stdout.readline().rstrip("\n")

    yield ask
    running.stdin.close()
    assert running.wait() == 0


@pytest.fixture(scope="module")
def provider():
    """A provider's URL, and the bodies that it was sent."""
    bodies = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.append(self.rfile.read(int(self.headers["content-length"])).decode())
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", bodies
    server.shutdown()


def served(home, store, path, body, provider):
    """What a provider behind `offcut serve` is sent."""
    url, bodies = provider
    upstreams = "".join(f'{name} = "{url}"\n' for name in ("openai", "anthropic", "gemini"))
    home.mkdir()
    (home / "offcut.toml").write_text(f'preset = "recommended"\nbackend = "{store}"\n[serve]\nreduce_seconds = 600\n[serve.upstreams]\n{upstreams}')
    command = [PROGRAM, "serve", "--listen", "127.0.0.1:0", "--config", str(home / "offcut.toml")]
    environment = {**os.environ, "OFFCUT_HOME": str(home)}
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        address = server.stdout.readline().strip()
        request = urllib.request.Request(f"{address}/{path}", body.encode(), {"content-type": "application/json"})
        with urllib.request.urlopen(request) as reply:
            assert reply.headers["x-offcut"] in ("reduced", "unchanged"), reply.headers["x-offcut"]
    finally:
        server.terminate()
        server.wait()
    return bodies.pop()


@pytest.mark.parametrize("format", PATHS)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem[:60])
def test_a_transcript(tmp_path, node, provider, path, format):
    store = str(tmp_path / "store")

    def fresh():
        """A reduction over a new store of the same name: hints have it."""
        shutil.rmtree(store, ignore_errors=True)
        return Reduction.in_dir(store)

    body = written(json.loads(path.read_text())["messages"], format)
    (field,) = body
    tool = fresh().tool(format)
    text = json.dumps({**body, "tools": [tool]}, ensure_ascii=False, separators=(",", ":"))

    def program(command):
        fresh()
        options = ["--config", "recommended", "--backend", store, "--format", format, "--session", "a"]
        ran = subprocess.run([PROGRAM, command, *options], input=text.encode(), capture_output=True, check=True)
        return ran.stdout.decode()

    sent = program("reduce")
    assert fresh().session("a").reduce(text) == sent
    fresh()
    assert node(store=store, sessions=["a"], body=text) == sent

    cleared = json.loads(program("clear"))[field]
    messages = list(body[field])
    fresh().session("a").clear(messages, format, tools=[tool])
    assert messages == cleared
    fresh()
    assert json.loads(node(store=store, sessions=["a"], body=text, field=field, format=format)) == cleared

    fresh()
    sent = served(tmp_path / "home", store, PATHS[format], text, provider)
    found = re.search(re.escape(store) + r"/([^/\"\\]+)/([^/\"\\]+)/(?:trunc|clear)/", sent)
    sessions = [found[1], found[2]] if found else ["a"]
    reduction = fresh()
    for id in sessions:
        reduction = reduction.session(id)
    assert reduction.reduce(text) == sent
    fresh()
    assert node(store=store, sessions=sessions, body=text) == sent
