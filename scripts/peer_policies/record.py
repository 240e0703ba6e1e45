"""Transcripts as messages of chat completions, and the requests that a policy makes of one, as `offcut replay --requests` reads them."""
import json
from functools import cache
from pathlib import Path

import tiktoken

ENCODING = tiktoken.get_encoding("o200k_base")


@cache
def tokens_of_text(text: str) -> int:
    return len(ENCODING.encode_ordinary(text))


def tokens_of(message: dict) -> int:
    """Tokens as the replay counts them: content, names and arguments of calls, and 4 for the message."""
    calls = message.get("tool_calls") or []
    texts = [message.get("content") or ""]
    texts += [text for call in calls for text in (call["function"]["name"], call["function"]["arguments"])]
    return 4 + sum(map(tokens_of_text, texts))


def transcripts(folder: Path) -> dict[str, list[dict]]:
    """The messages of each transcript, by the name of its file."""
    return {file.stem: json.loads(file.read_text())["messages"] for file in sorted(folder.glob("*.json"))}


def turns(messages: list[dict]) -> list[int]:
    """The numbers of the assistant's messages: each is a model call, whose request is everything before it."""
    return [at for at, message in enumerate(messages) if message["role"] == "assistant"]


class Recorder:
    """Writes requests, each as its difference from the one before."""

    def __init__(self, file: Path, messages: list[dict]):
        file.parent.mkdir(parents=True, exist_ok=True)
        self.file = file.open("w")
        self.messages = messages
        self.numbers = {call_id: at for at, call_id in enumerate(m.get("tool_call_id") for m in messages) if call_id}
        self.previous: list = []
        self.known_stored: dict[int, int] = {}

    def entry(self, message: dict, at: int | None):
        """A message of a request: the number of the transcript's own if it is unchanged."""
        if at is None:
            return message
        original = self.messages[at]
        same = all((message.get(field) or None) == (original.get(field) or None) for field in ("role", "content", "tool_calls"))
        return at if same else {"instead_of": at, **message}

    def request(self, entries: list, stored: dict[int, int] | None = None) -> None:
        keep = 0
        for one, other in zip(entries, self.previous):
            if one != other:
                break
            keep += 1
        line = {"keep": keep, "messages": entries[keep:]}
        new = {at: lines for at, lines in (stored or {}).items() if at not in self.known_stored}
        if new:
            line["stored"] = new
            self.known_stored |= new
        self._write(line)
        self.previous = entries

    def own(self, messages: list[dict]) -> None:
        """A request that the policy makes for itself, such as one for a summary."""
        self._write({"own": True, "messages": messages})

    def _write(self, line: dict) -> None:
        self.file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")

    def close(self) -> None:
        self.file.close()
