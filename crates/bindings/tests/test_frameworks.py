"""Agents of each framework, against a provider on loopback: the same answer, from what is read back."""

from __future__ import annotations

import asyncio
import json

import pytest
from offcut import Reduction
from provider import LOG, Provider


@pytest.fixture
def reduction(tmp_path):
    return Reduction.in_dir(tmp_path / "store")


def small(tmp_path, **options):
    """A reduction that clears early."""
    settings = {"max_tokens_for_clear": 3_000, "clear_at_least_tokens": 0, "preview_above": 100_000, "max_length_for_trunc": 200_000}
    return Reduction.in_dir(tmp_path / "store", **settings, **options)


def logs(nth: int = 0) -> str:
    """Returns the log."""
    return LOG


async def alogs(nth: int = 0) -> str:
    """Returns the log."""
    return LOG


def test_langchain_s_calls_are_signed_beside_thoughts_alone(reduction):
    pytest.importorskip("langchain.agents")
    from langchain_core.messages import AIMessage, ToolMessage
    from offcut.langchain import OffcutMiddleware, _changed, _plain

    calls = [{"name": "t", "args": {"a": "x"}, "id": "c", "type": "tool_call"}]
    block = {"type": "tool_use", "id": "c", "name": "t", "input": {"a": "x"}}
    thought = {"type": "thinking", "thinking": "so", "signature": "s"}
    message = AIMessage([{"type": "text", "text": "a"}, block], tool_calls=calls)
    for one in (AIMessage("", tool_calls=calls, additional_kwargs={"refusal": None}), message):
        assert "extra_content" not in _plain(one)["tool_calls"][0]
    signed = AIMessage([{**calls[0], "extras": {"item_id": "fc_c", "signature": "s"}}], tool_calls=calls)
    of_kwargs = AIMessage("", tool_calls=calls, additional_kwargs={"signatures": {"c": "s"}})
    for one in (AIMessage([thought, block], tool_calls=calls), signed, of_kwargs):
        assert "extra_content" in _plain(one)["tool_calls"][0]
    old = _plain(message)
    new = json.loads(json.dumps(old).replace("x", "y"))
    changed = _changed(message, old, new)
    assert changed.tool_calls[0]["args"] == changed.content[1]["input"] == {"a": "y"}
    both = [calls[0], {**calls[0], "id": "d", "args": {"a": "z"}}]
    blocks = [{"type": "function_call", "call_id": one["id"], "arguments": f'{{"a":"{one["args"]["a"]}"}}'} for one in both]
    message = AIMessage(blocks, tool_calls=both)
    changed = _changed(message, _plain(message), json.loads(json.dumps(_plain(message)).replace("x", "y")))
    assert [one["arguments"] for one in changed.content] == ['{"a": "y"}', '{"a":"z"}']
    image = ToolMessage([{"type": "image", "base64": "aGk=", "mime_type": "image/png"}], tool_call_id="c")
    assert _plain(image)["content"][0]["image_url"]["url"] == "data:image/png;base64,aGk="


@pytest.mark.parametrize("kind", ["agents", "anthropic", "pydantic_ai"])
def test_a_reader_returns_images(tmp_path, kind):
    pytest.importorskip(kind)
    reduction = small(tmp_path)
    url = "data:image/png;base64,aGk="
    messages = [{"role": "user", "content": "go"}]
    for nth in range(4):
        call = {"id": f"c{nth}", "type": "function", "function": {"name": "t", "arguments": "{}"}}
        content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "a line\n" * 2_000}]
        messages += [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": f"c{nth}", "content": content}]
    reduction.before_model(messages)
    path = json.dumps(messages).split('[offcut/1 cleared ')[1].split('\\"')[1]
    with pytest.raises(ValueError, match="image/png"):
        reduction.read(path)
    if kind == "agents":
        from offcut.openai_agents import reader

        [image] = asyncio.run(reader(reduction).on_invoke_tool(None, json.dumps({"path": path})))
        assert image["type"] == "image" and image["image_url"] == url
        assert "invalid JSON" in asyncio.run(reader(reduction).on_invoke_tool(None, "{bad"))
    elif kind == "anthropic":
        from offcut.anthropic import reader

        [image] = reader(reduction).call({"path": path})
        assert image["source"]["data"] == "aGk="
    else:
        from offcut.pydantic_ai import reader

        [image] = asyncio.run(reader(reduction).function(path=path))
        assert image.data == b"hi" and image.media_type == "image/png"


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke"])
def test_langchain(reduction, way):
    langchain = pytest.importorskip("langchain.agents")
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from offcut.langchain import OffcutMiddleware

    provider = Provider()
    model = ChatOpenAI(model="m", base_url=f"{provider.url}/v1", api_key="k", streaming=way == "stream")
    agent = langchain.create_agent(model, [tool("logs")(logs)], middleware=[OffcutMiddleware(reduction)])
    ask = {"messages": [("user", "Where is the leak?")]}
    if way == "ainvoke":
        state = asyncio.run(agent.ainvoke(ask))
    elif way == "stream":
        *_, state = agent.stream(ask, stream_mode="values")
    else:
        state = agent.invoke(ask)
    provider.check(state["messages"][-1].text)


def test_langchain_clears_in_the_state(tmp_path):
    langchain = pytest.importorskip("langchain.agents")
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.checkpoint.memory import InMemorySaver
    from offcut.langchain import OffcutMiddleware

    provider = Provider(rounds=6)
    model = ChatOpenAI(model="m", base_url=f"{provider.url}/v1", api_key="k")
    agent = langchain.create_agent(
        model, [tool("logs")(logs_of_9000)], middleware=[OffcutMiddleware(small(tmp_path))], checkpointer=InMemorySaver()
    )
    thread = {"configurable": {"thread_id": "1"}}
    agent.invoke({"messages": [("user", "Where is the leak?")]}, thread)
    shown = [len(json.dumps(body)) for body in provider.bodies]
    assert max(shown) < 45_000, shown
    messages = agent.get_state(thread).values["messages"]
    cleared = [one for one in messages if one.type == "tool" and one.text.startswith("[offcut/1 cleared")]
    assert len(cleared) >= 3
    # The ids are those of before, so nothing is there twice.
    assert len({one.id for one in messages}) == len(messages) == 1 + 2 * 7 + 1


def write(path: str, text: str) -> str:
    """Writes a file."""
    return "fine"


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("version", ["chat v0", "chat v1", "responses v0", "responses responses/v1", "responses v1"])
def test_langchain_clears_arguments_alone(tmp_path, version, is_stream):
    langchain = pytest.importorskip("langchain.agents")
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from offcut.langchain import OffcutMiddleware

    api, version = version.split()
    files = {f"{nth}.py": "a line of a file\n" * (400 if nth % 2 == 0 else 1) for nth in range(10)}
    calls = [(f"call_{path}", "write", {"path": path, "text": text}) for path, text in files.items()]
    bodies = []
    for ours in ([], [OffcutMiddleware(small(tmp_path))]):
        # Two at a time.
        provider = Provider(script=[*(calls[nth : nth + 2] for nth in range(0, 10, 2)), "Done."])
        options = {"use_responses_api": api == "responses", "output_version": version, "streaming": is_stream}
        model = ChatOpenAI(model="m", base_url=f"{provider.url}/v1", api_key="k", **options)
        langchain.create_agent(model, [tool(write)], middleware=ours).invoke({"messages": [("user", "go")]})
        bodies.append(provider.bodies)
    sent = []

    def without_arguments(value):
        if isinstance(value, list):
            return [without_arguments(one) for one in value]
        if not isinstance(value, dict):
            return value
        if "arguments" in value:
            sent.append(json.loads(value["arguments"]))
        return {name: without_arguments(one) for name, one in value.items() if name != "arguments"}

    for before, after in zip(*bodies, strict=True):
        expected = masked(without_arguments(before))
        sent.clear()
        assert masked(without_arguments(after)) == expected
    assert [one["path"] for one in sent] == list(files)
    cleared = [one["path"] for one in sent if one["text"].startswith("[offcut/1 cleared")]
    assert cleared == ["0.py", "2.py", "4.py", "6.py"] and sent[-2]["text"] == files["8.py"]


def test_langchain_s_tools_may_return_messages(reduction):
    pytest.importorskip("langchain.agents")
    from langchain_core.messages import HumanMessage, ToolMessage
    from langgraph.types import Command
    from offcut.langchain import OffcutMiddleware

    class Request:
        tool = None
        tool_call = {"id": "c1", "name": "logs", "args": {}}

    def shown(result):
        return OffcutMiddleware(reduction).wrap_tool_call(Request, lambda request: result)

    whole, other = ToolMessage(LOG, tool_call_id="c1"), HumanMessage(LOG)
    [message] = shown([whole])
    assert message.content.startswith("[offcut/1 truncated") and whole.content == LOG
    for one in (whole, {"role": "tool", "content": LOG, "tool_call_id": "c1"}, {"type": "tool", "content": LOG, "tool_call_id": "c1"}):
        [command] = shown([Command(update={"messages": [one, other, {"role": "user", "content": LOG}], "n": 1})])
        message, *others = command.update["messages"]
        assert isinstance(message, ToolMessage) and message.content.startswith("[offcut/1 truncated")
        assert others == [other, {"role": "user", "content": LOG}] and command.update["n"] == 1


def test_langchain_s_rows_are_no_parts(reduction):
    pytest.importorskip("langchain.agents")
    from datetime import date

    from langchain_core.messages import ToolMessage
    from offcut.langchain import OffcutMiddleware

    class Request:
        tool = None
        tool_call = {"id": "c1", "name": "logs", "args": {}}

    rows = ToolMessage([{"type": "text", "text": "a", "day": date(2026, 1, 2)}], tool_call_id="c1")
    assert OffcutMiddleware(reduction).wrap_tool_call(Request, lambda request: rows) is rows


def test_langchain_s_reader_marks_its_errors(reduction):
    pytest.importorskip("langchain.agents")
    from offcut.langchain import OffcutMiddleware, reader

    class Request:
        tool = None

    middleware = OffcutMiddleware(reduction)
    location = reduction.truncate(LOG, tool="logs").split('"')[1]
    for arguments, status in (({"path": location}, "success"), ({"path": location, "limit": 0}, "error"), ({"path": "nowhere"}, "error")):
        call = Request.tool_call = {"id": "c2", "name": "read_file", "args": arguments, "type": "tool_call"}
        message = middleware.wrap_tool_call(Request, lambda request: reader(reduction).invoke(call))
        assert message.status == status and message.tool_call_id == "c2", message


WORDS = "Mind every word. " * 1_000


def noted(nth: int = 0) -> str:
    return "a short one"


noted.__doc__ = WORDS


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("kind", ["agents", "langchain", "pydantic_ai"])
def test_tools_and_instructions_are_counted(tmp_path, kind, is_async):
    pytest.importorskip(kind)
    counted = []

    def on_report(report):
        if report["phase"] == "clear":
            counted.append(report["tokens"]["counted"])

    provider = Provider(script=[[("call_a", "noted", {"nth": 1})], "Done."])
    url, reduction = f"{provider.url}/v1", small(tmp_path, on_report=on_report)
    if kind == "agents":
        import agents
        from offcut.openai_agents import input_filter, reader
        from openai import AsyncOpenAI

        agents.set_tracing_disabled(True)
        model = agents.OpenAIResponsesModel("m", AsyncOpenAI(base_url=url, api_key="k"))
        agent = agents.Agent(name="a", model=model, instructions=WORDS, tools=[agents.function_tool(noted), reader(reduction)])
        given = {"run_config": agents.RunConfig(call_model_input_filter=input_filter(reduction))}
        asyncio.run(agents.Runner.run(agent, "go", **given)) if is_async else agents.Runner.run_sync(agent, "go", **given)
    elif kind == "langchain":
        from langchain.agents import create_agent
        from langchain_openai import ChatOpenAI
        from offcut.langchain import OffcutMiddleware

        model = ChatOpenAI(model="m", base_url=url, api_key="k")
        agent = create_agent(model, [noted], system_prompt=WORDS, middleware=[OffcutMiddleware(reduction)])
        ask = {"messages": [("user", "go")]}
        asyncio.run(agent.ainvoke(ask)) if is_async else agent.invoke(ask)
        # Before the first request, the agent tells nothing of it.
        assert counted.pop(0) < 100
    else:
        import pydantic_ai
        from offcut.pydantic_ai import Offcut
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=url, api_key="k"))
        agent = pydantic_ai.Agent(model, instructions=WORDS, tools=[noted], capabilities=[Offcut(reduction)])
        asyncio.run(agent.run("go")) if is_async else agent.run_sync("go")
    # Each of both has some 4 000 tokens.
    assert counted and all(8_000 < one < 10_000 for one in counted), counted


def test_langchain_s_agents_may_share_a_middleware(tmp_path):
    langchain = pytest.importorskip("langchain.agents")
    from langchain_openai import ChatOpenAI
    from offcut.langchain import OffcutMiddleware

    told = []
    ours = [OffcutMiddleware(small(tmp_path, on_report=told.append))]
    provider = Provider(script=["Fine.", [("call_a", "ping", {"nth": 1})], "Done."])
    model = ChatOpenAI(model="m", base_url=f"{provider.url}/v1", api_key="k")
    for words in (WORDS, "Look."):
        langchain.create_agent(model, [ping], system_prompt=words, middleware=ours).invoke({"messages": [("user", "go")]})
    first, other, again = [one["tokens"]["counted"] for one in told if one["phase"] == "clear"]
    assert first == other < 100 < again < 2_000


def test_openai_agents_count_what_is_sent(tmp_path):
    agents = pytest.importorskip("agents")
    from agents.run import CallModelData, ModelInputData
    from offcut.openai_agents import input_filter

    def passed(name, instructions, tools):
        told = []
        reduction = small(tmp_path / name, on_report=told.append)
        items = [{"role": "user", "content": "go"}]
        for nth in range(6):
            items.append({"type": "function_call", "call_id": f"c{nth}", "name": "logs", "arguments": "{}"})
            items.append({"type": "function_call_output", "call_id": f"c{nth}", "output": LOG[:9_000]})
        data = CallModelData(ModelInputData(items, instructions), agents.Agent(name="a", tools=tools), None)
        after = asyncio.run(input_filter(reduction)(data))
        assert after.instructions == instructions
        return told[-1]

    idle = agents.function_tool(noted, is_enabled=False)
    bare = passed("bare", None, [])
    for name, instructions, tools in (("idle", None, [idle]), ("hosted", "Look.", [agents.WebSearchTool()])):
        told = passed(name, instructions, tools)
        assert "notice" not in told and told["tokens"]["counted"] - bare["tokens"]["counted"] < 20
    with_tool = passed("tool", None, [agents.function_tool(ping)])
    assert "which the tools lack" in with_tool["notice"]


def logs_of_9000(nth: int) -> str:
    """Returns a part of the log."""
    return f"part {nth}\n" + LOG[:9_000]


@pytest.mark.parametrize("is_stream", [False, True])
def test_pydantic_ai(reduction, is_stream):
    pydantic_ai = pytest.importorskip("pydantic_ai")
    from offcut.pydantic_ai import Offcut
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = Provider()
    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=f"{provider.url}/v1", api_key="k"))
    agent = pydantic_ai.Agent(model, tools=[logs], capabilities=[Offcut(reduction)])

    async def run():
        if not is_stream:
            return (await agent.run("Where is the leak?")).output
        async with agent.run_stream("Where is the leak?") as run:
            return await run.get_output()

    provider.check(asyncio.run(run()))


def test_pydantic_ai_clears_the_history(tmp_path):
    pydantic_ai = pytest.importorskip("pydantic_ai")
    from offcut.pydantic_ai import Offcut
    from pydantic_ai.messages import ModelMessagesTypeAdapter, ToolReturnPart
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = Provider(rounds=6)
    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=f"{provider.url}/v1", api_key="k"))
    agent = pydantic_ai.Agent(model, tools=[pydantic_ai.Tool(logs_of_9000, name="logs")], capabilities=[Offcut(small(tmp_path))])
    result = asyncio.run(agent.run("Where is the leak?"))
    shown = [len(json.dumps(body)) for body in provider.bodies]
    assert max(shown) < 45_000, shown
    messages = result.all_messages()
    parts = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    assert sum(str(part.content).startswith("[offcut/1 cleared") for part in parts) >= 3
    json_text = ModelMessagesTypeAdapter.dump_json(messages)
    assert ModelMessagesTypeAdapter.dump_json(ModelMessagesTypeAdapter.validate_json(json_text)) == json_text


def test_pydantic_ai_keeps_files_and_errors(tmp_path):
    pytest.importorskip("pydantic_ai")
    from offcut.pydantic_ai import Offcut, cleared
    from pydantic_ai import BinaryContent
    from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart

    image = BinaryContent(b"\x89PNG" * 4_000, media_type="image/png")
    offcut = Offcut(small(tmp_path))

    def shown(value):
        call = ToolCallPart("shot", {}, "c1")
        return asyncio.run(offcut.after_tool_execute(None, call=call, tool_def=None, args={}, result=value))

    for value in (image, ["caption", image], {1}):
        assert shown(value) is value
    assert shown(set(range(60_000))).startswith("[offcut/1 truncated")
    messages = []
    for nth in range(8):
        messages.append(ModelResponse([ToolCallPart("t", {}, f"c{nth}")]))
        outcome = "retried" if nth == 1 else "success"
        content = image if nth == 0 else f"{nth}\n" + "a line of output\n" * 150
        messages.append(ModelRequest([ToolReturnPart("t", content, f"c{nth}", outcome=outcome)]))
    after = cleared(offcut.reduction, messages, [])
    is_new = [new is not old for old, new in zip(messages, after)]
    assert not is_new[1] and not is_new[3] and is_new[5]


def test_pydantic_ai_clears_long_texts_of_users_alone(tmp_path):
    pytest.importorskip("pydantic_ai")
    from offcut import Reduction
    from offcut.pydantic_ai import cleared
    from pydantic_ai import BinaryContent
    from pydantic_ai.messages import ModelRequest, ModelResponse, RetryPromptPart, ToolCallPart, UserPromptPart

    image = BinaryContent(b"\x89PNG", media_type="image/png")
    messages = [ModelRequest([UserPromptPart(["look", "a line of a file\n" * 900, image])])]
    for nth in range(6):
        messages.append(ModelResponse([ToolCallPart("t", {}, f"c{nth}")]))
        messages.append(ModelRequest([RetryPromptPart("a line of an error\n" * 300, tool_name="t", tool_call_id=f"c{nth}")]))
    settings = {"max_tokens_for_clear": 2_000, "clear_at_least_tokens": 0, "clear_user_texts_above": 2_000}
    after = cleared(Reduction.in_dir(tmp_path, **settings), messages, [])
    text, shown, kept = after[0].parts[0].content
    assert text == "look" and kept is image and shown.startswith("[offcut/1 cleared"), shown
    assert after[1:] == messages[1:]


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("api", ["responses", "chat"])
def test_openai_agents(reduction, api, is_stream):
    agents = pytest.importorskip("agents")
    from offcut.openai_agents import input_filter, reader
    from openai import AsyncOpenAI

    agents.set_tracing_disabled(True)
    provider = Provider()
    client = AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="k")
    kind = agents.OpenAIResponsesModel if api == "responses" else agents.OpenAIChatCompletionsModel
    tool, session = agents.function_tool(logs), reduction.session("chat-42")
    agent = agents.Agent(name="a", model=kind("m", client), tools=[tool, reader(session)])
    config = agents.RunConfig(call_model_input_filter=input_filter(session))

    async def run():
        if not is_stream:
            return (await agents.Runner.run(agent, "Where is the leak?", run_config=config)).final_output
        streamed = agents.Runner.run_streamed(agent, "Where is the leak?", run_config=config)
        async for _ in streamed.stream_events():
            pass
        return streamed.final_output

    provider.check(asyncio.run(run()))


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("is_async", [False, True])
def test_anthropic(reduction, is_async, is_stream):
    anthropic = pytest.importorskip("anthropic")
    from offcut.anthropic import OffcutMiddleware, reader

    provider = Provider()
    session = reduction.session("chat-42")
    kind = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
    client = kind(base_url=provider.url, api_key="k", middleware=[OffcutMiddleware(session)])
    make = anthropic.beta_async_tool if is_async else anthropic.beta_tool
    tools = [make(alogs if is_async else logs, name="logs"), reader(session, is_async=is_async)]
    ask = {"role": "user", "content": "Where is the leak?"}
    runner = client.beta.messages.tool_runner(model="m", max_tokens=100, messages=[ask], tools=tools, stream=is_stream)

    async def run():
        async for one in runner:
            last = await one.get_final_message() if is_stream else one
        return last

    if is_async:
        last = asyncio.run(run())
    else:
        for one in runner:
            last = one.get_final_message() if is_stream else one
    provider.check(last.content[0].text)


@pytest.mark.parametrize("is_async", [False, True])
def test_anthropic_s_counts_decide_nothing(tmp_path, is_async):
    anthropic = pytest.importorskip("anthropic")
    from offcut.anthropic import OffcutMiddleware

    provider = Provider(script=["Fine."] * 3)
    kind = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
    session = Reduction.in_dir(tmp_path / "store").session("chat-42")
    client = kind(base_url=provider.url, api_key="k", middleware=[OffcutMiddleware(session)])
    call = {"type": "tool_use", "id": "call_1", "name": "logs", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": LOG}
    messages = [{"role": "user", "content": "go"}, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]

    async def ask():
        for method, more in ((client.messages.count_tokens, {}), (client.messages.create, {"max_tokens": 9}), (client.messages.count_tokens, {})):
            answer = method(model="m", messages=messages, **more)
            if is_async:
                await answer
            yield sum(path.is_file() for path in tmp_path.rglob("*"))

    async def stored():
        return [count async for count in ask()]

    first, second, third = asyncio.run(stored())
    assert first == 0 and second == third > 0
    texts = [body["messages"][2]["content"][0]["content"] for body in provider.bodies]
    assert texts[0] == LOG and texts[1] == texts[2] and texts[1].startswith("[offcut/1 truncated")


# Two prompts and a third that reads: parallel calls, one of which is long.
PROMPTS = ["Where is the leak?", "And now?", "Read it."]
SCRIPT = [
    [("call_a", "logs", {"nth": 1}), ("call_b", "ping", {"nth": 2})],
    "The first answer.",
    [("call_e", "logs", {"nth": 3})],
    "The second answer.",
]
READS = [[("call_f", "read_file", {"path": "LOCATION", "pattern": "leak"})]]


def ping(nth: int = 0) -> str:
    """Answers briefly."""
    return f"pong {nth}"


def compare(reduction, talk):
    """Runs `talk` without Offcut and with it: the same answers and requests, but for long results, and one that reads."""
    plain, provider = Provider(script=SCRIPT), Provider(script=[*SCRIPT, *READS])
    answers = talk(plain.url, PROMPTS[:2], None)
    told = talk(provider.url, PROMPTS, reduction)
    assert told[:2] == answers == ["The first answer.", "The second answer."]
    assert "the leak is in pool.rs" in told[2]
    assert len(provider.bodies) == len(plain.bodies) + 2
    for before, after in zip(plain.bodies, provider.bodies):
        assert masked(after) == masked(before)
    assert max(len(text) for text in plain.texts) > 50_000
    assert max(len(text) for text in provider.texts) < 30_000


def masked(value):
    """A body in which long results and our hints are alike, without the definition of the reader."""
    if isinstance(value, dict):
        return {name: masked(one) for name, one in value.items()}
    if isinstance(value, list):
        return [masked(one) for one in value if not (isinstance(one, dict) and (one.get("function") or one).get("name") == "read_file")]
    is_long = isinstance(value, str) and (len(value) > 20_000 or value.startswith("[offcut/1 "))
    return "a long result" if is_long else value


@pytest.mark.parametrize("is_stream", [False, True])
def test_langchain_over_prompts(reduction, is_stream):
    langchain = pytest.importorskip("langchain.agents")
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.checkpoint.memory import InMemorySaver
    from offcut.langchain import OffcutMiddleware

    def talk(url, prompts, reduction):
        model = ChatOpenAI(model="m", base_url=f"{url}/v1", api_key="k", streaming=is_stream)
        ours = [OffcutMiddleware(reduction)] if reduction else []
        agent = langchain.create_agent(model, [tool(logs), tool(ping)], middleware=ours, checkpointer=InMemorySaver())
        thread = {"configurable": {"thread_id": "1"}}
        for prompt in prompts:
            ask = {"messages": [("user", prompt)]}
            *_, state = agent.stream(ask, thread, stream_mode="values") if is_stream else [agent.invoke(ask, thread)]
            yield state["messages"][-1].text

    compare(reduction, lambda *given: list(talk(*given)))


@pytest.mark.parametrize("is_stream", [False, True])
def test_pydantic_ai_over_prompts(reduction, is_stream):
    pydantic_ai = pytest.importorskip("pydantic_ai")
    from offcut.pydantic_ai import Offcut
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async def talk(url, prompts, reduction):
        model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=f"{url}/v1", api_key="k"))
        ours = [Offcut(reduction)] if reduction else []
        agent = pydantic_ai.Agent(model, tools=[logs, ping], capabilities=ours)
        history, answers = [], []
        for prompt in prompts:
            if is_stream:
                async with agent.run_stream(prompt, message_history=history) as run:
                    answers.append(await run.get_output())
            else:
                run = await agent.run(prompt, message_history=history)
                answers.append(run.output)
            history = run.all_messages()
        return answers

    compare(reduction, lambda *given: asyncio.run(talk(*given)))


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("api", ["responses", "chat"])
def test_openai_agents_over_prompts(reduction, api, is_stream):
    agents = pytest.importorskip("agents")
    from offcut.openai_agents import input_filter, reader
    from openai import AsyncOpenAI

    agents.set_tracing_disabled(True)

    async def talk(url, prompts, reduction):
        kind = agents.OpenAIResponsesModel if api == "responses" else agents.OpenAIChatCompletionsModel
        model = kind("m", AsyncOpenAI(base_url=f"{url}/v1", api_key="k"))
        tools = [agents.function_tool(logs), agents.function_tool(ping)]
        config = agents.RunConfig()
        if reduction:
            tools.append(reader(reduction))
            config = agents.RunConfig(call_model_input_filter=input_filter(reduction))
        agent, memory, answers = agents.Agent(name="a", model=model, tools=tools), agents.SQLiteSession("1"), []
        for prompt in prompts:
            if is_stream:
                run = agents.Runner.run_streamed(agent, prompt, run_config=config, session=memory)
                async for _ in run.stream_events():
                    pass
            else:
                run = await agents.Runner.run(agent, prompt, run_config=config, session=memory)
            answers.append(run.final_output)
        assert LOG in [one.get("output") for one in await memory.get_items()], "the session stays whole"
        return answers

    compare(reduction.session("chat-42"), lambda *given: asyncio.run(talk(*given)))


@pytest.mark.parametrize("is_stream", [False, True])
def test_anthropic_over_prompts(reduction, is_stream):
    anthropic = pytest.importorskip("anthropic")
    from offcut.anthropic import OffcutMiddleware, reader

    def talk(url, prompts, reduction):
        ours = [OffcutMiddleware(reduction)] if reduction else []
        client = anthropic.Anthropic(base_url=url, api_key="k", middleware=ours)
        tools = [anthropic.beta_tool(logs), anthropic.beta_tool(ping), *([reader(reduction)] if reduction else [])]
        messages, answers = [], []
        for prompt in prompts:
            messages.append({"role": "user", "content": prompt})
            runner = client.beta.messages.tool_runner(model="m", max_tokens=99, messages=messages, tools=tools, stream=is_stream)
            for one in runner:
                last = one.get_final_message() if is_stream else one
                messages.append({"role": "assistant", "content": last.content})
                if response := runner.generate_tool_call_response():
                    messages.append(response)
            answers.append(last.content[0].text)
        assert LOG in json.dumps(messages, default=str).encode().decode("unicode_escape"), "the messages stay whole"
        return answers

    compare(reduction.session("chat-42"), talk)
