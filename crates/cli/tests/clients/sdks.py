"""Two prompts through an official SDK, in a loop of its own: sdks.py CLIENT URL. Prints the answers as JSON."""

import json
import sys

from session import ASKED, DEFINITIONS, again, run, say


def openai_chat(url, is_stream):
    import openai

    client = openai.OpenAI(base_url=url + "/openai/v1", api_key="none")
    tools = [{"type": "function", "function": tool} for tool in DEFINITIONS]
    messages = [{"role": "system", "content": "Look things up."}]

    def turn():
        asked = dict(model="scripted", messages=messages, tools=tools)
        if not is_stream:
            return client.chat.completions.create(**asked).choices[0].message
        with client.chat.completions.stream(**asked) as stream:
            return stream.get_final_completion().choices[0].message

    for prompt in ASKED:
        messages.append({"role": "user", "content": prompt})
        while True:
            said = again(turn)
            messages.append(said.model_dump(exclude_none=True, include={"role", "content", "tool_calls"}))
            for call in messages[-1].get("tool_calls", []):
                call["function"].pop("parsed_arguments", None)
            if not said.tool_calls:
                yield said.content
                break
            for call in said.tool_calls:
                result = run(call.function.name, json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def openai_responses(url, is_stream):
    import openai

    client = openai.OpenAI(base_url=url + "/openai/v1", api_key="none")
    tools = [{"type": "function", "strict": False, **tool} for tool in DEFINITIONS]
    items = []

    def turn():
        asked = dict(model="scripted", input=items, tools=tools, store=False)
        if not is_stream:
            return client.responses.create(**asked)
        with client.responses.stream(**asked) as stream:
            return stream.get_final_response()

    for prompt in ASKED:
        items.append({"role": "user", "content": prompt})
        while True:
            said = again(turn)
            calls = [item for item in said.output if item.type == "function_call"]
            known = {"type", "id", "call_id", "name", "arguments", "role", "content", "status"}
            items.extend(item.model_dump(exclude_none=True, include=known) for item in said.output)
            if not calls:
                yield said.output_text
                break
            for call in calls:
                result = run(call.name, json.loads(call.arguments))
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": result})


def anthropic_tools():
    return [
        {"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]}
        for tool in DEFINITIONS
    ]


def anthropic_messages(url, is_stream):
    import anthropic

    client = anthropic.Anthropic(base_url=url + "/anthropic", api_key="none")
    tools, messages = anthropic_tools(), []

    def turn():
        asked = dict(model="scripted", max_tokens=1000, messages=messages, tools=tools)
        if not is_stream:
            return client.messages.create(**asked)
        with client.messages.stream(**asked) as stream:
            return stream.get_final_message()

    for prompt in ASKED:
        messages.append({"role": "user", "content": prompt})
        while True:
            said = again(turn)
            blocks = [block.model_dump(exclude_none=True, include={"type", "text", "id", "name", "input"}) for block in said.content]
            messages.append({"role": "assistant", "content": blocks})
            calls = [block for block in said.content if block.type == "tool_use"]
            if not calls:
                yield said.content[0].text
                break
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": run(call.name, call.input)}
                for call in calls
            ]
            messages.append({"role": "user", "content": results})


def anthropic_runner(url, _):
    import anthropic
    from anthropic import beta_tool

    client = anthropic.Anthropic(base_url=url + "/anthropic", api_key="none")

    @beta_tool
    def fetch(n: int) -> str:
        """Fetches a table."""
        return run("fetch", {"n": n})

    @beta_tool
    def read_file(path: str, offset: int = 1, limit: int = 200) -> str:
        """Reads lines of a file."""
        return run("read_file", {"path": path, "offset": offset, "limit": limit})

    messages = []
    for prompt in ASKED:
        messages.append({"role": "user", "content": prompt})

        def whole():
            runner = client.beta.messages.tool_runner(
                model="scripted", max_tokens=1000, messages=list(messages), tools=[fetch, read_file]
            )
            return runner.until_done().content[0].text

        answer = again(whole)
        messages.append({"role": "assistant", "content": answer})
        yield answer


def google(url, is_stream):
    from google import genai
    from google.genai import types

    options = types.HttpOptions(base_url=url + "/gemini", retry_options=types.HttpRetryOptions(attempts=3, initial_delay=0.1))
    client = genai.Client(api_key="none", http_options=options)
    declarations = [
        types.FunctionDeclaration(name=tool["name"], description=tool["description"], parameters_json_schema=tool["parameters"])
        for tool in DEFINITIONS
    ]
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=declarations)],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    contents = []

    def turn():
        asked = dict(model="scripted", contents=contents, config=config)
        if not is_stream:
            return client.models.generate_content(**asked).candidates[0].content
        parts = []
        for chunk in client.models.generate_content_stream(**asked):
            parts += chunk.candidates[0].content.parts
        if not parts:
            raise RuntimeError("an empty stream")
        return types.Content(role="model", parts=parts)

    for prompt in ASKED:
        contents.append(types.Content(role="user", parts=[types.Part(text=prompt)]))
        while True:
            said = again(turn)
            contents.append(said)
            calls = [part.function_call for part in said.parts if part.function_call]
            if not calls:
                yield said.parts[0].text
                break
            results = [
                types.Part.from_function_response(name=call.name, response={"output": run(call.name, call.args)})
                for call in calls
            ]
            contents.append(types.Content(role="user", parts=results))


CLIENTS = {
    "openai-chat": lambda url: openai_chat(url, False),
    "openai-chat-stream": lambda url: openai_chat(url, True),
    "openai-responses": lambda url: openai_responses(url, False),
    "openai-responses-stream": lambda url: openai_responses(url, True),
    "anthropic": lambda url: anthropic_messages(url, False),
    "anthropic-stream": lambda url: anthropic_messages(url, True),
    "anthropic-tool-runner": lambda url: anthropic_runner(url, None),
    "google": lambda url: google(url, False),
    "google-stream": lambda url: google(url, True),
}

say(CLIENTS[sys.argv[1]](sys.argv[2]))
