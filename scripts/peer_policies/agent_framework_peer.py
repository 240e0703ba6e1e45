"""Microsoft Agent Framework's compaction, applied to the list of messages before each model call, as its agents do."""
import asyncio
import json

from agent_framework import Content, Message
from agent_framework import ContextWindowCompactionStrategy, apply_compaction, included_messages

from record import Recorder, tokens_of_text, turns


class Tokens:
    def count_tokens(self, text: str) -> int:
        return tokens_of_text(text)


def _message(message: dict, at: int) -> Message:
    if message["role"] == "tool":
        contents = [Content.from_function_result(message["tool_call_id"], result=message["content"])]
    else:
        contents = [message["content"]] if message["content"] else []
        for call in message.get("tool_calls") or []:
            contents.append(Content.from_function_call(call["id"], call["function"]["name"], arguments=call["function"]["arguments"]))
    return Message(message["role"], contents, message_id=f"m{at}")


def agent_framework(recorder: Recorder, messages: list[dict], window: int = 128_000, output: int = 16_384) -> None:
    """The default strategy of its harness: old tool calls become summaries at half the window, the oldest groups go at four fifths."""
    strategy = ContextWindowCompactionStrategy(max_context_window_tokens=window, max_output_tokens=output, tokenizer=Tokens())
    history: list[Message] = []
    taken = 0

    async def run() -> None:
        nonlocal taken
        for turn in turns(messages):
            history.extend(_message(messages[at], at) for at in range(taken, turn))
            taken = turn
            sent = await apply_compaction(history, strategy=strategy)
            recorder.request([_entry(message) for message in sent])

    def _entry(message: Message):
        if message.message_id and message.message_id.startswith("m") and message.message_id[1:].isdigit():
            return int(message.message_id[1:])
        return {"role": message.role, "content": message.text}

    asyncio.run(run())
