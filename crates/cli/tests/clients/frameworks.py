"""Two prompts through a framework: frameworks.py CLIENT URL. Prints the answers as JSON."""

import asyncio
import json
import os
import sys

from session import ASKED, DEFINITIONS, again, run, say

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"


def fetch(n: int) -> str:
    """Fetches a table."""
    return run("fetch", {"n": n})


def read_file(path: str, offset: int = 1, limit: int = 200) -> str:
    """Reads lines of a file."""
    return run("read_file", {"path": path, "offset": offset, "limit": limit})


def litellm_loop(model, base):
    import litellm

    tools = [{"type": "function", "function": tool} for tool in DEFINITIONS]
    messages = []

    def turn():
        return litellm.completion(
            model=model, api_base=base, api_key="none", messages=messages, tools=tools, max_tokens=1000, num_retries=2
        ).choices[0].message

    for prompt in ASKED:
        messages.append({"role": "user", "content": prompt})
        while True:
            said = again(turn)
            messages.append(said.model_dump(exclude_none=True, include={"role", "content", "tool_calls"}))
            if not said.tool_calls:
                yield said.content
                break
            for call in said.tool_calls:
                result = run(call.function.name, json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def langchain_agent(model):
    from langchain.agents import create_agent

    agent = create_agent(model, tools=[fetch, read_file])
    messages = []
    for prompt in ASKED:
        messages = messages + [{"role": "user", "content": prompt}]
        state = again(lambda: agent.invoke({"messages": messages}, {"recursion_limit": 100}))
        messages = state["messages"]
        yield messages[-1].text


def langchain_openai(url):
    from langchain_openai import ChatOpenAI

    return langchain_agent(ChatOpenAI(model="scripted", base_url=url + "/openai/v1", api_key="none"))


def langchain_anthropic(url):
    from langchain_anthropic import ChatAnthropic

    return langchain_agent(ChatAnthropic(model="scripted", base_url=url + "/anthropic", api_key="none", max_tokens=1000))


def agents(url, is_chat):
    from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=url + "/openai/v1", api_key="none")
    kind = OpenAIChatCompletionsModel if is_chat else OpenAIResponsesModel
    agent = Agent(
        name="Looker",
        instructions="Look things up.",
        tools=[function_tool(fetch), function_tool(read_file)],
        model=kind(model="scripted", openai_client=client),
    )

    async def session():
        answers, items = [], []
        for prompt in ASKED:
            items = items + [{"role": "user", "content": prompt}]
            for tried in range(4):
                try:
                    ran = await Runner.run(agent, items, max_turns=50)
                    break
                except Exception as error:
                    print(f"{type(error).__name__}: {error}", file=sys.stderr)
                    if tried == 3:
                        raise
            items = ran.to_input_list()
            answers.append(ran.final_output)
        return answers

    return asyncio.run(session())


CLIENTS = {
    "litellm-openai": lambda url: litellm_loop("openai/scripted", url + "/openai/v1"),
    "litellm-anthropic": lambda url: litellm_loop("anthropic/scripted", url + "/anthropic"),
    "langchain-openai": langchain_openai,
    "langchain-anthropic": langchain_anthropic,
    "openai-agents": lambda url: agents(url, False),
    "openai-agents-chat": lambda url: agents(url, True),
}

say(CLIENTS[sys.argv[1]](sys.argv[2]))
