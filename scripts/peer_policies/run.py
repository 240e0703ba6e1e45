"""Replays transcripts through each peer's real code, and writes the requests that it would have sent."""
import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from record import Recorder, transcripts

sys.setrecursionlimit(100_000)


def peers() -> dict:
    """Each peer, by the name that it has in tables."""
    import agent_framework_peer
    import documented
    import headroom_peer
    import langchain_peers as langchain

    def of(function, **options):
        return lambda recorder, messages: function(recorder, messages, **options)

    return {
        "anthropic-documented": of(documented.anthropic),
        "langchain-clear": of(langchain.clear_tool_uses),
        "langchain-clear-30k": of(langchain.clear_tool_uses, trigger=30_000, keep=1),
        "langchain-summary-60k": of(langchain.summarize, trigger=60_000),
        "langchain-trim-60k": of(langchain.trim, most=60_000),
        "deepagents": of(langchain.deepagents),
        "deepagents-60k": of(langchain.deepagents, trigger=60_000),
        "agent-framework": of(agent_framework_peer.agent_framework),
        "headroom": of(headroom_peer.headroom),
        "headroom-frozen": of(headroom_peer.headroom, frozen=True),
    }


def one(job: tuple[str, str, list[dict], Path]) -> tuple[str, str, float]:
    peer, name, messages, out = job
    begin = time.monotonic()
    recorder = Recorder(out / peer / f"{name}.jsonl", messages)
    peers()[peer](recorder, messages)
    recorder.close()
    return peer, name, time.monotonic() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("transcripts", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--peer", action="append", choices=list(peers()))
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    all_of_them = transcripts(args.transcripts)
    jobs = [(peer, name, messages, args.out) for peer in args.peer or peers() for name, messages in all_of_them.items()]
    took: dict[str, float] = {}
    with ProcessPoolExecutor(args.jobs) as pool:
        for peer, name, seconds in pool.map(one, jobs):
            if peer not in took:
                print(f"{peer} …", file=sys.stderr)
            took[peer] = took.get(peer, 0) + seconds
    for peer, seconds in took.items():
        print(f"{peer}: {seconds:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
