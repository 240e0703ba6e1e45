"""LangChain's agent with its middleware and deepagents', over a model that says what the transcript's said and tools that return what
its tools returned. The model records each request that reaches it."""
import json
from typing import Any

from deepagents.backends import StateBackend
from deepagents.middleware.filesystem import FilesystemMiddleware
from deepagents.middleware.summarization import SummarizationMiddleware as DeepSummarization
from deepagents.middleware.summarization import compute_summarization_defaults
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ContextEditingMiddleware, SummarizationMiddleware, hook_config
from langchain.agents.middleware.context_editing import ClearToolUsesEdit
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage, trim_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver

from record import Recorder, tokens_of, tokens_of_text


def count(messages: Any, **_: Any) -> int:
    """Tokens as the replay counts them."""
    total = 0
    for message in [messages] if isinstance(messages, BaseMessage) else messages:
        total += 4 + tokens_of_text(_text(message))
        for call in getattr(message, "tool_calls", None) or []:
            total += tokens_of_text(call["name"]) + tokens_of_text(json.dumps(call["args"], ensure_ascii=False))
    return total


def _text(message: Any) -> str:
    content = message.content
    if isinstance(content, str):
        return content
    return "\n".join(block if isinstance(block, str) else block.get("text", "") for block in content)


def _number(message: BaseMessage) -> int | None:
    known = message.id or ""
    return int(known[1:]) if known.startswith("m") and known[1:].isdigit() else None


def _langchain(message: dict, at: int) -> BaseMessage:
    content, known = message["content"] or "", f"m{at}"
    match message["role"]:
        case "user":
            return HumanMessage(content, id=known)
        case "system":
            return SystemMessage(content, id=known)
        case "tool":
            return ToolMessage(content, tool_call_id=message["tool_call_id"], id=known)
    calls = [
        {"id": call["id"], "name": call["function"]["name"], "args": json.loads(call["function"]["arguments"]), "type": "tool_call"}
        for call in message.get("tool_calls") or []
    ]
    return AIMessage(content, tool_calls=calls, id=known)


class Model(BaseChatModel):
    """Says what the transcript's model said, and records what it is sent."""

    messages: list
    recorder: Any
    next: int = 0
    given: int = 0
    has_prompt: bool = False
    stored: Any = None

    @property
    def _llm_type(self) -> str:
        return "transcript"

    def bind_tools(self, tools: Any, **_: Any) -> "Model":
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        entries = []
        for message in messages:
            if isinstance(message, SystemMessage) and _number(message) is None:
                # The prompt, to which a middleware may have added how its tools are used. Offcut's are not counted either.
                entries += [0] if self.has_prompt else []
                continue
            entries.append(self._entry(message))
        while self.messages[self.next]["role"] != "assistant":
            self.next += 1
        self.recorder.request(entries, self.stored(messages, self.next) if self.stored else None)
        answer = _langchain(self.messages[self.next], self.next)
        self.next += 1
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def may_go_on(self) -> bool:
        """False if the transcript ends here, or waits for a message of the user that has not been given yet."""
        at = self.next
        while at < len(self.messages) and self.messages[at]["role"] == "tool":
            at += 1
        return at < len(self.messages) and (self.messages[at]["role"] == "assistant" or at < self.given)

    def _entry(self, message: BaseMessage):
        at = _number(message)
        said: dict = {"role": {"human": "user", "ai": "assistant"}.get(message.type, message.type), "content": _text(message)}
        if isinstance(message, ToolMessage):
            said["tool_call_id"] = message.tool_call_id
            at = self.recorder.numbers.get(message.tool_call_id)
        original = self.messages[at] if at is not None else {}
        known = {call["id"]: call for call in original.get("tool_calls") or []}
        calls = []
        for call in getattr(message, "tool_calls", None) or []:
            same = known.get(call["id"])
            if not same or json.loads(same["function"]["arguments"]) != call["args"]:
                function = {"name": call["name"], "arguments": json.dumps(call["args"], ensure_ascii=False, separators=(",", ":"))}
                same = {"id": call["id"], "type": "function", "function": function}
            calls.append(same)
        if calls:
            said["tool_calls"] = calls
        return self.recorder.entry(said, at)


class Summaries(BaseChatModel):
    """Stands in for the model that writes summaries. Nothing here can write one: it gives the beginnings of what it is sent."""

    recorder: Any

    @property
    def _llm_type(self) -> str:
        return "summaries"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        text = "\n".join(map(_text, messages))
        self.recorder.own([{"role": "user", "content": text}])
        said = text.rsplit("Messages to summarize:", 1)[-1].strip()
        lines = [line[:160] for line in said.splitlines() if line.strip()]
        summary, step = "", max(1, len(lines) // 40)
        for line in lines[::step]:
            summary += line + "\n"
        return ChatResult(generations=[ChatGeneration(message=AIMessage(summary[:4_000]))])


class Script(AgentMiddleware):
    """Ends a run where the transcript's did. The outermost middleware."""

    def __init__(self, model: Model):
        super().__init__()
        self.model = model

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: Any, runtime: Any) -> dict | None:
        return None if self.model.may_go_on() else {"jump_to": "end"}


class Results(AgentMiddleware):
    """Returns what the transcript's tools returned. The innermost middleware, where the tools would run."""

    def __init__(self, recorder: Recorder):
        super().__init__()
        self.recorder = recorder

    def wrap_tool_call(self, request: Any, handler: Any) -> ToolMessage:
        call = request.tool_call
        at = self.recorder.numbers[call["id"]]
        return ToolMessage(self.recorder.messages[at]["content"], tool_call_id=call["id"], name=call["name"], id=f"m{at}")


class Trim(AgentMiddleware):
    """`trim_messages`, as LangChain's pages use it: the newest messages, from one that may come first."""

    def __init__(self, most: int):
        super().__init__()
        self.most = most

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        kept = trim_messages(request.messages, max_tokens=self.most, token_counter=count, strategy="last", start_on=("human", "ai"))
        return handler(request.override(messages=kept))


def _tool(name: str) -> StructuredTool:
    def never() -> str:
        raise AssertionError("results come from the transcript")

    return StructuredTool(name=name, description=name, func=never, args_schema={"type": "object", "properties": {}, "additionalProperties": True})


def _run(recorder: Recorder, messages: list[dict], middleware: list, stored: Any = None) -> None:
    has_prompt = messages[0]["role"] == "system"
    model = Model(messages=messages, recorder=recorder, has_prompt=has_prompt, stored=stored)
    names = {call["function"]["name"] for message in messages for call in message.get("tool_calls") or []}
    taken = {tool.name for one in middleware for tool in getattr(one, "tools", [])}
    agent = create_agent(
        model,
        tools=[_tool(name) for name in sorted(names - taken)],
        system_prompt=messages[0]["content"] if has_prompt else None,
        middleware=[Script(model), *middleware, Results(recorder)],
        checkpointer=InMemorySaver(),
    )
    config = {"configurable": {"thread_id": "1"}, "recursion_limit": 100_000}
    at = int(has_prompt)
    while any(message["role"] == "assistant" for message in messages[at:]):
        said = []
        while messages[at]["role"] != "assistant":
            said += [_langchain(messages[at], at)] if messages[at]["role"] != "tool" else []
            at += 1
        model.given = at
        agent.invoke({"messages": said}, config, durability="exit")
        at = model.next


def clear_tool_uses(recorder: Recorder, messages: list[dict], **options: Any) -> None:
    _run(recorder, messages, [ContextEditingMiddleware(edits=[ClearToolUsesEdit(**options)], token_counter=count)])


def trim(recorder: Recorder, messages: list[dict], most: int) -> None:
    _run(recorder, messages, [Trim(most)])


def summarize(recorder: Recorder, messages: list[dict], trigger: int) -> None:
    middleware = SummarizationMiddleware(Summaries(recorder=recorder), trigger=("tokens", trigger), token_counter=count)
    _run(recorder, messages, [middleware])


LINES = 100
"""Lines that deepagents' `read_file` returns if it is not told a number."""


def deepagents(recorder: Recorder, messages: list[dict], trigger: int | None = None) -> None:
    """Its files for long results and its summaries, as `create_deep_agent` sets them, or summaries from `trigger` tokens on."""
    backend, model = StateBackend(), Summaries(recorder=recorder)
    defaults = compute_summarization_defaults(model)
    summaries = DeepSummarization(
        model,
        backend=backend,
        trigger=("tokens", trigger) if trigger else defaults["trigger"],
        keep=defaults["keep"],
        token_counter=count,
        trim_tokens_to_summarize=None,
        truncate_args_settings=defaults["truncate_args_settings"],
    )
    files = FilesystemMiddleware(backend=backend)

    def stored(sent: list[BaseMessage], turn: int) -> dict[int, int]:
        """Everything that it has put into a file: long results, and what a summary stands for."""
        shown = {message.tool_call_id: _text(message) for message in sent if isinstance(message, ToolMessage)}
        before = ((call_id, at) for call_id, at in recorder.numbers.items() if at < turn)
        return {at: LINES for call_id, at in before if shown.get(call_id) != messages[at]["content"]}

    _run(recorder, messages, [files, summaries], stored)
