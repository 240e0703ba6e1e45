"""Prints the milliseconds of `truncate`, of an untriggered `before_model`, and of its messages' conversion to JSON and back."""

import json
import sys
import time

from offcut import Reduction

with open(sys.argv[1]) as file:
    given = json.load(file)
reduction, messages = Reduction(given["settings"]), given["messages"]


def fastest(work):
    times = []
    for nth in range(given["runs"]):
        start = time.perf_counter()
        work(nth)
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def truncate(nth):
    assert reduction.truncate(f"{nth}\n{given['text']}", tool="grep", call_id=f"call_{nth}").startswith("[offcut/1")


def to_json(_=0):
    return json.dumps(messages, ensure_ascii=False, separators=(",", ":")).encode()


text = to_json()
works = [truncate, lambda _: reduction.before_model(messages, "openai-chat"), to_json, lambda _: json.loads(text)]
print(json.dumps([fastest(work) for work in works]))
