"""Anthropic's `clear_tool_uses_20250919`, written here after its documentation: it runs at the provider, so nobody else can run its real code.

Once a request has more than `trigger` input tokens, the oldest results are replaced by a text, all but those of the newest `keep` tool
uses. The client's history stays whole, so each request is judged anew.
"""
from record import Recorder, tokens_of, turns

PLACEHOLDER = "[Old tool result content cleared]"


def anthropic(recorder: Recorder, messages: list[dict], trigger: int = 100_000, keep: int = 3) -> None:
    sums = [0]
    for message in messages:
        sums.append(sums[-1] + tokens_of(message))
    for turn in turns(messages):
        results = [at for at in range(turn) if messages[at]["role"] == "tool"]
        cleared = set(results[:-keep] if keep else results) if sums[turn] > trigger else set()
        recorder.request([recorder.entry({**messages[at], "content": PLACEHOLDER}, at) if at in cleared else at for at in range(turn)])
