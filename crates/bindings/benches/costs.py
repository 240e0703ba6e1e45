"""Prints the milliseconds of `truncate`, of an untriggered `before_model`, and of its messages' conversion to JSON."""

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


def convert(_):
    json.dumps(messages, ensure_ascii=False, separators=(",", ":")).encode()


figures = [fastest(truncate), fastest(lambda _: reduction.before_model(messages, "openai-chat")), fastest(convert)]
print(json.dumps(figures))
