"""Calls from threads, from asyncio and between forks, and killed in the middle: nothing is lost, nothing hangs, memory is flat.

`OFFCUT_CALLS` is the number of calls: 400 without it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from offcut import Reduction

CALLS = int(os.environ.get("OFFCUT_CALLS", 400))
#: Bytes by which the process may grow in the second half of the calls.
GROWTH = 40 << 20


def text_of(nth):
    return "".join(f"{nth}.{line}: a line\n" for line in range(2_000))


def location_of(shown):
    assert shown.startswith("[offcut/1 truncated")
    return shown.split('"')[1]


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def reduction(tmp_path):
    return Reduction.in_dir(tmp_path / "store")


def test_threads(reduction):
    def call(nth):
        location = location_of(reduction.truncate(text_of(nth), tool="grep", call_id=f"c-{nth}"))
        assert reduction.original(location).decode() == text_of(nth)
        return location

    with ThreadPoolExecutor(16) as pool:
        locations = list(pool.map(call, range(CALLS // 2)))
        before = resident()
        locations += pool.map(call, range(CALLS // 2, CALLS))
    assert len(set(locations)) == CALLS
    assert resident() - before < GROWTH


def test_asyncio(reduction):
    async def call(nth):
        shown = await reduction.atruncate(text_of(nth), tool="grep", call_id=f"c-{nth}")
        assert f"{nth}.1999: a line" in await reduction.aread(location_of(shown), pattern="1999:")

    async def work():
        await asyncio.gather(*(call(nth) for nth in range(CALLS // 2)))
        before = resident()
        await asyncio.gather(*(call(nth) for nth in range(CALLS // 2, CALLS)))
        assert resident() - before < GROWTH

    asyncio.run(work())


def test_forks(reduction):
    """Forks in the middle of calls from 16 threads: every child works, and none hangs."""
    done = threading.Event()
    counts = [0] * 16

    def call(thread):
        while not done.is_set():
            nth = f"{thread}.{counts[thread]}"
            location = location_of(reduction.truncate(text_of(nth), tool="grep", call_id=f"c-{nth}"))
            assert reduction.original(location).decode() == text_of(nth)
            counts[thread] += 1

    with ThreadPoolExecutor(16) as pool:
        running = [pool.submit(call, thread) for thread in range(16)]
        try:
            for nth in range(max(20, CALLS // 100)):
                if (child := os.fork()) == 0:
                    try:
                        text = text_of(f"child {nth}")
                        location = location_of(reduction.truncate(text, tool="grep", call_id=f"child-{nth}"))
                        os._exit(0 if reduction.original(location).decode() == text else 3)
                    except BaseException:
                        os._exit(4)
                deadline = time.monotonic() + 60
                while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
                    time.sleep(0.005)
                if ended[0] == 0:
                    os.kill(child, signal.SIGKILL)
                    pytest.fail("a child hangs")
                assert os.waitstatus_to_exitcode(ended[1]) == 0
        finally:
            done.set()
        for one in running:
            one.result()
    assert all(counts)


WRITER = """
import sys
from concurrent.futures import ThreadPoolExecutor
from offcut import Reduction
from test_load import location_of, text_of

reduction = Reduction.in_dir(sys.argv[1])

def call(nth):
    location = location_of(reduction.truncate(text_of(nth), tool="grep", call_id=f"c-{nth}"))
    sys.stdout.write(f"{nth} {location}\\n")
    sys.stdout.flush()

with ThreadPoolExecutor(16) as pool:
    list(pool.map(call, range(1_000_000)))
"""


def test_killed_in_the_middle(tmp_path):
    """What was shown before the kill is stored whole, and another process goes on."""
    command = [sys.executable, "-c", WRITER, str(tmp_path / "store")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), os.path.dirname(__file__)])}
    for _ in range(3):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as writer:
            lines = [writer.stdout.readline() for _ in range(CALLS // 10)]
            writer.kill()
            lines += [line for line in writer.stdout if line.endswith("\n")]
        reduction = Reduction.in_dir(tmp_path / "store")
        for line in lines:
            nth, _, location = line.rstrip("\n").partition(" ")
            assert reduction.original(location).decode() == text_of(nth)
