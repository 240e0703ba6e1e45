"""The class `Reduction`."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import io
import json
import logging
import math
import os
import re
from collections import deque
from collections.abc import Awaitable, Callable, ItemsView, Iterator, KeysView, Mapping, MutableMapping, Sequence, ValuesView
from typing import Any, Literal, TypeAlias

from ._offcut import Core, OffcutError, are_parts

Format: TypeAlias = Literal["openai-chat", "openai-responses", "anthropic", "gemini"]
Report: TypeAlias = dict[str, Any]
#: A tool's result as the core takes it: of a list of parts, the JSON of each.
Returned: TypeAlias = str | bytes | list[str]

_log = logging.getLogger("offcut")
#: Packages whose objects are read as the dicts that they stand for.
_SDKS = ("openai", "anthropic", "google", "mcp", "mcp_types")
#: Packages whose messages are not those of a provider, and the module here that takes them.
_FRAMEWORKS = {"langchain": "offcut.langchain", "langchain_core": "offcut.langchain", "pydantic_ai": "offcut.pydantic_ai"}


class Reduction:
    """Shortens what an agent's tools return, and stores all of it.

    Messages are the dicts that the provider takes, or objects of the SDKs of OpenAI, Anthropic and Google. `format` is
    `"openai-chat"`, `"openai-responses"`, `"anthropic"` or `"gemini"`; without it, the messages tell. All methods may be
    called from any thread; those that begin with `a` are for asyncio.
    """

    def __init__(self, settings: Mapping[str, Any], *, on_report: Callable[[Report], None] | None = None):
        """Opens the stores that the settings name. The options are those of docs/options.md."""
        if on_report is not None and not callable(on_report):
            raise TypeError(f"`on_report` must be a function, not {on_report!r}")
        self._core = Core(_dumps(_option(settings, "")))
        self._on_report = on_report

    @classmethod
    def in_dir(
        cls, path: str | os.PathLike[str], *, on_report: Callable[[Report], None] | None = None, **settings: Any
    ) -> Reduction:
        """Returns a reduction over the directory `path`, or the bucket at a URL such as `s3://bucket/prefix`.

        It has the settings that measured best; `settings` are put over them.
        """
        if "backend" in settings:
            raise TypeError("`in_dir` takes no `backend`: its path is one")
        return cls({"preset": "recommended", **settings, "backend": os.fspath(path)}, on_report=on_report)

    def __copy__(self) -> Reduction:
        return self

    def __deepcopy__(self, memo: Any) -> Reduction:
        return self

    def __reduce__(self) -> Any:
        raise TypeError("a Reduction has stores open, and can't be pickled: make one from the same settings where it is needed")

    def session(self, id: str) -> Reduction:
        """Returns the reduction of one conversation: it stores in a folder of its own, and reads nothing else."""
        one = Reduction.__new__(Reduction)
        one._core = self._core.session(id)
        one._on_report = self._on_report
        return one

    def tool(self, format: Format) -> Any:
        """Returns the definition of the reader, a dict for a request's `tools`.

        It raises a SettingsError if `read_file_tool_name` is false.
        """
        return json.loads(self._core.tool(format))

    @property
    def reader_name(self) -> str | None:
        """The reader's name; `None` if the settings name none."""
        return self._core.reader_name()

    def before_model(
        self,
        messages: list[Any],
        format: Format | None = None,
        *,
        tools: Sequence[Any] = (),
        last_usage: int | None = None,
        is_too_long: bool = False,
        is_cold: bool = False,
    ) -> Report:
        """The moment before a model call: clears old results in `messages` if these are over the threshold.

        `messages` is changed in place. For Anthropic and Gemini, the newest results of parallel calls are joined into
        one message. `tools` are counted too; `last_usage` is what the provider counted as input of the last request.
        `is_too_long`: the provider has just refused these messages as too long, so all results before the newest round
        are cleared. `is_cold`: its cache holds nothing of them, so half of the threshold is enough.
        """
        return self._clear(messages, format, _turn(tools, last_usage, is_too_long, is_cold, joins=True))

    async def abefore_model(
        self,
        messages: list[Any],
        format: Format | None = None,
        *,
        tools: Sequence[Any] = (),
        last_usage: int | None = None,
        is_too_long: bool = False,
        is_cold: bool = False,
    ) -> Report:
        turn = _turn(tools, last_usage, is_too_long, is_cold, joins=True)
        # If this is cancelled, the messages stay.
        return self._put(messages, *await asyncio.to_thread(self._planned, messages, format, turn))

    def clear(
        self,
        messages: list[Any],
        format: Format | None = None,
        *,
        tools: Sequence[Any] = (),
        last_usage: int | None = None,
        is_too_long: bool = False,
        is_cold: bool = False,
    ) -> Report:
        """Does what `before_model` does, but joins no messages, so their number stays."""
        return self._clear(messages, format, _turn(tools, last_usage, is_too_long, is_cold, joins=False))

    def wrap_tool_call(self, call: Any, run: Callable[[], Any], format: Format | None = None) -> Any:
        """The moment of a tool call: returns the message that answers `call`.

        `call` is what the model wrote, as the provider's dict or the SDK's object, or a dict with `id`, `name` and
        `arguments`, which needs the `format`. Reads of stored content are answered; all others are `run`. An exception of
        `run` becomes a result that is marked as an error.
        """
        text = _call(call, run)
        if (answered := self._ask("answer", format, text)) is not None:
            return self._message(answered)
        try:
            result = run()
        except Exception as error:
            outcome = _raised(error)
        else:
            if inspect.iscoroutine(result):
                result.close()
            if inspect.isawaitable(result):
                raise TypeError("`run` has returned an awaitable: use `awrap_tool_call`")
            outcome = _outcome(result)
        return self._message(self._answer_with(format, text, *outcome))

    async def awrap_tool_call(
        self, call: Any, run: Callable[[], Any], format: Format | None = None
    ) -> Any:
        text = _call(call, run)
        if (answered := await asyncio.to_thread(self._ask, "answer", format, text)) is not None:
            return self._message(answered)
        try:
            result = run()
            outcome = _outcome(await result if inspect.isawaitable(result) else result)
        except Exception as error:
            outcome = _raised(error)
        return self._message(await asyncio.to_thread(self._answer_with, format, text, *outcome))

    def truncate(
        self, result: Any, *, tool: str, call_id: str = "", arguments: Any = None, is_error: bool = False
    ) -> Any:
        """Returns what to show in place of `result`: `result` itself if it is short, and otherwise a text, or a list of
        parts if it is one. Bytes become text.
        """
        call = {"id": call_id, "name": tool, "arguments": {} if arguments is None else arguments}
        shown = self._ask("truncate", None, _of_call(_well_formed(call), is_error), _given(result))
        self._tell(shown["report"])
        return result if shown["new"] is None else shown["new"]

    async def atruncate(
        self, result: Any, *, tool: str, call_id: str = "", arguments: Any = None, is_error: bool = False
    ) -> Any:
        return await asyncio.to_thread(
            self.truncate, result, tool=tool, call_id=call_id, arguments=arguments, is_error=is_error
        )

    def reduce(
        self, body: Any, format: Format | None = None, *, is_too_long: bool = False, is_cold: bool = False
    ) -> Any:
        """Does both moments' work on a whole request: its body, or its list of messages.

        Returns the body as it was given: text, bytes, or a dict or list, which stays unchanged. What was decided is kept
        in the store, so that a conversation that comes again, and grows, is given the same texts. Use a `session` for
        each conversation.
        """
        return self._reduced(body, format, is_too_long=is_too_long, is_cold=is_cold)

    def _reduced(self, body: Any, format: Format | None, **turn: bool) -> Any:
        text = body if isinstance(body, str) else None
        if isinstance(body, (bytes, bytearray)):
            text = body.decode()
        elif text is None:
            text = _dumps(body)
        reduced = self._ask("reduce", format, _dumps(turn), text)
        self._tell(reduced["report"])
        new = reduced["new"]
        if new is None:
            return body
        if isinstance(body, str):
            return new
        return new.encode() if isinstance(body, (bytes, bytearray)) else json.loads(new)

    async def areduce(
        self, body: Any, format: Format | None = None, *, is_too_long: bool = False, is_cold: bool = False
    ) -> Any:
        return await asyncio.to_thread(self.reduce, body, format, is_too_long=is_too_long, is_cold=is_cold)

    def condense(
        self,
        state: MutableMapping[str, Any],
        model: Callable[[str], str | None],
        prompt_template: str,
        *,
        input_keys: Sequence[str] = (),
        output_key: str = "reduced_output",
        names_originals: bool = True,
    ) -> dict[str, Any]:
        """Has a model condense values of a state into one: Lár's `ReduceNode`.

        The template's `{key}`s are filled in from `state`, the input keys are stored and deleted, and the answer of
        `model` stands under `output_key`, with a last line that names what was stored if `names_originals`. After an
        error, `state` is as it was. Returns `output`, `deleted`, `stored` (pairs of a key and a location) and
        `left_in_place`.
        """
        node, before = _node(prompt_template, input_keys, output_key, names_originals), _needed(state, prompt_template, input_keys)
        options = f'{{"node":{node},"state":{before}}}'
        answer = model(self._ask("condense", None, options)["prompt"]) or ""
        if inspect.isawaitable(answer):
            raise TypeError("`model` has returned an awaitable: use `acondense`")
        _check_same(before, _needed(state, prompt_template, input_keys))
        return _condensed(state, output_key, self._ask("condense", None, options, answer))

    async def acondense(
        self,
        state: MutableMapping[str, Any],
        model: Callable[[str], Awaitable[str | None]],
        prompt_template: str,
        *,
        input_keys: Sequence[str] = (),
        output_key: str = "reduced_output",
        names_originals: bool = True,
    ) -> dict[str, Any]:
        node, before = _node(prompt_template, input_keys, output_key, names_originals), _needed(state, prompt_template, input_keys)
        options = f'{{"node":{node},"state":{before}}}'
        asked = await asyncio.to_thread(self._ask, "condense", None, options)
        answer = await model(asked["prompt"]) or ""
        _check_same(before, _needed(state, prompt_template, input_keys))
        return _condensed(state, output_key, await asyncio.to_thread(self._ask, "condense", None, options, answer))

    def read(self, path: str, **arguments: Any) -> str:
        """Returns a page of stored content, as the reader shows it to the model.

        The arguments are the reader's: `offset`, `limit`, `pattern`, `context`, `count` and `query`. A mistake in them
        is a ValueError.
        """
        page, is_error = self._page({"path": path, **arguments})
        if is_error:
            raise ValueError(page)
        return page

    async def aread(self, path: str, **arguments: Any) -> str:
        return await asyncio.to_thread(lambda: self.read(path, **arguments))

    def original(self, location: str) -> bytes:
        """Returns everything that is stored at a location, byte for byte."""
        return self._core.original(location)

    def check(self) -> None:
        """Tries out every store: stores a few bytes and reads them back. Call it when a program starts."""
        self._ask("check", None, "null")

    def _ask(self, method: str, format: Format | None, options: str, given: Returned | None = None) -> Any:
        """Asks the core by the name of its method, with `options` in JSON."""
        return json.loads(self._core.ask(method, format, options, given))

    def _answer_with(self, format: Format | None, call: str, result: Returned, is_error: bool) -> Any:
        return self._ask("message", format, _of_call(call, is_error), result)

    def _answer(self, call: Mapping[str, Any]) -> tuple[Any, bool] | None:
        """The reader's answer to a call with `id`, `name` and `args`, and true if it tells of a mistake; none for any other
        call.
        """
        answered = self._ask("answer", "openai-chat", _well_formed(call))
        return None if answered is None else (self._message(answered)["content"], answered["is_error"])

    def _content(self, format: Format, arguments: Any) -> tuple[Any, bool]:
        """The reader's answer to a call with these arguments, or with this text, as the content of the provider's result, and
        true if it tells of a mistake.
        """
        text = arguments if isinstance(arguments, str) else _dumps(arguments)
        answered = self._ask("answer", format, _dumps({"id": "", "name": self.reader_name, "arguments": text}))
        if answered is None:
            return self._read(text)
        of_call = answered["message"]
        if format == "anthropic":
            [of_call] = of_call["content"]
        return of_call["output" if format == "openai-responses" else "content"], answered["is_error"]

    def _page(self, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """The reader's answer, and true if it tells of a mistake."""
        return self._read(_dumps(arguments))

    def _read(self, arguments: str) -> tuple[str, bool]:
        page = self._ask("read", None, "null", arguments)
        return page["text"], page["is_error"]

    def _clear(self, messages: list[Any], format: Format | None, turn: str) -> Report:
        return self._put(messages, *self._planned(messages, format, turn))

    def _planned(self, messages: list[Any], format: Format | None, turn: str) -> tuple[list[Any], str, Any]:
        """A pass that has changed nothing yet: the messages that it was over, as they are and as text, and its outcome."""
        if not isinstance(messages, list):
            raise TypeError("`messages` must be a list, which is changed in place")
        before = list(messages)
        text = _dumps(before)
        return before, text, self._ask("clear", format, turn, text)

    def _put(self, messages: list[Any], before: list[Any], text: str, cleared: Any) -> Report:
        kept = cleared["messages"]
        if kept is not None:
            # Others may have been added in the meantime.
            if _dumps(messages[: len(before)]) == text:
                messages[: len(before)] = [before[one] if isinstance(one, int) else json.loads(one) for one in kept]
            else:
                _log.warning("the messages were changed during the pass, so they stay as they are")
        return self._tell(cleared["report"])

    def _message(self, answered: Any) -> Any:
        self._tell(answered["report"])
        return answered["message"]

    def _tell(self, report: Report) -> Report:
        for one in report["decisions"]:
            about = f"{report['phase']} {one['outcome']} {one['tool']!r}, call {one['call_id']!r}"
            if one["error"]:
                _log.warning("%s: %s", about, one["error"])
            elif one["locations"]:
                _log.debug("%s: %s -> %s bytes", about, one["bytes"]["before"], one["bytes"]["after"])
        for problem in ("notice", "records_error"):
            if report.get(problem):
                _log.warning("%s", report[problem])
        if self._on_report is not None:
            try:
                self._on_report(report)
            except Exception:
                # What it is about has been done.
                _log.exception("on_report has raised an exception")
        return report


def _turn(tools: Sequence[Any], usage: int | None, is_too_long: bool, is_cold: bool, *, joins: bool) -> str:
    if usage is not None and not (isinstance(usage, int) and 0 <= usage < 1 << 63):
        raise ValueError("`last_usage` must be the number of tokens that the provider counted")
    known = {"tools": list(tools or ()), "last_usage": usage, "is_too_long": bool(is_too_long), "is_cold": bool(is_cold)}
    return _dumps({**known, "joins": joins})


def _needed(state: Mapping[str, Any], prompt_template: str, input_keys: Sequence[str]) -> str:
    """The values that a node may need. Others may be anything."""
    return exact({key: one for key, one in state.items() if key in input_keys or f"{{{key}" in prompt_template})


def exact(value: Any) -> str:
    """The JSON of a value, if its numbers and texts can be read as they are."""

    def check(number: str) -> None:
        if not number.lstrip("-").isdigit() or not -(1 << 63) <= int(number) < 1 << 64:
            raise ValueError(f"{number} is not a number of at most 64 bits: give it as a text")

    text = _json(value)
    json.loads(text, parse_int=check, parse_constant=check)
    try:
        return _text(text, "strict")
    except UnicodeDecodeError:
        raise ValueError("a text has half of a surrogate pair: replace it") from None


def _node(prompt_template: str, input_keys: Sequence[str], output_key: str, names_originals: bool) -> str:
    if isinstance(input_keys, str):
        raise TypeError("`input_keys` must be a list of keys")
    node = {"prompt_template": prompt_template, "input_keys": list(input_keys), "output_key": output_key}
    return _dumps({**node, "names_originals": names_originals})


def _check_same(before: str, now: str) -> None:
    if before != now:
        raise ValueError("the state was changed while the model wrote: nothing was deleted, so condense it again")


def _condensed(state: MutableMapping[str, Any], output_key: str, done: dict[str, Any]) -> dict[str, Any]:
    for key in done["deleted"]:
        state.pop(key, None)
    state[output_key] = done["output"]
    return done


def _option(value: Any, name: str) -> Any:
    """An option's value, of what JSON can say."""
    if isinstance(value, Mapping):
        return {key: _option(one, f"{name}.{key}" if name else key) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_option(one, name) for one in value]
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if callable(value):
        raise TypeError(
            f"the option `{name}` is a function: handlers, previews and counters are for Rust, and here only `on_report` is one"
        )
    if value is None or isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    kind = value if isinstance(value, float) else f"a `{type(value).__name__}`"
    raise TypeError(f"the option `{name}` can't be {kind}: give what JSON can say")


def _call(call: Any, run: Any) -> str:
    if not callable(run):
        if inspect.iscoroutine(run):
            run.close()
        raise TypeError(f"`run` must be a function that runs the tool, not a {type(run).__name__}")
    return _well_formed(call)


def _of_call(call: str, is_error: bool) -> str:
    """What is asked about a call's result."""
    return f'{{"call":{call},"is_error":{json.dumps(bool(is_error))}}}'


def _well_formed(value: Any) -> str:
    """JSON of well-formed text."""
    if type(value).__name__ == "FunctionCall" and type(value).__module__.startswith("google."):
        # Its SDK lists them without what is around them in a message.
        value = {"functionCall": value}
    return _text(_json(value, allow_nan=False))


def _json(value: Any, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain, **options)


def _text(text: str, halves: str = "replace") -> str:
    """The text, in which surrogate pairs are one character. `halves` of them are handled as mistakes of an encoding are."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", halves)
    return text


def _dumps(value: Any) -> str:
    text = _json(value, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair: only an escape can say it.
        text = json.dumps(value, separators=(",", ":"), default=_plain)
    return text


def _package(value: Any) -> str:
    """The package that an object's class is of."""
    return type(value).__module__.partition(".")[0]


def _plain(value: Any) -> Any:
    """What an object stands for in a message."""
    if isinstance(value, Mapping):
        return dict(value)
    kind = type(value)
    package = _package(value)
    if package in _SDKS and hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    cure = _FRAMEWORKS.get(package)
    cure = f"use {cure}" if cure else "pass what the provider takes: dicts, lists, texts and numbers"
    raise TypeError(f"a {kind.__module__}.{kind.__qualname__} has no place in a provider's message: {cure}")


def _outcome(result: Any) -> tuple[Returned, bool]:
    """A tool's result, and true if it is an error: one that JSON can't say is."""
    try:
        return _given(result), False
    except Exception as error:
        told = _told(error)
        # It is a mistake of the program, and not one that the model should work around.
        _log.warning("a result was refused: %s", told)
        return _given(told), True


def _raised(error: Exception) -> tuple[Returned, bool]:
    _log.info("a tool has raised an exception", exc_info=error)
    return _given(_told(error)), True


def _told(error: Exception) -> str:
    try:
        text = str(error)
    except Exception:
        # An exception's own text may fail too.
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _given(result: Any) -> Returned:
    """A tool's result as the core takes it."""
    if isinstance(result, (bytes, bytearray, memoryview)):
        return bytes(result)
    items = [result] if _package(result) in _SDKS else result
    if isinstance(items, (list, tuple)) and items:
        parts = spelled_parts(items) if _may_be_parts(items) else []
        if parts:
            return parts
    text: str = "" if result is None else result
    if not isinstance(text, str):
        text = json.dumps(result, ensure_ascii=False, default=_fields)
    try:
        text.encode()
    except UnicodeEncodeError:
        # Names of files and outputs of commands may be bytes in disguise. Other halves of pairs stand for nothing.
        text = re.sub("[\ud800-\udc7f\udd00-\udfff]", "\ufffd", _text(text, "surrogatepass"))
        return text.encode(errors="surrogateescape")
    return text


def _may_be_parts(items: Sequence[Any]) -> bool:
    return all(isinstance(one, Mapping) or _package(one) in _SDKS for one in items)


def spelled_parts(items: Sequence[Any]) -> list[str]:
    """The JSON of each content part; none if one of them is no part, or can't be said as one."""
    try:
        parts = [_well_formed(_fields(one)) for one in items]
    except Exception:
        return []
    return parts if are_parts(f"[{','.join(parts)}]") else []


def _fields(value: Any) -> Any:
    """The fields of an object of pydantic or a dataclass; of others that are not JSON's own, the text if they define one."""
    if hasattr(value, "model_dump"):
        is_part = _package(value) in _SDKS
        return value.model_dump(mode="json", by_alias=True, exclude_none=True) if is_part else value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (str, int, float, list, tuple, type(None))):
        return value
    if isinstance(value, (set, frozenset, range, deque, KeysView, ValuesView, ItemsView)):
        return list(value)
    if hasattr(value, "tolist"):
        # Arrays and their numbers: their texts leave out the middle.
        return value.tolist()
    kind: Any = type(value)
    # A text for debugging may be short of what there is.
    is_bare = kind.__str__ is object.__str__
    if is_bare or isinstance(value, (bytes, bytearray, io.IOBase, Iterator)) or callable(value) or hasattr(value, "to_csv"):
        raise TypeError(f"no JSON says a `{kind.__name__}`: a tool may return text, bytes, content parts, or what JSON can say")
    return str(value)


__all__ = ["Format", "OffcutError", "Reduction", "Report"]
