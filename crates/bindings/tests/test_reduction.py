"""The class `Reduction`, without any framework."""

from __future__ import annotations

import asyncio
import base64
import copy
import json
import logging
import os
import pickle
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import make_dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from uuid import UUID

import pytest
from offcut import OffcutError, Reduction, SettingsError, State, StoreError
from offcut._offcut import are_parts

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
    inline = {"mimeType": "image/png", "data": "aGk="}
    for medium in ({"type": "image", **inline}, {"inlineData": inline}):
        assert reduction.wrap_tool_call(CALLS["anthropic"], lambda: [medium])["content"][0]["content"] == [image]
        answer = reduction.wrap_tool_call(CALLS["gemini"], lambda: [medium])["parts"][0]["functionResponse"]
        assert answer["parts"] == [{"inlineData": inline}] and answer["response"] == {}
    message = reduction.wrap_tool_call(CALLS["anthropic"], lambda: {}["key"])
    assert message["content"][0] == {"type": "tool_result", "tool_use_id": "call_1", "content": "KeyError: 'key'", "is_error": True}
    custom = {"type": "custom_tool_call", "call_id": "c3", "name": "shell", "input": "ls"}
    assert reduction.wrap_tool_call(custom, lambda: "fine") == {"type": "custom_tool_call_output", "call_id": "c3", "output": "fine"}
    custom = {"id": "c4", "type": "custom", "custom": {"name": "shell", "input": "ls"}}
    assert reduction.wrap_tool_call(custom, lambda: "fine") == {"role": "tool", "tool_call_id": "c4", "content": "fine"}
    bare = {"name": "grep", "args": {"q": 1}}
    assert reduction.wrap_tool_call(bare, lambda: "fine")["parts"][0]["functionResponse"]["name"] == "grep"
    kinds = [{"type": "input_text", "text": LONG}]
    assert [part["type"] for part in shown(kinds)] == ["input_text"]
    listing = [{"type": "file", "name": "a.rs", "url": "https://example.org/a.rs"}]
    for rows in [[{"type": "text", "text": "80", "marks": []}], [{"type": "text", "id": 7, "text": "80"}], listing]:
        assert json.loads(reduction.wrap_tool_call(CALLS["openai-chat"], lambda: rows)["content"]) == rows
    neutral = {"id": "c2", "name": "t", "arguments": {"a": 1}}
    assert reduction.wrap_tool_call(neutral, lambda: "fine", "openai-chat")["content"] == "fine"


PARTS = [
    [{"type": "text", "text": "a"}, {"type": "image", "data": "eA==", "mimeType": "image/png", "annotations": {}}],
    [{"type": "text", "text": "a", "id": "lc_1", "extras": {}}],
    [{"type": "image", "source": {"type": "base64"}, "cache_control": {}}],
    [{"type": "image_url", "image_url": {"url": "data:"}}],
    [{"inlineData": {"mimeType": "image/png", "data": "eA=="}}],
    [{"text": "a", "thought": True, "thoughtSignature": "s"}, {"inline_data": {}, "thought_signature": "s"}],
    [{"fileData": {"fileUri": "https://a"}}, {"text": "a"}],
    [{"type": "resource_link", "uri": "file:///a", "name": "a"}],
    [{"type": "search_result", "source": "a", "title": "b", "content": []}],
]
ROWS = [
    [],
    [1],
    {},
    [{"text": "a"}],
    [{"type": "text", "text": "a"}, {"text": "a"}],
    [{"text": "a", "id": 1}, {"inlineData": {}}],
    [{"text": "a"}, {"file_data": "a"}],
    [{"type": "file", "name": "a.rs", "url": "https://a"}],
    [{"type": "document", "source": "wiki", "title": "a"}],
    [{"type": "image", "url": "https://a", "title": "b"}],
    [{"type": "search_result", "source": "a", "score": 1}],
    [{"type": "text", "text": "a", "id": "5"}],
    [{"type": "text", "text": "a", "index": 5}],
    [{"type": "text", "text": None}],
    [{"type": 7, "text": "a"}],
    [{"type": None, "text": "a"}],
    [{"type": "text", "text": "a"}, {"type": "dir"}],
]


def test_rows_are_told_from_parts():
    for lists, expected in ((PARTS, True), (ROWS, False)):
        for one in lists:
            assert are_parts(json.dumps(one)) is expected, one


URL = "data:image/png;base64,+/+/"
INLINE = {"mimeType": "image/png", "data": "+/+/"}
FILE = {"mimeType": "application/pdf", "fileUri": "https://example.org/a.pdf"}
IMAGES = {
    "openai-chat": {"type": "image_url", "image_url": {"url": URL}},
    "openai-responses": {"type": "input_image", "image_url": URL},
    "anthropic": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "+/+/"}},
    "gemini": {"inlineData": INLINE},
    "mcp": {"type": "image", **INLINE},
}
TEXTS = {"openai-responses": {"type": "input_text", "text": "a shot"}, "gemini": {"text": "a shot"}}


def content_of(format, message):
    """The content of a message with a result, as the provider has it."""
    if format == "gemini":
        answer = message["parts"][0]["functionResponse"]
        return {name: answer[name] for name in ("response", "parts") if name in answer}
    if format == "anthropic":
        [message] = message["content"]
    return message["output" if format == "openai-responses" else "content"]


@pytest.mark.parametrize("format", CALLS)
@pytest.mark.parametrize("kind", IMAGES)
def test_an_image_in_any_provider_s_words_is_one_in_those_of_the_call(reduction, format, kind):
    text = {"type": "text", "text": "a shot"}
    message = reduction.wrap_tool_call(CALLS[format], lambda: [TEXTS.get(kind, text), IMAGES[kind]])
    expected = [TEXTS.get(format, text), IMAGES[format]]
    of_gemini = {"response": {"output": "a shot"}, "parts": [IMAGES["gemini"]]}
    assert content_of(format, message) == (of_gemini if format == "gemini" else expected)


def test_parts_keep_what_their_own_provider_says_of_them(reduction):
    for format, more in (("openai-responses", {"detail": "low"}), ("anthropic", {"cache_control": {"type": "ephemeral"}})):
        own = [{**IMAGES[format], **more}]
        assert content_of(format, reduction.wrap_tool_call(CALLS[format], lambda: own)) == own
    answer = content_of("gemini", reduction.wrap_tool_call(CALLS["gemini"], lambda: [{"text": "a"}, {"fileData": FILE}]))
    assert answer == {"response": {"output": "a"}, "parts": [{"fileData": FILE}]}
    # The texts are shortened, as parts of the same kind.
    shown = reduction.truncate([{"text": LONG}, {"inlineData": INLINE}], tool="t")
    assert list(shown[0]) == ["text"] and shown[0]["text"].startswith("[offcut/1 truncated") and shown[1] == {"inlineData": INLINE}
    rows = [{"text": "a"}, {"text": "b"}]
    assert json.loads(content_of("gemini", reduction.wrap_tool_call(CALLS["gemini"], lambda: rows))["response"]["output"]) == rows


def test_what_was_cut_is_a_part_as_it_was_before(reduction):
    signed = {"thought": True, "thoughtSignature": "s"}
    shown = reduction.truncate([{"text": LONG, **signed}, {"inlineData": INLINE}], tool="t", call_id="gemini")
    assert shown[0].pop("text").startswith("[offcut/1 truncated") and shown == [signed, {"inlineData": INLINE}]
    for kinds in (["output_text", "input_text"], ["text", "input_text"]):
        for long in (0, 1):
            given = [{"type": kind, "text": LONG if nth == long else "short"} for nth, kind in enumerate(kinds)]
            shown = reduction.truncate(given, tool="t", call_id=f"{kinds[0]} {long}")
            assert [one["type"] for one in shown] == kinds and shown[1 - long]["text"] == "short"
            assert shown[long]["text"].startswith("[offcut/1 truncated")


def test_chat_completions_link_to_images_alone(reduction):
    source = {"type": "url", "url": "https://example.org/a"}
    file = {"type": "input_file", "file_url": "https://example.org/a"}
    for other in ({"fileData": FILE}, {"type": "document", "source": source}, file):
        content = content_of("openai-chat", reduction.wrap_tool_call(CALLS["openai-chat"], lambda: [other]))
        assert json.loads(content if isinstance(content, str) else content[0]["text"]) == other
    image = {"fileData": {**FILE, "mimeType": "image/png"}}
    for one in (image, {"type": "image", "source": source}):
        content = content_of("openai-chat", reduction.wrap_tool_call(CALLS["openai-chat"], lambda: [one]))
        assert content[0]["type"] == "image_url"


@pytest.mark.parametrize("format", CALLS)
def test_resources_of_mcp_are_in_words_of_the_provider(reduction, format):
    link = {"type": "resource_link", "uri": "file:///b", "name": "b"}
    image = {"type": "resource", "resource": {"uri": "file:///c", "mimeType": "image/png", "blob": "+/+/"}}
    parts = [{"type": "resource", "resource": {"uri": "file:///a", "text": LONG}}, link, image]
    shown = json.dumps(reduction.wrap_tool_call(CALLS[format], lambda: parts))
    assert "[offcut/1 truncated" in shown and "file:///a" in shown and '\\"resource_link\\"' in shown and "+/+/" in shown
    assert '"resource"' not in shown and len(shown) < 9_000


def test_media_that_a_format_can_not_hold_are_stored(reduction):
    sound = bytes(n * n >> 7 & 255 for n in range(100_000))
    part = {"type": "audio", "data": base64.b64encode(sound).decode(), "mimeType": "audio/wav"}
    name, shown = content_of("anthropic", reduction.wrap_tool_call(CALLS["anthropic"], lambda: [part]))
    assert name["text"] == "[audio/wav, 100000 B]" and len(shown["text"]) < 8_000
    location = shown["text"].split('"')[1]
    assert reduction.original(location) == sound
    held = reduction.wrap_tool_call(CALLS["openai-chat"], lambda: [part])
    assert held["content"][0]["input_audio"]["data"] == part["data"]


def test_parts_of_google_s_sdk_are_parts(reduction):
    types = pytest.importorskip("google.genai.types")
    image = types.Part.from_bytes(data=base64.b64decode("+/+/"), mime_type="image/png")
    for result, response in (([types.Part(text="a shot"), image], {"output": "a shot"}), ([image], {}), (image, {})):
        answer = content_of("gemini", reduction.wrap_tool_call(CALLS["gemini"], lambda: result))
        assert answer == {"response": response, "parts": [IMAGES["gemini"]]}


def test_parts_of_mcp_s_sdk_are_parts(reduction):
    types = pytest.importorskip("mcp.types")
    text = types.TextContent(type="text", text="a shot")
    image = types.ImageContent(type="image", **INLINE)
    for result, content in (([text, image], [TEXTS["gemini"] | {"type": "text"}, IMAGES["anthropic"]]), (image, [IMAGES["anthropic"]])):
        assert content_of("anthropic", reduction.wrap_tool_call(CALLS["anthropic"], lambda: result)) == content
    assert reduction.truncate([types.TextContent(type="text", text=LONG), image], tool="t")[1]["mimeType"] == "image/png"


def test_mistakes_are_told_with_a_cure(tmp_path, reduction):
    with pytest.raises(SettingsError, match="max_length_for_trunc"):
        Reduction.in_dir(tmp_path, max_length_for_trunk=8)
    with pytest.raises(SettingsError, match="no backend"):
        Reduction({})
    with pytest.raises(SettingsError, match="scheme|store"):
        Reduction.in_dir("ftp://nowhere/x")
    for path in (Path("s3://bucket/prefix"), "s3:/bucket", "gs:bucket", "https:/x"):
        with pytest.raises(SettingsError, match="with its two slashes"):
            Reduction.in_dir(path)
    assert issubclass(SettingsError, OffcutError) and issubclass(StoreError, OffcutError)
    with pytest.raises(ValueError, match='"openai-chat", "openai-responses", "anthropic", "gemini"'):
        reduction.before_model([{"role": "user", "content": "x"}], "openai")
    with pytest.raises(ValueError, match="no known format fits"):
        reduction.before_model([{"a": 1}])
    of_openai = {"role": "tool", "tool_call_id": "a", "content": "x"}
    with pytest.raises(ValueError, match="calls of openai-chat, and `format` is anthropic"):
        reduction.before_model([of_openai], "anthropic")
    with pytest.raises(ValueError, match="as the provider writes it"):
        reduction.wrap_tool_call({"a": 1}, lambda: "x", "anthropic")
    with pytest.raises(ValueError, match="name the `format`"):
        reduction.wrap_tool_call({"name": "t"}, lambda: "x")

    class Message:
        pass

    with pytest.raises(TypeError, match="Message has no place in a provider's message"):
        reduction.before_model([Message()])
    with pytest.raises(ValueError, match="[Oo]ut of range float"):
        reduction.before_model([{"role": "user", "content": "x", "loss": float("nan")}])
    nan = {"loss": float("nan")}
    for call in (
        lambda: reduction.wrap_tool_call({**CALLS["anthropic"], "input": nan}, lambda: "x"),
        lambda: asyncio.run(reduction.awrap_tool_call({**CALLS["anthropic"], "input": nan}, lambda: "x")),
        lambda: reduction.truncate("x", tool="t", arguments=nan),
    ):
        with pytest.raises(ValueError, match="[Oo]ut of range float"):
            call()
    assert reduction.before_model([])["decisions"] == []


def test_an_option_that_json_can_t_say_is_refused_by_its_name(tmp_path):
    def handler(text):
        return text

    for options, told in (
        ({"trunc_handler": handler}, "`trunc_handler` is a function: .* for Rust, and here only `on_report`"),
        ({"tool_config": {"grep": {"preview_with": len}}}, "`tool_config.grep.preview_with` is a function"),
        ({"trunc_exclude_tools": {"grep"}}, "`trunc_exclude_tools` can't be a `set`"),
        ({"trunc_exclude_tools": [b"grep"]}, "`trunc_exclude_tools` can't be a `bytes`"),
        ({"max_length_for_trunc": float("nan")}, "`max_length_for_trunc` can't be nan"),
        ({"backend": tmp_path}, "takes no `backend`"),
    ):
        with pytest.raises(TypeError, match=told):
            Reduction.in_dir(tmp_path / "store", **options)
    settings = {"backend": tmp_path / "one", "tool_config": {"grep": {"backend": tmp_path / "two"}}}
    Reduction(settings).truncate(LONG * 2, tool="grep", call_id="c1")
    assert (tmp_path / "two" / "trunc" / "c1").exists()
    with pytest.raises(SettingsError, match="^`max_length_for_trunk`: unknown"):
        Reduction.in_dir(tmp_path / "store", max_length_for_trunk=8)


def test_a_reader_without_a_name_is_not_defined(tmp_path):
    reduction = Reduction.in_dir(tmp_path / "store", read_file_tool_name=False)
    assert reduction.reader_name is None
    with pytest.raises(SettingsError, match="`read_file_tool_name` is false"):
        reduction.tool("anthropic")


def test_a_result_that_no_message_can_say_is_an_error_of_its_call(reduction):
    class Plain:
        pass

    with open(os.devnull) as file:
        for result in ((nth for nth in "ab"), file, subprocess.CompletedProcess([], 0), [b"x"], Plain(), len):
            message = reduction.wrap_tool_call(CALLS["anthropic"], lambda: result)["content"][0]
            assert message["is_error"] and "a tool may return text, bytes" in message["content"], message
            with pytest.raises(TypeError, match="a tool may return"):
                reduction.truncate(result, tool="t")
    fine = {"day": date(2026, 1, 2), "cost": Decimal("1.50"), "more": MappingProxyType({"a": 1}), "keys": {"b": 1}.keys()}
    message = reduction.wrap_tool_call(CALLS["openai-chat"], lambda: fine)
    assert message["content"] == '{"day": "2026-01-02", "cost": "1.50", "more": {"a": 1}, "keys": ["b"]}'


def test_rows_that_are_no_parts_may_hold_anything(reduction):
    row = {"day": date(2026, 1, 2), "cost": Decimal("1.50"), "id": UUID(int=5), "loss": float("nan")}
    text = '{"day": "2026-01-02", "cost": "1.50", "id": "00000000-0000-0000-0000-000000000005", "loss": NaN}'
    of_sdk = make_dataclass("Row", row, namespace={"__module__": "google.mine"})
    for one in (row, of_sdk(**row)):
        for result, expected in ([[one], f"[{text}]"], [[one, one], f"[{text}, {text}]"], [of_sdk(**row), text]):
            assert reduction.truncate(result, tool="t") is result
            assert reduction.wrap_tool_call(CALLS["openai-chat"], lambda: result)["content"] == expected


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
    google = pytest.importorskip("google.genai.types")
    call = google.FunctionCall(id="call_1", name="grep", args={"q": 1})
    assert reduction.wrap_tool_call(call, lambda: "fine")["parts"][0]["functionResponse"]["id"] == "call_1"
    # The blocks of an answer, as it came.
    reduction.before_model([{"role": "user", "content": "go"}, {"role": "assistant", "content": [block]}])


def test_a_framework_s_messages_are_refused_by_name(reduction):
    messages = pytest.importorskip("langchain_core.messages")
    pydantic_ai = pytest.importorskip("pydantic_ai.messages")
    request = pydantic_ai.ModelRequest([pydantic_ai.UserPromptPart("hi")])
    for message, name in (
        (messages.HumanMessage("hi"), "langchain_core.messages.human.HumanMessage .* use offcut.langchain"),
        (request, "pydantic_ai.messages.ModelRequest .* use offcut.pydantic_ai"),
    ):
        for call in (reduction.before_model, reduction.clear, reduction.reduce):
            with pytest.raises(TypeError, match=name):
                call([message])
    dumped = pydantic_ai.ModelMessagesTypeAdapter.dump_python([request], mode="json")
    for foreign in (dumped, [messages.HumanMessage("hi").model_dump(exclude_none=True)]):
        with pytest.raises(ValueError, match="use the adapter"):
            reduction.clear(foreign)


FOREIGN = [
    ("LangChain", {"type": "tool", "tool_call_id": "c", "content": LONG}),
    ("pydantic-ai", {"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": "t", "content": LONG}]}),
    ("AI SDK ModelMessages", {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c", "output": {"type": "text", "value": LONG}}]}),
    ("AI SDK UIMessages", {"id": "1", "role": "assistant", "parts": [{"type": "tool-t", "toolCallId": "c", "output": LONG}]}),
]


@pytest.mark.parametrize(("name", "message"), FOREIGN, ids=[name for name, _ in FOREIGN])
@pytest.mark.parametrize("format", [None, "openai-chat"])
def test_a_framework_s_dicts_are_refused_by_name(reduction, name, message, format):
    with pytest.raises(ValueError, match=f"{name}.*use the adapter"):
        reduction.before_model([{"role": "user", "content": "hi"}, message], format)
    with pytest.raises(ValueError, match=f"{name}.*use the adapter"):
        reduction.reduce({"messages": [message]}, format)


def test_what_is_known_of_a_turn_counts(tmp_path):
    def passed(name, **turn):
        messages = conversation("openai-chat")
        reduction = Reduction.in_dir(tmp_path / name, max_tokens_for_clear=6_000, clear_at_least_tokens=0)
        return sum(one["outcome"] == "cleared" for one in reduction.before_model(messages, **turn)["decisions"])

    assert passed("plain") == 0
    assert passed("cold", is_cold=True) > 0
    assert passed("long", is_too_long=True) == 5
    assert passed("usage", last_usage=9_000) > 0
    with pytest.raises(ValueError, match="last_usage"):
        passed("wrong", last_usage=-1)
    reduction = Reduction.in_dir(tmp_path / "whole", max_tokens_for_clear=6_000, clear_at_least_tokens=0).session("chat-42")
    body = {"messages": conversation("openai-chat")}
    assert reduction.reduce(body) is body
    assert "offcut/1 cleared" in json.dumps(reduction.reduce(body, is_too_long=True))


def test_text_that_is_not_unicode_stays(reduction):
    half = [{"role": "user", "content": "half \ud83d of a pair"}, {"role": "tool", "tool_call_id": "c", "content": "é" * 10}]
    before = list(half)
    reduction.before_model(half, "openai-chat")
    assert half == before


def test_results_that_are_not_unicode_are_shown(reduction):
    assert reduction.wrap_tool_call(CALLS["anthropic"], lambda: "a \ud83d b")["content"][0]["content"] == "a \ufffd b"
    assert reduction.truncate("a \ud83d" + LONG, tool="t", arguments={"q": "\ude00"}).startswith("[offcut/1 truncated")
    assert reduction.truncate("😀", tool="t") == "😀"
    raw = b"caf\xe9 menu\n" * 1000
    shown = reduction.truncate(raw.decode(errors="surrogateescape"), tool="cat", call_id="bytes")
    assert ",not-utf8" in shown and reduction.original(shown.split('"')[1]) == raw
    # A byte in disguise, half of a pair, and a pair.
    shown = reduction.truncate("caf\udce9 \ud83d \ud83d\ude00\n" * 1000, tool="cat", call_id="halves")
    assert reduction.original(shown.split('"')[1]) == b"caf\xe9 \xef\xbf\xbd \xf0\x9f\x98\x80\n" * 1000


def test_an_exception_without_a_text_is_an_error_of_its_call(reduction):
    class Silent(Exception):
        def __str__(self):
            return self.args[1]

    class Result(dict):
        def items(self):
            raise Silent("one")

    def run():
        raise Silent("one")

    for tool in (run, lambda: Result(a=1)):
        expected = {"type": "tool_result", "tool_use_id": "call_1", "content": "Silent", "is_error": True}
        assert reduction.wrap_tool_call(CALLS["anthropic"], tool)["content"] == [expected]


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


def test_messages_changed_during_a_pass_stay(tmp_path, caplog):
    reduction = small(tmp_path)
    messages = conversation("openai-chat")
    planned = reduction._planned(messages, None, '{"joins":true}')
    assert planned[2]["messages"] is not None
    messages.insert(0, {"role": "system", "content": "stop"})
    now = list(messages)
    reduction._put(messages, *planned)
    assert messages == now and "changed during the pass" in caplog.text
    state = {"notes": ["a"]}

    def model(prompt):
        state["notes"].append("b")
        return "both"

    with pytest.raises(ValueError, match="changed while the model wrote"):
        reduction.condense(state, model, "Sum up: {notes}", input_keys=["notes"])
    assert state == {"notes": ["a", "b"]}


def test_tools_without_the_reader_are_told_of_once(tmp_path):
    reduction = small(tmp_path)
    told = [reduction.before_model(conversation("openai-chat"), tools=[{"name": "grep"}]).get("notice") for _ in range(2)]
    assert "hints name read_file, which the tools lack" in told[0] and not told[1]
    reduction = small(tmp_path / "sessions")
    sessions = [reduction.session("a"), reduction.session("a"), reduction.session("b").session("c"), reduction]
    told = [one.before_model(conversation("openai-chat"), tools=[{"name": "grep"}, "Look."]).get("notice") for one in sessions]
    assert told[0] and told[1:] == [None] * 3
    # Instructions are no tools.
    assert "notice" not in small(tmp_path / "none").before_model(conversation("openai-chat"), tools=["Look."])
    with_reader = [reduction.tool("openai-chat")]
    assert "notice" not in small(tmp_path / "2").before_model(conversation("openai-chat"), tools=with_reader)


def test_what_only_looks_like_json_is_told(reduction):
    class Array:
        def tolist(self):
            return [1, 2]

    class Bare:
        def __repr__(self):
            return "<Bare …>"

    async def later():
        yield 1

    def answer(result):
        return reduction.wrap_tool_call(CALLS["openai-chat"], lambda: result)["content"]

    assert answer({"all": Array()}) == '{"all": [1, 2]}'
    for other in (Bare(), later()):
        assert "no JSON says a" in answer(other)
    with pytest.raises(TypeError, match="`run` must be a function"):
        reduction.wrap_tool_call(CALLS["openai-chat"], "what the tool returned")
    with pytest.raises(ValueError, match="no `id`"):
        reduction.wrap_tool_call({"name": "t", "arguments": {}}, lambda: "x", "anthropic")


class Marked(State):
    def __init__(self, mark):
        super().__init__({"dialect": "openarmature", "fields": [{"name": "n", "type": "list", "reducer": "append"}]})
        self.mark = mark


def test_copies(reduction):
    assert copy.copy(reduction) is reduction and copy.deepcopy({"a": reduction})["a"] is reduction
    with pytest.raises(TypeError, match="make one from the same settings"):
        pickle.dumps(reduction)
    state = State({"dialect": "openarmature", "fields": [{"name": "n", "type": "list", "reducer": "append"}]})
    state.apply({"n": [1]})
    for other in (copy.copy(state), copy.deepcopy(state), pickle.loads(pickle.dumps(state))):
        assert other.apply({"n": [2]}) == {"n": [1, 2]} and state.value == {"n": [1]}
    marked = Marked("a")
    marked.more = [7]
    for other in (copy.copy(marked), copy.deepcopy(marked), pickle.loads(pickle.dumps(marked))):
        assert type(other) is Marked and (other.mark, other.more) == ("a", [7])
        assert other.apply({"n": [2]}) == {"n": [2]} and marked.value == {}


def test_threads_add_to_a_state():
    state = State({"dialect": "openarmature", "fields": [{"name": "n", "type": "list", "reducer": "append"}]})
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: state.apply({"n": [n]}), range(200)))
    assert sorted(state.value["n"]) == list(range(200))


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


def test_relative_directories_stay_where_they_were_opened(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    reductions = [
        Reduction({"preset": "recommended", "backend": "one"}),
        Reduction.in_dir("two", tool_config={"grep": {"backend": "three"}}),
    ]
    shown = [one.truncate(LONG, tool="grep", call_id="c1") for one in reductions]
    monkeypatch.chdir(tmp_path / "other")
    if (child := os.fork()) == 0:
        found = [one.original(text.split('"')[1]).decode() == LONG for one, text in zip(reductions, shown)]
        os._exit(0 if all(found) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sorted(os.listdir(tmp_path)) == ["one", "other", "three"]


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


def test_the_cases_of_state_that_all_languages_run(reduction):
    cases = json.loads(Path(os.environ["OFFCUT_STATE_CASES"]).read_text())
    assert len(cases) > 20
    for case in cases:
        try:
            after = condensed(reduction, case) if "node" in case else merged(case)
            assert after == case["after"], case["about"]
        except (SettingsError, ValueError) as error:
            assert str(error).startswith(case["error"]), case["about"]
    yaml = State("dialect: openarmature\nfields:\n  - {name: x, type: list, reducer: append}\n")
    assert yaml.apply({"x": [1]}, {"x": [2]}) == {"x": [1, 2]}


def merged(case):
    state = State(case["schema"], case.get("state"))
    before = state.value
    try:
        after = state.apply(*case["updates"])
    except ValueError:
        assert state.value == before
        raise
    assert state.value == after
    return after


def condensed(reduction, case):
    state, asked = dict(case["state"]), []

    def model(prompt):
        asked.append(prompt)
        return case["answer"]

    async def amodel(prompt):
        return model(prompt)

    try:
        again = dict(state)
        done = reduction.condense(state, model, **case["node"], names_originals=False)
        assert asyncio.run(reduction.acondense(again, amodel, **case["node"], names_originals=False)) == done and again == state
        assert all(json.dumps(case["state"][key], separators=(",", ":")).encode() == text or case["state"][key].encode() == text
                   for key, location in done["stored"] for text in [reduction.original(location)])
    except ValueError:
        assert state == case["state"]
        raise
    finally:
        assert set(asked) == ({case["prompt"]} if "prompt" in case else set())
    return state


def test_a_condensed_state_may_hold_anything_else(reduction):
    state = {"a": "x", "started": object(), "loss": float("nan")}
    reduction.condense(state, lambda prompt: "s", "{a}", input_keys=["a"], output_key="a")
    assert state["a"].startswith("s\n\n[originals: a at ")
    for model, keys, template, problem in [
        (lambda prompt: None, ["a"], "{a}", "no answer"),
        (lambda prompt: "s", "ab", "{a}", "must be a list"),
        (lambda prompt: "s", ["loss"], "{a}", "NaN is not a number"),
    ]:
        with pytest.raises((TypeError, ValueError), match=problem):
            reduction.condense(state, model, template, input_keys=keys)
    with pytest.raises(ValueError, match="18446744073709551616 is not a number of at most 64 bits"):
        State({"dialect": "openarmature", "fields": [{"name": "n"}]}).apply({"n": 2**64})
    with pytest.raises(ValueError, match="half of a surrogate pair: replace it"):
        State({"dialect": "openarmature", "fields": [{"name": "n"}]}).apply({"n": "a \ud83d"})


def test_a_condensed_value_names_its_originals(reduction):
    state = {"notes": "a long story"}
    done = reduction.condense(state, lambda prompt: prompt[-5:], "Sum up: {notes}", input_keys=["notes"], output_key="sum")
    [(key, location)] = done["stored"]
    assert state == {"sum": f"story\n\n[originals: notes at {location}]"} and key == "notes"
    assert reduction.original(location) == b"a long story"
    with pytest.raises(RuntimeError):
        reduction.condense(state, lambda prompt: exec("raise RuntimeError"), "{sum}", input_keys=["sum"])
    assert list(state) == ["sum"]
