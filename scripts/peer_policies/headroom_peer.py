"""Headroom's `compress`, before each model call. Without its text model, which is not in the package."""
import re
from copy import deepcopy

from headroom import compress

from record import Recorder, turns

MARK = re.compile(r"hash=[0-9a-f]{6,}|<<ccr:")


def _same_place(sent: list[dict], got: list[dict]) -> list[int | None]:
    """The message that each one of `got` stands for: by call id, or by its place if nothing was added or removed."""
    if len(sent) == len(got) and all(one["role"] == other["role"] for one, other in zip(sent, got)):
        return list(range(len(got)))
    by_id = {message["tool_call_id"]: at for at, message in enumerate(sent) if "tool_call_id" in message}
    return [by_id.get(message.get("tool_call_id"), sent.index(message) if message in sent else None) for message in got]


def headroom(recorder: Recorder, messages: list[dict], frozen: bool = False) -> None:
    """With `frozen`, what was sent before is handed in as it was sent, and said to be in the provider's cache."""
    sent: list[dict] = []
    for turn in turns(messages):
        history = messages[:turn]
        if frozen:
            history = sent + messages[len(sent):turn]
        result = compress(
            deepcopy(history), model="gpt-4o", kompress_model="disabled", frozen_message_count=len(sent) if frozen else 0
        )
        places = _same_place(history, result.messages)
        entries = [recorder.entry(message, at) for message, at in zip(result.messages, places)]
        stored = {
            at: 0
            for message, at in zip(result.messages, places)
            if at is not None and MARK.search(message.get("content") or "") and message != messages[at]
        }
        recorder.request(entries, stored)
        if frozen:
            sent = result.messages
