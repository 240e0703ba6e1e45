"""A peer as a process: reads the messages of a request on each line, and writes those that it would send. For `offcut-scripted`."""
import json
import sys
from copy import deepcopy

import documented
from record import tokens_of


def anthropic(messages: list[dict]) -> list[dict]:
    if sum(map(tokens_of, messages)) <= 100_000:
        return messages
    results = [at for at, message in enumerate(messages) if message["role"] == "tool"]
    return [{**m, "content": documented.PLACEHOLDER} if at in results[:-3] else m for at, m in enumerate(messages)]


def langchain(messages: list[dict]) -> list[dict]:
    """`ClearToolUsesEdit` as it is by default, over LangChain's own messages."""
    import langchain_peers as peers
    from langchain.agents.middleware.context_editing import ClearToolUsesEdit

    edited = [peers._langchain(message, at) for at, message in enumerate(messages)]
    ClearToolUsesEdit().apply(edited, count_tokens=peers.count)
    return [{**m, "content": peers._text(e)} if m["role"] == "tool" else m for m, e in zip(messages, edited)]


def headroom(messages: list[dict]) -> list[dict]:
    from headroom import compress

    return compress(deepcopy(messages), model="gpt-4o", kompress_model="disabled").messages


if __name__ == "__main__":
    policy = {"anthropic-documented": anthropic, "langchain-clear": langchain, "headroom": headroom}[sys.argv[1]]
    for line in sys.stdin:
        print(json.dumps(policy(json.loads(line))), flush=True)
