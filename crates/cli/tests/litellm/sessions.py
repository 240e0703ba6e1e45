"""Sessions of twenty calls through LiteLLM's proxy, whose guardrail `headroom` calls `offcut serve`.

Arguments: the program `offcut`, the program `litellm`, an empty folder. Prints what was seen as JSON,
and fails if a result that the model reads back is not equal to what its tool returned.
"""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OFFCUT, LITELLM, HOME = sys.argv[1:4]
CALLS = 20
KEYS = {"one": "key-of-tenant-one-0001", "two": "key-of-tenant-two-0002"}
READER = "headroom_retrieve"
MASTER = "sk-master-key-of-this-test-0123456789abcdef"


def result(n):
    """What the client's tool returns at its call `n`."""
    return "".join(f"{n}: line {line} of a long result, with äöü and \"quotes\"\n" for line in range(400))


def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Protocol:
    """How one protocol writes what all have."""

    def __init__(self, name, path, model):
        self.name, self.path, self.model = name, path, model

    def request(self, history):
        tool = {"name": "run", "description": "Runs a step", }
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
        if self.name == "chat":
            tools = [{"type": "function", "function": {**tool, "parameters": schema}}]
            return {"messages": history, "tools": tools}
        if self.name == "responses":
            return {"input": history, "tools": [{"type": "function", **tool, "parameters": schema}]}
        return {"messages": history, "tools": [{**tool, "input_schema": schema}], "max_tokens": 100}

    def answer(self, call, text):
        """A reply with a call `(id, name, arguments)`, or with a text."""
        if self.name == "chat":
            message = {"role": "assistant", "content": None if call else text}
            if call:
                function = {"name": call[1], "arguments": json.dumps(call[2])}
                message["tool_calls"] = [{"id": call[0], "type": "function", "function": function}]
            choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if call else "stop"}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
        if self.name == "responses":
            if call:
                item = {"type": "function_call", "id": "fc_" + call[0], "call_id": call[0], "name": call[1],
                        "arguments": json.dumps(call[2]), "status": "completed"}
            else:
                part = {"type": "output_text", "text": text, "annotations": []}
                item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
            usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
                     "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
            return {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m",
                    "output": [item], "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": usage}
        block = {"type": "tool_use", "id": call[0], "name": call[1], "input": call[2]} if call else {"type": "text", "text": text}
        usage = {"input_tokens": 1, "output_tokens": 1}
        return {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [block],
                "stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None, "usage": usage}

    def call_in(self, reply):
        """The call in a reply, `(id, name, arguments)`, and what goes into the history for it."""
        if self.name == "chat":
            message = reply["choices"][0]["message"]
            calls = message.get("tool_calls") or []
            found = [(c["id"], c["function"]["name"], json.loads(c["function"]["arguments"])) for c in calls]
            items = [{"role": "assistant", "content": message.get("content"), "tool_calls": calls}]
        elif self.name == "responses":
            calls = [item for item in reply["output"] if item["type"] == "function_call"]
            found = [(c["call_id"], c["name"], json.loads(c["arguments"])) for c in calls]
            items = [{"type": "function_call", "call_id": c["call_id"], "name": c["name"], "arguments": c["arguments"]} for c in calls]
        else:
            calls = [block for block in reply["content"] if block["type"] == "tool_use"]
            found = [(c["id"], c["name"], c["input"]) for c in calls]
            items = [{"role": "assistant", "content": reply["content"]}]
        assert len(found) <= 1, found
        return (found[0] if found else None), items

    def result_items(self, call, text):
        if self.name == "chat":
            return [{"role": "tool", "tool_call_id": call[0], "content": text}]
        if self.name == "responses":
            return [{"type": "function_call_output", "call_id": call[0], "output": text}]
        return [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": call[0], "content": text}]}]

    def seen_by_model(self, body):
        """The tools' names, and the results as `(call id, tool, text)`, in order."""
        names, results, tools = {}, [], []
        for tool in body.get("tools") or []:
            tools.append(tool.get("name") or tool.get("function", {}).get("name"))
        for item in body.get("messages") or body.get("input"):
            for call in item.get("tool_calls") or []:
                names[call["id"]] = call["function"]["name"]
            if item.get("type") == "function_call":
                names[item["call_id"]] = item["name"]
            if item.get("role") == "tool":
                results.append((item["tool_call_id"], text_of(item["content"])))
            if item.get("type") == "function_call_output":
                results.append((item["call_id"], text_of(item["output"])))
            if self.name == "messages" and isinstance(item.get("content"), list):
                for block in item["content"]:
                    if block["type"] == "tool_use":
                        names[block["id"]] = block["name"]
                    if block["type"] == "tool_result":
                        results.append((block["tool_use_id"], text_of(block["content"])))
        unpaired = [call for call, _ in results if call not in names]
        assert not unpaired, f"results without a call: {unpaired}"
        return tools, [(call, names[call], text) for call, text in results]


def text_of(content):
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


PROTOCOLS = [Protocol("chat", "/v1/chat/completions", "chat"), Protocol("responses", "/v1/responses", "chat"),
             Protocol("messages", "/v1/messages", "claude")]


class Provider(BaseHTTPRequestHandler):
    """A scripted provider. The results in a request say which step comes next."""

    protocol_version = "HTTP/1.1"
    # Of the session that runs.
    seen = {}
    problems = []

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        protocol = next(p for p in PROTOCOLS if self.path.startswith(p.path))
        try:
            reply = self.step(protocol, body)
            status = 200
        except Exception as error:
            Provider.problems.append(f"{protocol.name}: {error!r}")
            status, reply = 400, {"error": {"message": repr(error), "type": "invalid_request_error"}}
        data = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def step(self, protocol, body):
        seen = Provider.seen
        tools, results = protocol.seen_by_model(body)
        own = [(call, text) for call, tool, text in results if tool == "run"]
        read = [text for _, tool, text in results if tool == READER]
        n = len(own)
        if not read:
            seen["sent"] += len(json.dumps(body))
            seen["steps"].append([text for _, text in own])
        hashes = [re.search("hash=([0-9a-f]{24})", text) for _, text in own]
        seen["hashes"].update(found.group(1) for found in hashes if found)
        cut = [at for at, found in enumerate(hashes) if found]
        seen["cut"] = max(seen["cut"], len(cut))
        if cut and READER not in tools:
            raise ValueError("there is no tool that reads back")
        if n % 4 == 0 and cut and not read:
            # The model wants to see one of the results that it no longer sees.
            at = cut[n // 4 % len(cut)]
            seen["wanted"] = at
            return protocol.answer((f"read_{n}", READER, {"hash": hashes[at].group(1)}), "")
        if read:
            if read[-1] != result(seen["wanted"]):
                raise ValueError(f"result {seen['wanted']} read back as {read[-1][:200]!r}")
            seen["equal"] += 1
        if n == CALLS:
            return protocol.answer(None, "done")
        return protocol.answer((f"call_{n}", "run", {"n": n}), "")


def post(url, body, headers={}):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=120) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{url}: {error.code} {error.read().decode()[:2000]} {Provider.problems}")


def until_up(url, process):
    for _ in range(3000):
        if process.poll() is not None:
            raise SystemExit(f"{process.args[0]} has ended")
        try:
            return urllib.request.urlopen(url, timeout=5).read()
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    raise SystemExit(f"{url} does not answer")


def serve(address):
    process = subprocess.Popen([OFFCUT, "serve", "--config", f"{HOME}/offcut.toml", "--listen", address, "--log", "warn"],
                               env={**os.environ, "OFFCUT_HOME": HOME}, stdout=open(os.devnull, "w"))
    until_up(f"http://{address}/healthz", process)
    return process


def proxy(name, api_base, provider):
    """A proxy of LiteLLM with one guardrail: of several, only the first one would answer the model's calls."""
    guardrail = {"guardrail": "headroom", "mode": "pre_call", "api_base": api_base, "api_key": KEYS[name], "default_on": True}
    models = {"chat": {"model": "openai/m", "api_base": f"{provider}/v1", "api_key": "x"},
              "claude": {"model": "anthropic/claude-sonnet-4-5", "api_base": provider, "api_key": "x"}}
    settings = {"model_list": [{"model_name": model, "litellm_params": params} for model, params in models.items()],
                "guardrails": [{"guardrail_name": "offcut", "litellm_params": guardrail}],
                "general_settings": {"master_key": MASTER}}
    with open(f"{HOME}/{name}.json", "w") as file:  # JSON is YAML
        json.dump(settings, file)
    at = port()
    env = {key: value for key, value in os.environ.items() if "PROXY" not in key.upper()}
    env.update({"HOME": HOME, "LITELLM_LOCAL_MODEL_COST_MAP": "True"})
    log = open(f"{HOME}/{name}.log", "w")
    command = [LITELLM, "--config", f"{HOME}/{name}.json", "--host", "127.0.0.1", "--port", str(at)]
    return f"http://127.0.0.1:{at}", subprocess.Popen(command, env=env, stdout=log, stderr=log)


def session(protocol, tenant, proxy, restart=None):
    Provider.seen = {"sent": 0, "asked": 0, "steps": [], "hashes": set(), "cut": 0, "equal": 0}
    history = [{"role": "user", "content": "Run all steps"}]
    for n in range(CALLS + 1):
        body = {"model": protocol.model, **protocol.request(history)}
        Provider.seen["asked"] += len(json.dumps(body))
        reply = post(proxy + protocol.path, body, {"authorization": f"Bearer {MASTER}"})
        call, items = protocol.call_in(reply)
        assert (call is None) == (n == CALLS), reply
        if call is None:
            break
        assert call[1] == "run", f"a call of the reader came to the client: {call}"
        history += items + protocol.result_items(call, result(call[2]["n"]))
        if restart and n == CALLS // 2:
            restart()
    seen = Provider.seen
    # What has been cut stays cut, byte for byte.
    changed = sum(before != after for earlier, later in zip(seen["steps"], seen["steps"][1:])
                  for before, after in zip(earlier, later) if "hash=" in before)
    return {"protocol": protocol.name, "tenant": tenant, "cut": seen["cut"], "read back equal": seen["equal"],
            "changed again": changed, "bytes asked": seen["asked"], "bytes sent": seen["sent"]}, seen["hashes"]


def main():
    provider = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{provider.server_port}"
    address = f"127.0.0.1:{port()}"
    with open(f"{HOME}/offcut.toml", "w") as file:
        file.write(f'preset = "recommended"\nbackend = "{HOME}/store"\n[serve.compress_keys]\n')
        file.writelines(f'{name} = "{key}"\n' for name, key in KEYS.items())
    offcut = [serve(address)]
    proxies = {name: proxy(name, f"http://{address}", base) for name in KEYS}
    try:
        for url, process in proxies.values():
            until_up(f"{url}/health/liveliness", process)

        def restart():
            offcut[0].kill()
            offcut[0].wait()
            offcut[0] = serve(address)

        rows, hashes = [], {}
        for protocol in PROTOCOLS:
            for tenant in KEYS:
                row, seen = session(protocol, tenant, proxies[tenant][0], restart if tenant == "one" else None)
                rows.append(row)
                hashes.setdefault(tenant, set()).update(seen)
        assert not hashes["one"] & hashes["two"], "tenants share hashes"
        refused = 0
        for tenant, other in (("one", "two"), ("two", "one")):
            for one in hashes[other]:
                request = urllib.request.Request(f"http://{address}/v1/retrieve/{one}",
                                                 headers={"authorization": f"Bearer {KEYS[tenant]}"})
                try:
                    urllib.request.urlopen(request)
                    raise SystemExit("a tenant has read another one's result")
                except urllib.error.HTTPError as error:
                    assert error.code == 404, error.code
                    refused += 1
        print(json.dumps({"sessions": rows, "hashes": {name: len(of) for name, of in hashes.items()},
                          "refused": refused, "problems": Provider.problems}))
    finally:
        for process in [process for _, process in proxies.values()] + offcut:
            process.terminate()
            process.wait(30)


main()
