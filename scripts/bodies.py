"""Sends request bodies made from the SDKs' own types through `offcut serve`, and compares what comes out.

    bodies.py OFFCUT [--count N] [--seed S] [--only N]      needs openai, anthropic and google-genai

The types of every request field are walked at random, so that each kind of call and result, and each optional field, occurs.
The provider is a scripted one that answers with the body it got. For each body it is checked that

1. the SDK's types accept what Offcut sends if they accept what it got;
2. only contents of tools' results and arguments of calls differ, and none that a program reads, a signature covers, or a
   compaction has hidden; all else is equal byte for byte once these values are put back;
3. what was removed is in the stored files that the hints name;
4. Offcut never reports a bug, and one more message leaves earlier hints as they are (one body in fifty).

A difference is printed once for each kind. Exits with 1 if there is any.
"""
import typing
typing.Iterable = typing.List  # pydantic checks the items of an `Iterable` only when somebody iterates

import argparse, base64, collections, datetime, enum, functools, http.client, http.server, json, os, pathlib, random, re
import shutil, subprocess, sys, tempfile, threading, time, types, typing_extensions
import pydantic
from typing import Any, Literal, Union
from google.genai import types as genai
from openai.types import chat as openai_chat
from openai.types.chat import completion_create_params as chat_params
from openai.types.responses import response_create_params as responses_params, response_input_item_param as items
from anthropic.types import content_block_param, message_create_params, message_param
from anthropic.types.beta import beta_content_block_param, beta_message_param, message_create_params as beta_params

# ---- Values of a type -------------------------------------------------------------------------------------------------

HEADERS = {"betas", "user_profile_id", "workspace_id"}  # parameters of the SDKs that are not in the body
DEEP = 7


@functools.lru_cache(None)
def shape(of):
    """A type as (kind, what it consists of)."""
    origin, args = typing.get_origin(of), typing.get_args(of)
    if origin in (typing_extensions.Required, typing_extensions.NotRequired, typing_extensions.Annotated):
        return shape(args[0])
    if origin in (Union, types.UnionType):
        kinds = [arg for arg in args if shape(arg)[0] != "none" or arg is type(None)]
        return "union", kinds
    if origin in (Literal, typing_extensions.Literal):
        return "one of", args
    if origin in (dict, collections.abc.Mapping):
        return "map", args[1]
    if origin and issubclass(origin, collections.abc.Iterable):
        return "list", args[0]
    if typing_extensions.is_typeddict(of):
        hints = typing_extensions.get_type_hints(of, include_extras=True)
        required = lambda hint: typing.get_origin(hint) is typing_extensions.Required
        return "object", [(name, hint, required(hint)) for name, hint in hints.items() if name not in HEADERS]
    if isinstance(of, type) and issubclass(of, pydantic.BaseModel):
        return "object", [(field.alias or name, field.annotation, field.is_required()) for name, field in of.model_fields.items()]
    if isinstance(of, type) and issubclass(of, enum.Enum):
        return "one of", [member.value for member in of]
    if of is Any or of is object:
        return "any", None
    if of in (str, int, float, bool, bytes, dict, datetime.datetime, type(None)):
        return of.__name__.lower(), None
    return "none", None  # not JSON, such as an open file


def lines(rng, size):
    kinds = (lambda: f"{rng.random():.9f} INFO src/{rng.choice('abcd')}.rs:{rng.randrange(999)}: \"opened\" C:\\tmp\\x", lambda: "    return None\t# naïve, 日本語 🎉",
             lambda: json.dumps({"id": rng.randrange(10**9), "ok": None}), lambda: "", lambda: "and so the words go on " * rng.randrange(1, 9), lambda: "\x1b[1mbold\x1b[0m </tool> & <b>")
    text = ""
    while len(text) < size:
        text += rng.choice(kinds)() + rng.choice(["\n", "\n", "\r\n"])
    return text


POOL = lines(random.Random(0), 400_000)


class Maker:
    """Random values of types. All texts of a body differ."""

    def __init__(self, rng):
        self.rng, self.long, self.few_ids = rng, 0.02, False

    def chance(self, share):
        return self.rng.random() < share

    def token(self, prefix=""):
        return f"{prefix}{self.rng.getrandbits(3 if self.few_ids else 56):014x}"

    def text(self):
        size = self.rng.choice((2_100, 3_500, 6_000, 11_000, 20_000)) if self.chance(self.long) else self.rng.randrange(200)
        start = self.rng.randrange(len(POOL) - 20_000)
        return f"{self.rng.getrandbits(56):014x} {POOL[start:start + size]}"

    def bytes(self):
        size = self.rng.choice((3_000, 9_000)) if self.chance(self.long / 2) else self.rng.randrange(7, 60)
        return base64.b64encode(self.rng.randbytes(size)).decode()

    def string(self, name):
        if name in ("data", "file_data", "signature", "encrypted_content"):
            return self.bytes()
        if name == "image_url":
            return f"data:image/png;base64,{self.bytes()}" if self.chance(0.6) else "https://example.com/" + self.token()
        if re.search(r"(url|uri|Uri|source)$", name):
            return "https://example.com/" + self.token()
        if re.search(r"(id|Id|name|Name|namespace|model)$", name):
            return self.token(name[:4].lower() + "_")
        if re.search(r"(mime|media)_?[tT]ype$", name):
            return self.rng.choice(("image/png", "application/pdf", "text/plain", "audio/wav"))
        return self.text()

    def any(self, depth=0):
        kind = self.rng.randrange(4 if depth > 2 else 7)
        if kind < 2:
            return self.text()
        if kind < 4:
            return self.rng.choice((None, True, False, 0, -7, 2**53 + 1, 1.5, 1e-7, 1e22))
        if kind < 5:
            return [self.any(depth + 1) for _ in range(self.rng.randrange(4))]
        return {self.token("k"): self.any(depth + 1) for _ in range(self.rng.randrange(5))}

    def __call__(self, of, name="", depth=0, /, **fixed):
        """A value of a type; `fixed` are values of its fields."""
        kind, inner = shape(of)
        rng, deep = self.rng, depth > DEEP
        if kind == "object":
            made = {}
            some = rng.choice((0.1, 0.4, 0.8)) if depth < 4 else 0.25
            for field, hint, required in inner:
                if field in fixed:
                    made[field] = fixed[field]
                elif required or (not deep and self.chance(some) and shape(hint)[0] != "none"):
                    made[field] = self(hint, field, depth + 1)
            return made
        if kind == "union":
            simple = [arg for arg in inner if shape(arg)[0] not in ("object", "list", "map", "union")]
            return self(rng.choice(simple if deep and simple else inner), name, depth + 1)
        if kind == "one of":
            return rng.choice(inner)
        if kind == "list":
            return [] if deep else [self(inner, name, depth + 1) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
        if kind in ("map", "dict"):
            value = (lambda: self(inner, name, depth + 1)) if kind == "map" else lambda: self.any(2)
            return {self.token("k"): value() for _ in range(0 if deep else rng.randrange(4))}
        if kind == "any":
            return self.any(depth)
        if kind == "str":
            return self.string(name)
        if kind == "bytes":
            return self.bytes()
        return {"int": lambda: rng.choice((0, 1, 7, 4096, 2**31)), "float": lambda: rng.choice((0.0, 0.5, 1.0, 1e-7)), "bool": lambda: self.chance(0.5),
                "datetime": lambda: "2026-01-02T03:04:05Z", "nonetype": lambda: None, "none": lambda: None}[kind]()

    def arguments(self):
        """A call's arguments, as an object."""
        self.long = 0.25
        made = {self.token("a"): self.any(1) for _ in range(self.rng.randrange(4))} | {"path": self.text()}
        self.long = 0.02
        return made

    def written_arguments(self):
        """The same as text, now and then of a model that can't write JSON."""
        made = self.arguments()
        odd = (lambda: "", lambda: made["path"], lambda: json.dumps(made)[:-2], lambda: json.dumps(list(made.values())))
        return self.rng.choice(odd)() if self.chance(0.1) else json.dumps(made, ensure_ascii=self.chance(0.5))

    def result(self, of, /, **fixed):
        self.long = self.rng.choice((0.02, 0.6, 0.9))
        made = self(of, **fixed)
        self.long = 0.02
        return made


def kinds(union):
    """The objects of a union by their `type`."""
    found = {}
    for arg in shape(union)[1]:
        for name, hint, _ in shape(arg)[1] if typing_extensions.is_typeddict(arg) else ():
            if name == "type":
                for value in typing.get_args(re_literal(hint)):
                    found.setdefault(value, arg)
    return found


def re_literal(hint):
    """`Literal[…]` without what is around it."""
    while typing.get_origin(hint) not in (Literal, typing_extensions.Literal):
        hint = typing.get_args(hint)[0]
    return hint


# ---- Conversations ----------------------------------------------------------------------------------------------------


def caller(make, at, call, result=None):
    """Has a program make a call, in both or one of the places that may say so."""
    if at["type"] == "direct":
        share = 1 if make.chance(0.2) else 0
    else:
        share = make.rng.choice((1, 1, 2, 3))
    if share & 1:
        call["caller"] = at
    if result is not None and (share & 2 or (share and make.chance(0.5))):
        result["caller"] = dict(at)


def chat(make):
    messages = [make(chat_params.ChatCompletionMessageParam) for _ in range(make.rng.randrange(3))]
    calls = openai_chat.ChatCompletionMessageToolCallUnionParam
    for _ in range(make.rng.randrange(1, 6)):
        turn = make(openai_chat.ChatCompletionAssistantMessageParam)
        turn.pop("function_call", None), turn.pop("tool_calls", None)
        messages.append(turn)
        if make.chance(0.15):
            turn["function_call"] = {"name": make.token("f"), "arguments": make.written_arguments()}
            messages.append(make.result(openai_chat.ChatCompletionFunctionMessageParam, name=turn["function_call"]["name"]))
        else:
            turn["tool_calls"] = [make(calls) for _ in range(make.rng.choice((1, 1, 2, 4)))]
            for call in turn["tool_calls"]:
                if call["type"] == "function":
                    call["function"]["arguments"] = make.written_arguments()
                else:
                    make.long = 0.4
                    call["custom"]["input"], make.long = make.text(), 0.02
                messages.append(make.result(openai_chat.ChatCompletionToolMessageParam, tool_call_id=call["id"]))
        if make.chance(0.3):
            messages.append(make(openai_chat.ChatCompletionUserMessageParam))
    return messages


ITEMS = kinds(items.ResponseInputItemParam)
ANSWERS = {kind: kind + "_output" for kind in ITEMS if kind + "_output" in ITEMS} | {"mcp_approval_request": "mcp_approval_response", "tool_search_call": "tool_search_output"}
ALONE = [kind for kind in ITEMS if kind not in ANSWERS and kind not in ANSWERS.values() and kind not in ("compaction", "compaction_trigger")]


def responses(make):
    messages = [make(items.EasyInputMessageParam), make(items.Message)]
    for _ in range(make.rng.randrange(1, 6)):
        messages += [make(ITEMS[make.rng.choice(ALONE)]) for _ in range(make.rng.randrange(3))]
        calls, results = [], []
        for _ in range(make.rng.choice((1, 1, 2, 4))):
            kind = make.rng.choice(("function_call",) * 6 + ("custom_tool_call",) * 3 + tuple(ANSWERS))
            make.long = 0.3
            call, make.long = make(ITEMS[kind]), 0.02
            result = make.result(ITEMS[ANSWERS[kind]])
            name = call.get("call_id") or call.get("id") or make.token("call_")
            for key, of in (("call_id", ITEMS[kind]), ("call_id", ITEMS[ANSWERS[kind]]), ("approval_request_id", ITEMS[ANSWERS[kind]])):
                if key in [field for field, _, _ in shape(of)[1]]:
                    (call if of is ITEMS[kind] else result)[key] = name
            if kind == "local_shell_call":
                result["id"] = name
            if kind == "function_call":
                call["arguments"] = make.written_arguments()
            if "caller" in [field for field, _, _ in shape(ITEMS[kind])[1]]:
                call.pop("caller", None), result.pop("caller", None)
                program = {"type": "program", "caller_id": make.token("call_")}
                caller(make, program if make.chance(0.15) else {"type": "direct"}, call, result)
            calls.append(call), results.append(result)
        if make.chance(0.3):
            make.rng.shuffle(results)
        messages += calls + results
        if make.chance(0.03):
            messages.append(make(ITEMS["compaction"]))
    return messages


def anthropic(make, block=content_block_param.ContentBlockParam):
    blocks = kinds(block)
    ask = ["text", "image", "document", "search_result", "container_upload"]
    think = [kind for kind in blocks if kind in ("text", "thinking", "redacted_thinking", "fallback", "mcp_tool_listing")]
    server = [name for name in typing.get_args(re_literal(dict((f, h) for f, h, _ in shape(blocks["server_tool_use"])[1])["name"]))]
    messages = [{"role": "user", "content": [make(blocks["text"])]}]
    for _ in range(make.rng.randrange(1, 6)):
        turn = [make(blocks[make.rng.choice(think)]) for _ in range(make.rng.randrange(3))]
        results, program = [], None
        if make.chance(0.4):
            name = make.rng.choice(server)
            use = make(blocks["server_tool_use"], name=name, input=make.arguments())
            program = use["id"] if "code" in name else None
            answer = ("tool_search" if name.startswith("tool_search") else name) + "_tool_result"
            turn += [use] + ([make.result(blocks[answer], tool_use_id=use["id"])] if answer in blocks and make.chance(0.9) else [])
        if "mcp_tool_use" in blocks and make.chance(0.3):
            use = make(blocks["mcp_tool_use"], input=make.arguments())
            turn += [use, make.result(blocks["mcp_tool_result"], tool_use_id=use["id"])]
        for _ in range(make.rng.choice((1, 1, 2, 4))):
            use = make(blocks["tool_use"], input=make.arguments())
            use.pop("caller", None)
            at = {"type": make.rng.choice(("code_execution_20250825", "code_execution_20260120")), "tool_id": program or make.token("srvtoolu_")}
            caller(make, at if make.chance(0.5 if program else 0.05) else {"type": "direct"}, use)
            turn.append(use)
            results.append(make.result(blocks["tool_result"], tool_use_id=use["id"]))
        if "compaction" in blocks and make.chance(0.03):
            turn.insert(0, make(blocks["compaction"]))
        messages.append({"role": "assistant", "content": turn})
        messages.append({"role": "user", "content": results + [make(blocks[make.rng.choice(ask)]) for _ in range(make.rng.choice((0, 0, 1, 2)))]})
        if make.chance(0.1):
            messages.append(make(beta_message_param.BetaSystemMessageParam if "compaction" in blocks else message_param.SystemMessageParam))
    return messages


def gemini(make):
    messages = [{"role": "user", "parts": [make(genai.Part, text=make.text())]}]
    for _ in range(make.rng.randrange(1, 6)):
        signed, turn, results = make.chance(0.3), [], []
        for _ in range(make.rng.randrange(3)):
            field = make.rng.choice(("text", "executableCode", "codeExecutionResult", "toolCall", "toolResponse", "inlineData", "fileData"))
            hint = next(hint for name, hint, _ in shape(genai.Part)[1] if name == field)
            turn.append({field: make(shape(hint)[1][0], field)} | ({"thought": True} if make.chance(0.2) else {}))
        for at in range(make.rng.choice((1, 1, 2, 4))):
            call = make(genai.FunctionCall, args=make.arguments(), name=make.token("f"))
            call.pop("partialArgs", None)
            value = lambda: make.rng.choice((make.text, make.text, make.any))()
            make.long = make.rng.choice((0.02, 0.6, 0.9))
            field = make.rng.choice(("output", "result", "content", "error", "return_value", make.token("k")))
            given = make.rng.choice((lambda: {field: value()}, lambda: {"name": call["name"], "content": value()},
                                     lambda: {make.token("k"): value() for _ in range(make.rng.randrange(4))}))()
            result = make.result(genai.FunctionResponse, name=call["name"], response=given)
            for one in (call, result):
                one.pop("id", None)
            if make.chance(0.6):
                call["id"] = result["id"] = make.token("call_")
            turn.append({"functionCall": call} | ({"thoughtSignature": make.bytes()} if signed and at == 0 else {}))
            results.append({"functionResponse": result})
            if make.chance(0.05):
                results[-1]["partMetadata"] = {"a": make.text()}
        messages += [{"role": "model", "parts": turn}, {"role": make.rng.choice(("user", "function")), "parts": results}]
        if make.chance(0.2):
            messages.append(make(genai.Content))
    return messages


class Form(typing.NamedTuple):
    name: str
    path: str
    key: str            # of the body's list of messages
    params: Any         # the type of the body
    message: Any        # the type of a message
    conversation: Any


def gemini_body():
    """The body that google-genai sends; the SDK has no type for it."""
    return typing_extensions.TypedDict("Body", {"contents": typing_extensions.Required[list[genai.Content]], "tools": list[genai.Tool], "toolConfig": genai.ToolConfig, "cachedContent": str,
                                     "systemInstruction": genai.Content, "safetySettings": list[genai.SafetySetting], "generationConfig": genai.GenerationConfig}, total=False)


FORMS = [
    Form("chat", "/v1/chat/completions", "messages", chat_params.CompletionCreateParams, openai_chat.ChatCompletionMessageParam, chat),
    Form("responses", "/v1/responses", "input", responses_params.ResponseCreateParams, items.ResponseInputItemParam, responses),
    Form("anthropic", "/v1/messages", "messages", message_create_params.MessageCreateParams, message_param.MessageParam, anthropic),
    Form("anthropic-beta", "/v1/messages?beta=true", "messages", beta_params.MessageCreateParams, beta_message_param.BetaMessageParam,
         functools.partial(anthropic, block=beta_content_block_param.BetaContentBlockParam)),
    Form("gemini", "/v1beta/models/m:generateContent", "contents", gemini_body(), genai.Content, gemini),
]


def body_of(form, rng):
    make = Maker(rng)
    params = rng.choice(shape(form.params)[1]) if shape(form.params)[0] == "union" else form.params
    wild = make.chance(0.08)  # any message after any other, with ids that repeat
    if wild:
        make.few_ids, make.long = True, 0.1
        messages = [make(form.message) for _ in range(rng.randrange(1, 12))]
        make.few_ids, make.long = False, 0.02
    else:
        messages = form.conversation(make)
    body = make(params, **{form.key: messages})
    if make.chance(0.97):  # nothing is decided about requests without tools
        tool = {"name": "grep", "parameters": {"type": "object", "properties": {}}}
        own = {"chat": {"type": "function", "function": tool}, "responses": {"type": "function", "strict": None} | tool,
               "gemini": {"functionDeclarations": [{"name": "grep"}]}}
        body["tools"] = [own.get(form.name, {"name": "grep", "input_schema": {"type": "object"}}), *(body.get("tools") or [])]
    for field in ("previous_response_id", "conversation", "thread"):
        if make.chance(0.8):
            body.pop(field, None)  # the history is at the provider
    return body


# ---- What may change --------------------------------------------------------------------------------------------------


def at(value, *keys):
    for key in keys:
        if isinstance(value, list) and isinstance(key, int) and -len(value) <= key < len(value):
            value = value[key]
        elif isinstance(value, dict) and key in value:
            value = value[key]
        else:
            return None
    return value


def slots(form, body):
    """Every result and every call's arguments, as (path, what it is, id, why it may not change or None)."""
    found, hidden = [], -1
    for i, message in enumerate(body[form.key] if isinstance(body[form.key], list) else []):
        if form.name == "chat":
            if message.get("role") in ("tool", "function"):
                found.append(((form.key, i, "content"), "result", message.get("tool_call_id"), None))
            for n, call in enumerate(message.get("tool_calls") or []):
                for field, key in (("function", "arguments"), ("custom", "input")):
                    if field in call:
                        found.append(((form.key, i, "tool_calls", n, field, key), "arguments", call.get("id"), None))
            if message.get("function_call"):
                found.append(((form.key, i, "function_call", "arguments"), "arguments", None, None))
        elif form.name == "responses":
            kind = message.get("type")
            program = "program" if (at(message, "caller", "type") or "direct") != "direct" else None
            key = {"function_call_output": "output", "custom_tool_call_output": "output", "function_call": "arguments", "custom_tool_call": "input"}.get(kind)
            if key:
                found.append(((form.key, i, key), "result" if key == "output" else "arguments", message.get("call_id"), program))
            if kind == "compaction":
                hidden = len(found)
        elif form.name == "gemini":
            parts = message.get("parts") or []
            signed = any(part.get("thoughtSignature") for part in parts)
            for n, part in enumerate(parts):
                if part.get("functionResponse"):
                    found.append(((form.key, i, "parts", n, "functionResponse", "response"), "result", part["functionResponse"].get("id"), None))
                elif part.get("functionCall"):
                    found.append(((form.key, i, "parts", n, "functionCall", "args"), "arguments", part["functionCall"].get("id"), "signed" if signed else None))
        else:
            blocks = message.get("content")
            for n, block in enumerate(blocks if isinstance(blocks, list) else []):
                kind = block.get("type")
                if kind == "tool_use":
                    program = "program" if (at(block, "caller", "type") or "direct") != "direct" else None
                    found.append(((form.key, i, "content", n, "input"), "arguments", block.get("id"), program))
                elif kind == "tool_result":
                    content = block.get("content")
                    loads = isinstance(content, list) and any(part.get("type") == "tool_reference" for part in content)
                    found.append(((form.key, i, "content", n, "content"), "result", block.get("tool_use_id"), "reference" if loads else None))
                elif kind == "compaction" and block.get("content"):
                    hidden = len(found)
    callers = collections.defaultdict(set)
    for _, kind, name, why in found:
        if kind == "arguments":
            callers[name].add(why)
    for n, (path, kind, name, why) in enumerate(found):
        if n < hidden:
            why = why or "before a compaction"
        elif kind == "result" and callers[name] == {"program"}:
            why = "program"
        found[n] = path, kind, name, why
    return found


HINT = re.compile(r'\[offcut/1 (\w+)\S* [^"\n]*?"((?:[^"\\]|\\.)*)"\]')
# Documented: what says how to look at media leaves with them.
UNSTORED = re.compile(r"\.(type|detail|mimeType|mime_type|media_type|displayName|filename|transformations|media(Resolution|Processing)|\w+Metadata)\b")
MARKS = ("cache_control", "prompt_cache_breakpoint")


def strings(value, key=""):
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from strings(inner, key + "." + name if not re.fullmatch(r"[ka][0-9a-f]{14}", name) else key + ".*")
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner, key)


def marks(parts):
    """Cache marks of a result's parts, in order. Providers don't take them from further inside."""
    for part in parts if isinstance(parts, list) else []:
        if isinstance(part, dict) and (mark := part.get("cache_control") or part.get("prompt_cache_breakpoint")):
            yield mark


def parsed(text):
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text


def same_but_strings(old, new):
    if isinstance(old, dict) and isinstance(new, dict):
        return list(old) == list(new) and all(same_but_strings(old[key], new[key]) for key in old)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(same_but_strings, old, new))
    return type(old) is type(new) and (isinstance(old, str) or old == new)


def changed_parts(old, new):
    """Faults of parts that are no texts and are still there: only cache marks may come and go."""
    def others(value):
        media = value[1] if isinstance(value, list) and len(value) == 2 and isinstance(value[1], list) else value
        for part in media if isinstance(media, list) else []:
            if isinstance(part, dict) and part.get("type") not in ("text", "input_text"):
                yield {key: inner for key, inner in part.items() if key not in MARKS}

    now = list(others(new))
    for part in others(old):
        media = {text for key, text in strings(part) if re.search(r"(data|url|file_id|fileUri)$", key)}
        same = [other for other in now if media & {text for _, text in strings(other)}]
        if same and part not in same:
            changed = sorted({key for key in {*part, *same[0]} if part.get(key, "") != same[0].get(key, "")})
            yield f"result: a {part.get('type', 'medium')} that stays has another {', '.join(changed)}"


def compare_slot(kind, old, new):
    """Faults of a replaced value."""
    if type(old) is not type(new):
        yield f"{kind}: {type(old).__name__} became {type(new).__name__}"
        return
    before, after = parsed(old) if kind == "arguments" else old, parsed(new) if kind == "arguments" else new
    if kind == "arguments" and isinstance(before, dict):
        if not isinstance(after, dict) or not (list(after) == ["_cleared"] or same_but_strings(before, after)):
            yield "arguments: more than strings changed"
    if kind == "result" and list(marks(old)):
        if not list(marks(new)):
            yield "result: no cache mark left"
        elif [*marks(old)][-1] not in marks(new):
            yield "result: the last cache mark is lost"
    if kind == "result":
        yield from changed_parts(old, new)
    shown = [text for _, text in strings(after)]
    blob, stored = "\0".join(shown), b""
    for _, location in HINT.findall(blob):
        if location.startswith("https://"):
            continue  # a link that has left, with its address
        try:
            stored += pathlib.Path(json.loads(f'"{location}"')).read_bytes() + b"\0"
        except OSError:
            yield f"{kind}: a hint leads nowhere"
    for key, text in strings(before):
        if len(text) < 8 or UNSTORED.search(key) or text in blob:
            continue
        forms = [text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]]
        if any(form.encode("utf-8", "surrogatepass") in stored for form in forms):
            continue
        try:
            if base64.b64decode(text.rsplit("base64,", 1)[-1], validate=True) in stored:
                continue
        except ValueError:
            pass
        yield f"{kind}{key}: not in the store"


def differences(old, new, path=()):
    if type(old) is not type(new):
        yield path
    elif isinstance(old, dict):
        if list(old) != list(new):
            yield path
        else:
            for key in old:
                yield from differences(old[key], new[key], (*path, key))
    elif isinstance(old, list):
        if len(old) != len(new):
            yield path
        else:
            for n, pair in enumerate(zip(old, new)):
                yield from differences(*pair, (*path, n))
    elif old != new:
        yield path


def starred(path):
    return ".".join("*" if isinstance(step, int) or re.fullmatch(r"[ka][0-9a-f]{14}", step) else step for step in path)


def swap(body, other, path):
    """Puts the value of `other` at a path into `body`. Returns both values, a Gemini response with its media."""
    holder, source = at(body, *path[:-1]), at(other, *path[:-1])
    if not isinstance(holder, dict):
        return None
    if path[-1] == "response":
        was = [holder.get("response"), holder.pop("parts", None)]
        value = [source.get("response"), source.pop("parts", None)]
        if "response" in source:
            holder["response"] = source["response"]
        else:  # media alone
            holder.pop("response", None)
        return value, was
    if path[-1] not in holder or path[-1] not in source:
        return None
    was, value = holder[path[-1]], source[path[-1]]
    holder[path[-1]] = value
    return value, was


ADAPTERS = {}


def accepts(form, body):
    if form.name not in ADAPTERS:
        ADAPTERS[form.name] = pydantic.TypeAdapter(form.params)
    try:
        ADAPTERS[form.name].validate_python(body)
        return True
    except pydantic.ValidationError:
        return False


def compare(form, sent, got):
    """Kinds of differences between the text of a body and of what became of it."""
    try:
        new = json.loads(got)
    except ValueError:
        return {"not JSON"}
    found, old = set(), json.loads(sent)
    if not accepts(form, new) and accepts(form, old):
        found.add("the SDK's types refuse it")
    for path, kind, _, why in slots(form, old):
        whole = path[:-1] if path[-1] == "response" else path
        if at(new, *whole) == at(old, *whole):
            continue
        if why:
            found.add(f"{why}: {starred(path)} changed")
        if pair := swap(new, old, path):
            found.update(f"{starred(path)}: {fault}" for fault in compare_slot(kind, *pair))
    if json.dumps(new) != json.dumps(old):
        found.update(f"{starred(path)} changed" for path in differences(old, new))
        found = found or {"only the spelling or order changed"}
    return found


# ---- Offcut, between this script and a provider that answers with what it gets -------------------------------------------------


class Echo(http.server.BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm, wbufsize = "HTTP/1.1", True, -1

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Offcut:
    SETTINGS = """
preset = "recommended"
max_length_for_trunc = 2000
preview_above = 1200
max_tokens_for_clear = 1500
clear_at_least_tokens = 200
clear_tool_inputs_above = 300
token_counter = "estimate"
backend = "{store}"
[serve]
cut_without_reader = true
[serve.upstreams]
echo = "http://127.0.0.1:{port}"
"""

    def __init__(self, program):
        self.program, self.process, self.folder = program, None, None
        self.provider = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
        threading.Thread(target=self.provider.serve_forever, daemon=True).start()

    def start(self):
        """Starts over with an empty store."""
        self.stop()
        self.folder = tempfile.mkdtemp(prefix="offcut-bodies-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        settings, log = f"{self.folder}/offcut.toml", f"{self.folder}/log"
        with open(settings, "w") as file:
            file.write(self.SETTINGS.format(store=f"{self.folder}/store", port=self.provider.server_port))
        environment = {"HOME": self.folder, "OFFCUT_HOME": f"{self.folder}/home", "PATH": os.environ["PATH"]}
        with open(log, "w") as out:
            arguments = [self.program, "serve", "--listen", "127.0.0.1:0", "--config", settings]
            self.process = subprocess.Popen(arguments, env=environment, stderr=out, stdout=out)
        while not (address := re.search(r"http://127\.0\.0\.1:(\d+)/page", pathlib.Path(log).read_text())):
            time.sleep(0.02)
        self.connection = http.client.HTTPConnection("127.0.0.1", int(address[1]), timeout=60)

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            shutil.rmtree(self.folder)
            self.process = None

    def send(self, form, text):
        self.connection.request("POST", "/echo" + form.path, text.encode(), {"content-type": "application/json"})
        reply = self.connection.getresponse()
        return reply.status, reply.getheader("x-offcut") or "", reply.read().decode()


MORE = {"messages": {"role": "user", "content": "Go on."}, "input": {"role": "user", "content": "Go on."}, "contents": {"role": "user", "parts": [{"text": "Go on."}]}}


def unstable(form, text, first, offcut):
    """Kinds of hints that change when a message is added, to the original and to what was sent."""
    found, body, shown = set(), json.loads(text), json.loads(first)
    if not isinstance(body.get(form.key), list):
        return found
    spelling = {"ensure_ascii": text.isascii(), "separators": (", ", ": ") if re.match(r'{"\w+": ', text) else (",", ":")}
    # A conversation is named by its first call, or by a result before it, so what was sent is another one if either was cleared.
    before = slots(form, body)
    first_call = next((n for n, (_, kind, _, _) in enumerate(before) if kind == "arguments"), 0)
    is_other = any(at(body, *path) != at(shown, *path) for path, *_ in before[: first_call + 1])
    for name, base in (("original", body),) if is_other else (("original", body), ("sent", shown)):
        _, _, got = offcut.send(form, json.dumps(base | {form.key: base[form.key] + [MORE[form.key]]}, **spelling))
        next_ = json.loads(got)
        for path, kind, _, _ in slots(form, shown):
            was, now = json.dumps(at(shown, *path)), json.dumps(at(next_, *path))
            # An old result may be cleared now.
            if was != now and ("[offcut/1" in was and "[offcut/1 cleared" not in now or "[offcut/1 cleared" in was):
                found.add(f"{name} and one more message: the hint at {starred(path)} changed")
    return found


def check(form, text, offcut, again=False):
    """Returns what the server said, and the kinds of differences."""
    status, said, got = offcut.send(form, text)
    if status == 400 and "thread_unsupported_request" in got:
        return "thread", set()
    if status != 200:
        return said, {f"status {status}: {got[:200]}"}
    if said not in ("reduced", "unchanged"):
        return said, {f"x-offcut: {said}"}
    if got == text:
        return said, unstable(form, text, got, offcut) if again else set()
    found = compare(form, text, got)
    return said, found | (unstable(form, text, got, offcut) if again else set())


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("offcut")
    options.add_argument("--count", type=int, default=1000, help="bodies, of all formats together")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--only", type=int, help="number of the one body to try, which is printed")
    given = options.parse_args()
    offcut, begun = Offcut(given.offcut), time.time()
    told, times, examples = collections.Counter(), collections.Counter(), {}
    try:
        for at_, n in enumerate([given.only] if given.only is not None else range(given.count)):
            if at_ % 2000 == 0:
                offcut.start()
            form = FORMS[n % len(FORMS)]
            rng = random.Random(f"{given.seed} {n}")
            body = body_of(form, rng)
            text = json.dumps(body, ensure_ascii=rng.random() < 0.5, separators=rng.choice(((",", ":"), (", ", ": "))))
            said, faults = check(form, text, offcut, again=n // len(FORMS) % 50 == 0)
            if given.only is not None:
                print(text)
            told[form.name, said] += 1
            for fault in faults:
                times[form.name, fault] += 1
                examples.setdefault((form.name, fault), n)
    finally:
        offcut.stop()
    for form in FORMS:
        print(f"{form.name}: { {said: count for (name, said), count in told.items() if name == form.name} }")
    print(f"{time.time() - begun:.0f} s")
    for (name, fault), n in sorted(examples.items()):
        print(f"FAULT {name}: {fault}: {times[name, fault]} bodies, such as --seed {given.seed} --only {n}")
    return bool(examples)


if __name__ == "__main__":
    sys.exit(main())
