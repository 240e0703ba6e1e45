"""The class `Reduction`, without any framework."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from offcut import OffcutError, Reduction, SettingsError, State, StoreError

LONG = "".join(f"{nth}: a line\n" for nth in range(4_000))
CALLS = {
    "openai-chat": {"id": "call_1", "type": "function", "function": {"name": "grep", "arguments": '{"q":1}'}},
    "openai-responses": {"type": "function_call", "call_id": "call_1", "name": "grep", "arguments": '{"q":1}'},
    "anthropic": {"type": "tool_use", "id": "call_1", "name": "grep", "input": {"q": 1}},
    "gemini": {"functionCall": {"id": "call_1", "name": "grep", "args": {"q": 1}}},
}


@pytest.fixture
def reduction(tmp_path):
    return Reduction.in_dir(tmp_path / "store")


def small(tmp_path, **settings):
    """A reduction that clears early."""
    early = {"max_tokens_for_clear": 2_000, "clear_at_least_tokens": 0}
    return Reduction.in_dir(tmp_path / "store", **{**early, **settings})


def conversation(format, rounds=6):
    """A conversation whose results are not truncated, but too many."""
    messages = []
    for nth in range(rounds):
        call = json.loads(json.dumps(CALLS[format]).replace("call_1", f"call_{nth}"))
        text = f"{nth}: " + "a line of output\n" * 150
        messages += {
            "openai-chat": [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"call_{nth}", "content": text},
            ],
            "openai-responses": [call, {"type": "function_call_output", "call_id": f"call_{nth}", "output": text}],
            "anthropic": [
                {"role": "assistant", "content": [call]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"call_{nth}", "content": text}]},
            ],
            "gemini": [
                {"role": "model", "parts": [call]},
                {"role": "user", "parts": [{"functionResponse": {"id": f"call_{nth}", "name": "grep", "response": {"output": text}}}]},
            ],
        }[format]
    return [{"role": "user", "parts": [{"text": "go"}]} if format == "gemini" else {"role": "user", "content": "go"}, *messages]


@pytest.mark.parametrize("format", CALLS)
def test_a_call_is_answered_in_the_format_of_the_call(reduction, format):
    message = reduction.wrap_tool_call(CALLS[format], lambda: LONG)
    text = json.dumps(message)
    assert "[offcut/1 truncated" in text and len(text) < 10_000
    location = text.split('\\"')[1]
    read = json.loads(json.dumps(CALLS[format]).replace("grep", "read_file").replace("call_1", "call_2"))
    arguments = {"path": location, "pattern": "^3999:"}
    for holder in (read, read.get("function", {}), read.get("functionCall", {})):
        for name in ("arguments", "args", "input"):
            if name in holder:
                holder[name] = json.dumps(arguments) if isinstance(holder[name], str) else arguments
    page = reduction.wrap_tool_call(read, lambda: pytest.fail("the reader is Offcut's"))
    assert "3999: a line" in json.dumps(page)
    assert reduction.original(location).decode() == LONG
    assert reduction.read(location, pattern="^3999:").endswith("3999: a line")
    with pytest.raises(ValueError, match="nowhere"):
        reduction.original("nowhere")
    with pytest.raises(ValueError, match="copy it exactly from a hint"):
        reduction.read("nowhere")


@pytest.mark.parametrize("format", CALLS)
def test_a_pass_changes_old_results_alone(tmp_path, format):
    reduction = small(tmp_path)
    messages = conversation(format)
    before = list(messages)
    report = reduction.before_model(messages, tools=[reduction.tool(format)])
    assert len(messages) == len(before)
    changed = [new is not old for old, new in zip(before, messages)]
    assert 0 < sum(changed) < len(changed) and not any(changed[-2:])
    assert sum(one["outcome"] == "cleared" for one in report["decisions"]) == sum(changed)
    assert "offcut/1 cleared" in json.dumps(messages[changed.index(True)])
    again = list(messages)
    reduction.before_model(messages, format)
    assert all(new is old for old, new in zip(again, messages))


def test_the_results_of_parallel_calls_are_joined(reduction):
    messages = [{"role": "user", "content": "go"}, {"role": "assistant", "content": [CALLS["anthropic"], {**CALLS["anthropic"], "id": "call_2"}]}]
    for call in messages[1]["content"]:
        messages.append(reduction.wrap_tool_call(call, lambda: "fine"))
    first = messages[0]
    reduction.before_model(messages)
    assert [len(message["content"]) for message in messages[1:]] == [2, 2] and messages[0] is first
    reduction.clear(messages)
    assert len(messages) == 3


def test_a_body_is_reduced_as_it_was_given(tmp_path):
    text = '{ "model": "m", "n": 1.00, "messages": ' + json.dumps(conversation("openai-chat")) + "}"
    shown = small(tmp_path).session("chat-42").reduce(text)
    assert shown.startswith('{ "model": "m", "n": 1.00, "messages": [') and "offcut/1" in shown
    # Another process, as far as it can be seen.
    again = small(tmp_path).session("chat-42")
    assert again.reduce(text.encode()) == shown.encode()
    body = json.loads(text)
    assert again.reduce(body) == json.loads(shown) and body == json.loads(text)
    assert again.reduce(body["messages"]) == json.loads(shown)["messages"]
    new = {"messages": [{"role": "user", "content": [{"type": "new_kind"}]}]}
    with pytest.raises(ValueError, match="name the `format`"):
        again.reduce(new)
    assert again.reduce(new, "anthropic") is new
    short = {"messages": [{"role": "user", "content": "hi"}]}
    assert again.reduce(short) is short


def test_results_of_every_kind(reduction):
    def shown(result, **more):
        return reduction.truncate(result, tool="t", call_id="c1", **more)

    rows = [{"id": nth, "name": "x" * 10} for nth in range(5)]
    for short in ("short", rows, None, 7, {"a": 1}):
        assert shown(short) is short
    assert shown(b"short") == "short"
    assert reduction.wrap_tool_call(CALLS["anthropic"], lambda: b"")["content"][0]["content"] == ""
    assert shown(LONG).startswith("[offcut/1 truncated")
    assert shown(LONG.encode("utf-16")).startswith("[offcut/1 truncated")
    assert shown([{"id": nth, "text": "x" * 100} for nth in range(500)]).startswith("[offcut/1 truncated")
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    files = [{"type": "file", "name": "a.py"}, {"type": "file", "name": "b.py"}]
    assert reduction.wrap_tool_call(CALLS["anthropic"], lambda: files)["content"][0]["content"] == json.dumps(files)
    message = reduction.wrap_tool_call(CALLS["anthropic"], lambda: {(1, 2): 3})
    assert message["content"][0]["is_error"] and "keys must be" in message["content"][0]["content"]
    with pytest.raises(TypeError, match="awrap_tool_call"):
        reduction.wrap_tool_call(CALLS["anthropic"], lambda: asyncio.sleep(0))
    noted = [{"type": "text", "text": "short", "annotations": {"audience": ["user"]}}, image]
    assert shown(noted) is noted
    parts = shown([{"type": "text", "text": LONG}, image])
    assert parts[0]["text"].startswith("[offcut/1 truncated") and parts[1] == image
    message = reduction.wrap_tool_call(CALLS["anthropic"], lambda: {}["key"])
    assert message["content"][0] == {"type": "tool_result", "tool_use_id": "call_1", "content": "KeyError: 'key'", "is_error": True}
    custom = {"type": "custom_tool_call", "call_id": "c3", "name": "shell", "input": "ls"}
    assert reduction.wrap_tool_call(custom, lambda: "fine") == {"type": "custom_tool_call_output", "call_id": "c3", "output": "fine"}
    custom = {"id": "c4", "type": "custom", "custom": {"name": "shell", "input": "ls"}}
    assert reduction.wrap_tool_call(custom, lambda: "fine") == {"role": "tool", "tool_call_id": "c4", "content": "fine"}
    neutral = {"id": "c2", "name": "t", "arguments": {"a": 1}}
    assert reduction.wrap_tool_call(neutral, lambda: "fine", "openai-chat")["content"] == "fine"


def test_mistakes_are_told_with_a_cure(tmp_path, reduction):
    with pytest.raises(SettingsError, match="max_length_for_trunc"):
        Reduction.in_dir(tmp_path, max_length_for_trunk=8)
    with pytest.raises(SettingsError, match="no backend"):
        Reduction({})
    with pytest.raises(SettingsError, match="scheme|store"):
        Reduction.in_dir("ftp://nowhere/x")
    assert issubclass(SettingsError, OffcutError) and issubclass(StoreError, OffcutError)
    with pytest.raises(ValueError, match='"openai-chat", "openai-responses", "anthropic", "gemini"'):
        reduction.before_model([{"role": "user", "content": "x"}], "openai")
    with pytest.raises(ValueError, match="no known format fits"):
        reduction.before_model([{"a": 1}])
    with pytest.raises(ValueError, match="as the provider writes it"):
        reduction.wrap_tool_call({"a": 1}, lambda: "x", "anthropic")
    with pytest.raises(ValueError, match="name the `format`"):
        reduction.wrap_tool_call({"name": "t"}, lambda: "x")

    class Message:
        pass

    with pytest.raises(TypeError, match="Message has no place in a provider's message"):
        reduction.before_model([Message()])
    assert reduction.before_model([])["decisions"] == []


def test_objects_of_sdks_are_read(tmp_path):
    openai = pytest.importorskip("openai.types.chat")
    reduction = small(tmp_path)
    messages = conversation("openai-chat")
    for nth, message in enumerate(messages):
        if message["role"] == "assistant":
            messages[nth] = openai.ChatCompletionMessage.model_validate(message)
    plain = conversation("openai-chat")
    Reduction.in_dir(tmp_path / "other", max_tokens_for_clear=2_000, clear_at_least_tokens=0).before_model(plain)
    reduction.before_model(messages)
    assert [str(one.get("content"))[:20] for one in plain if one["role"] == "tool"] == [
        str(one["content"])[:20] for one in messages if isinstance(one, dict) and one["role"] == "tool"
    ]
    assert sum(isinstance(one, openai.ChatCompletionMessage) for one in messages) == 6
    anthropic = pytest.importorskip("anthropic.types")
    block = anthropic.ToolUseBlock(type="tool_use", id="toolu_1", name="grep", input={})
    assert reduction.wrap_tool_call(block, lambda: "fine")["content"][0]["tool_use_id"] == "toolu_1"
    # The blocks of an answer, as it came.
    reduction.before_model([{"role": "user", "content": "go"}, {"role": "assistant", "content": [block]}])


def test_a_framework_s_messages_are_refused_by_name(reduction):
    messages = pytest.importorskip("langchain_core.messages")
    with pytest.raises(TypeError, match="langchain_core.messages.human.HumanMessage .* use offcut.langchain"):
        reduction.before_model([messages.HumanMessage("hi")])


def test_text_that_is_not_unicode_stays(reduction):
    half = [{"role": "user", "content": "half \ud83d of a pair"}, {"role": "tool", "tool_call_id": "c", "content": "é" * 10}]
    before = list(half)
    reduction.before_model(half, "openai-chat")
    assert half == before


def test_results_that_are_not_unicode_are_shown(reduction):
    assert reduction.wrap_tool_call(CALLS["anthropic"], lambda: "a \ud83d b")["content"][0]["content"] == "a \ufffd b"
    assert reduction.truncate("a \ud83d" + LONG, tool="t", arguments={"q": "\ude00"}).startswith("[offcut/1 truncated")
    assert reduction.truncate("😀", tool="t") == "😀"


def test_messages_added_during_a_pass_stay(tmp_path):
    async def work():
        messages = conversation("openai-chat")
        count = len(messages)
        passed = asyncio.ensure_future(small(tmp_path).abefore_model(messages))
        await asyncio.sleep(0)
        messages.append({"role": "user", "content": "and quickly"})
        report = await passed
        assert report["decisions"] and len(messages) == count + 1 and messages[-1]["content"] == "and quickly"

    asyncio.run(work())


def test_reports_and_logs(tmp_path, caplog):
    told = []
    reduction = Reduction.in_dir(tmp_path / "store", on_report=lambda report: told.append(report) or 1 / 0)
    with caplog.at_level(logging.DEBUG, "offcut"):
        reduction.truncate(LONG, tool="grep", call_id="c1")
    assert told[0]["decisions"][0]["locations"] == [str(tmp_path / "store" / "trunc" / "c1")]
    assert "truncate truncated 'grep', call 'c1'" in caplog.text
    os.chmod(tmp_path / "store", 0o500)
    if os.geteuid() == 0:
        return
    with caplog.at_level(logging.WARNING, "offcut"):
        assert reduction.truncate(LONG + "x", tool="grep", call_id="c2") == LONG + "x"
    assert "Permission" in caplog.text


def test_a_store_that_fails_can_end_the_call(tmp_path):
    (tmp_path / "store").mkdir()
    reduction = Reduction.in_dir(tmp_path / "store", on_offload_error="fail")
    (tmp_path / "store").rmdir()
    (tmp_path / "store").write_text("in the way")
    with pytest.raises(StoreError, match="could not store"):
        reduction.truncate(LONG, tool="grep", call_id="c1")


def test_asyncio(reduction):
    async def work():
        async def run():
            await asyncio.sleep(0.01)
            return LONG

        shown = await asyncio.gather(
            *(reduction.awrap_tool_call({**CALLS["anthropic"], "id": f"c{nth}"}, run) for nth in range(50))
        )
        assert len({message["content"][0]["content"] for message in shown}) == 50
        messages = conversation("anthropic")
        await reduction.abefore_model(messages)
        page = await reduction.aread(shown[0]["content"][0]["content"].split('"')[1], limit=1)
        assert "0: a line" in page
        assert await reduction.areduce({"messages": messages}) is not None
        return await reduction.atruncate(LONG, tool="t")

    assert asyncio.run(work()).startswith("[offcut/1")


def test_threads_and_forks(tmp_path, reduction):
    """Calls from 16 threads, and forks in the middle of them: every child works, and none hangs."""
    done = threading.Event()
    count = 0

    def call(nth):
        nonlocal count
        while not done.is_set():
            text = reduction.truncate(f"{nth}.{count}\n" + LONG, tool="grep", call_id=f"c-{nth}")
            assert "offcut/1" in text
            count += 1

    with ThreadPoolExecutor(16) as pool:
        running = [pool.submit(call, nth) for nth in range(16)]
        for nth in range(20):
            if (child := os.fork()) == 0:
                try:
                    shown = reduction.truncate(f"child {nth}\n" + LONG, tool="grep", call_id=f"child-{nth}")
                    location = shown.split('"')[1]
                    os._exit(0 if reduction.original(location).decode() == f"child {nth}\n" + LONG else 3)
                except BaseException:
                    os._exit(4)
            deadline = time.monotonic() + 30
            while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
                time.sleep(0.005)
            if ended[0] == 0:
                os.kill(child, signal.SIGKILL)
                pytest.fail("a child hangs")
            assert os.waitstatus_to_exitcode(ended[1]) == 0
        done.set()
        for one in running:
            one.result()
    assert count > 100


def test_a_store_in_memory_does_not_outlive_a_fork():
    reduction = Reduction.in_dir("memory:bindings")
    shown = reduction.truncate(LONG, tool="grep", call_id="c1")
    assert reduction.original(shown.split('"')[1]).decode() == LONG
    if (child := os.fork()) == 0:
        try:
            reduction.truncate(LONG, tool="grep", call_id="c2")
            os._exit(1)
        except StoreError as error:
            os._exit(0 if "make the Reduction in the child" in str(error) else 2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_cases_of_state_that_all_languages_run():
    cases = json.loads(Path(os.environ["OFFCUT_STATE_CASES"]).read_text())
    assert len(cases) > 15
    for case in cases:
        try:
            state = State(case["schema"], case.get("state"))
            before = state.value
            after = state.apply(*case["updates"])
            assert after == state.value == case["after"], case["about"]
        except (SettingsError, ValueError) as error:
            assert str(error).startswith(case["error"] + ": "), case["about"]
            assert not case["updates"] or state.value == before
    yaml = State("dialect: openarmature\nfields:\n  - {name: x, type: list, reducer: append}\n")
    assert yaml.apply({"x": [1]}, {"x": [2]}) == {"x": [1, 2]}
