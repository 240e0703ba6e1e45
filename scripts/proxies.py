"""The times of the same requests through several proxies and through none, taken in turn. See scripts/proxies."""
import asyncio
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ANSWER = {
    "id": "1", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Done."}}],
    "usage": {"prompt_tokens": 1000, "completion_tokens": 9, "total_tokens": 1009},
}
EVENTS = 5
KEY = "sk-0123456789abcdef0123456789abcdef0123456789abcdef"  # LiteLLM's own, which it asks for
SEEN: list[int] = []  # the lengths of bodies that came to the provider


def event(content: str, reason=None) -> bytes:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": reason}
    return b"data: " + json.dumps({**ANSWER, "object": "chat.completion.chunk", "choices": [choice], "usage": None}).encode() + b"\n\n"


async def provide(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers the requests of one connection."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            lines = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
            body = await reader.readexactly(int(lines.get("content-length", 0)))
            SEEN.append(len(body))
            if b'"stream":true' in body or b'"stream": true' in body:
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
                for number in range(EVENTS):
                    piece = event(f"word {number}") if number < EVENTS - 1 else event("", "stop") + b"data: [DONE]\n\n"
                    writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    await writer.drain()
                    await asyncio.sleep(0.002)
                writer.write(b"0\r\n\r\n")
            else:
                text = json.dumps(ANSWER).encode()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(text), text))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


def start_provider() -> int:
    """Starts the provider on a thread, and returns its port."""
    ready: list[int] = []

    async def serve() -> None:
        server = await asyncio.start_server(provide, "127.0.0.1", 0, limit=1 << 24)
        ready.append(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    threading.Thread(target=lambda: asyncio.run(serve()), daemon=True).start()
    while not ready:
        time.sleep(0.01)
    return ready[0]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(name: str, provider: int, home: Path, programs: dict[str, str], processes: list) -> int:
    """Starts a proxy, adds it to `processes`, and waits until it listens. Returns its port."""
    port, url = free_port(), f"http://127.0.0.1:{provider}"
    environment = {**os.environ, "HOME": str(home), "OFFCUT_HOME": str(home), "OPENAI_TARGET_API_URL": url, "LITELLM_MASTER_KEY": KEY}
    if name == "offcut":
        settings = home / "offcut.toml"
        settings.write_text(f'preset = "recommended"\nbackend = "{home}/store"\n[serve.upstreams]\nopenai = "{url}"\n')
        command = ["serve", "--listen", f"127.0.0.1:{port}", "--log", "error", "--config", str(settings)]
    elif name == "headroom":
        command = ["proxy", "--port", str(port), "--no-rate-limit", "--no-cache"]
    else:
        settings = home / "litellm.json"
        model = {"model": "openai/m", "api_base": f"{url}/v1", "api_key": "none"}
        settings.write_text(json.dumps({"model_list": [{"model_name": "m", "litellm_params": model}]}))
        command = ["--config", str(settings), "--port", str(port), "--host", "127.0.0.1"]
    log = open(home / f"{name}.log", "w")
    process = subprocess.Popen([programs[name], *command], env=environment, cwd=home, stdout=log, stderr=log)
    processes.append(process)
    for _ in range(1200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return port
        except OSError:
            assert process.poll() is None, (home / f"{name}.log").read_text()[-2000:]
            time.sleep(0.1)
    raise SystemExit(f"{name} does not listen: {(home / f'{name}.log').read_text()[-2000:]}")


class Conversation:
    """The conversation of `cargo bench --bench serve`, told from others by its number."""

    def __init__(self, number: int):
        self.number, self.rounds = number, 0
        self.messages: list[dict] = [{"role": "user", "content": f"Where are pages read? Part {number}."}]

    def go_on(self, size: int) -> None:
        call, which = f"call_{self.number}_{self.rounds}", f"{self.number}_{self.rounds}"
        function = {"name": "grep", "arguments": json.dumps({"pattern": f"page_{self.rounds}"})}
        lines = (
            f'src/module_{n % 17}/part_{n}.rs:{n * 3}:    pub fn read_page_{which}_{n}(&self, "from": usize) -> Page {{\n'
            for n in range(size // 60 + 1)
        )
        self.messages.append({"role": "assistant", "content": None, "tool_calls": [{"id": call, "type": "function", "function": function}]})
        self.messages.append({"role": "tool", "tool_call_id": call, "content": "".join(lines)[:size]})
        self.rounds += 1

    def body(self, stream: bool) -> bytes:
        tools = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("grep", "Read")]
        return json.dumps({"model": "m", "stream": stream, "messages": self.messages, "tools": tools}).encode()


def post(way: http.client.HTTPConnection, body: bytes) -> tuple[float, float]:
    """Sends a request. Returns the seconds to the first byte of the answer's body, and to its end."""
    begun = time.perf_counter()
    way.request("POST", "/v1/chat/completions", body, {"content-type": "application/json", "authorization": f"Bearer {KEY}"})
    reply = way.getresponse()
    reply.read(1)
    first = time.perf_counter() - begun
    rest = reply.read()
    assert reply.status == 200, (reply.status, rest[:500])
    return first, time.perf_counter() - begun


def main() -> None:
    programs = dict(zip(("offcut", "headroom", "litellm"), (str(Path(program).absolute()) for program in sys.argv[1:4])))
    conversations, calls = map(int, sys.argv[4:6] or (3, 20))
    provider = start_provider()
    kinds = ["a new round", "the same once more", "first byte of a stream", "60 bytes"]
    with tempfile.TemporaryDirectory() as home:
        processes, ports = [], {"none": provider}
        try:
            for name in programs:
                (Path(home) / name).mkdir()
                ports[name] = start(name, provider, Path(home) / name, programs, processes)
            ways = {name: http.client.HTTPConnection("127.0.0.1", port, timeout=120) for name, port in ports.items()}
            times = {(name, kind): [] for name in ways for kind in kinds}
            lengths = {name: 0 for name in ways}
            for number in range(conversations):
                chat = Conversation(number)
                while len(chat.body(False)) < 600_000:
                    chat.go_on([1_000, 3_000, 12_000, 15_000][chat.rounds % 4])
                    if chat.rounds % 10 == 0:
                        for way in ways.values():
                            post(way, chat.body(False))
                for call in range(calls):
                    chat.go_on([600, 900, 6_000, 1_200][call % 4])
                    turn = list(ways)[call % len(ways) :] + list(ways)[: call % len(ways)]
                    for name in turn:
                        way, small = ways[name], b'{"model":"m","messages":[{"role":"user","content":"hello"}]}'
                        SEEN.clear()
                        times[name, kinds[0]].append(post(way, chat.body(False))[1])
                        lengths[name] += SEEN[-1]
                        times[name, kinds[1]].append(post(way, chat.body(False))[1])
                        times[name, kinds[2]].append(post(way, chat.body(True))[0])
                        times[name, kinds[3]].append(post(way, small)[1])
        finally:
            for process in processes:
                process.terminate()
                process.wait()

    def at(name: str, kind: str, share: float) -> float:
        all_times = sorted(times[name, kind])
        return 1000 * all_times[round((len(all_times) - 1) * share)]

    print(f"ms added to the provider's own answer, p50 / p99, {conversations * calls} requests of each kind")
    print("| | " + " | ".join(kinds) + " | bytes sent |\n|---|---|---|---|---|---|")
    for name in ways:
        cells = []
        for kind in kinds:
            p50, p99 = (at(name, kind, share) - (at("none", kind, share) if name != "none" else 0) for share in (0.5, 0.99))
            cells.append(f"{p50:.1f} / {p99:.1f}")
        print(f"| {name} | " + " | ".join(cells) + f" | {100 * lengths[name] / lengths['none']:.1f} % |")


if __name__ == "__main__":
    main()
