"""Reduces request bodies made from the types of the official SDKs, with every field that they know, and checks that
what they accept before they accept after, that what a program reads stays, and that nothing else changes than
results and arguments.

    bodies.py OFFCUT [--count N] [--seed S]      needs openai, anthropic and google-genai
"""

import argparse
import base64
import collections
import collections.abc
import json
import multiprocessing
import random
import re
import subprocess
import tempfile
import types
import typing

import pydantic
import typing_extensions as te
from anthropic.types import beta as claude
from google.genai import types as gemini
from openai.types import chat, responses

SETTINGS = 'preset = "recommended"\ntoken_counter = "estimate"\nmax_length_for_trunc = 2000\npreview_length = 300\nmax_tokens_for_clear = 1500\nclear_at_least_tokens = 0\n'


class Maker:
    """Makes values of a type."""

    def __init__(self, rng):
        self.rng, self.ids = rng, 0

    def id(self):
        self.ids += 1
        return f"call_{self.ids:04}a{self.rng.randrange(10**6)}"

    def text(self, lines=3):
        return "\n".join(f"{n} line {self.rng.randrange(10**6)} of src/part_{n}.rs" for n in range(lines))

    def make(self, kind, depth=0, name=""):
        rng, origin, args = self.rng, te.get_origin(kind), te.get_args(kind)
        if origin in (te.Required, te.NotRequired, te.Annotated):
            return self.make(args[0], depth, name)
        if origin in (typing.Union, types.UnionType):
            simple = [one for one in args if depth < 7 or not has_fields(one)]
            return self.make(rng.choice(simple or args), depth, name)
        if origin is te.Literal:
            return rng.choice(args)
        if origin in (list, collections.abc.Iterable, collections.abc.Sequence, tuple):
            count = 0 if depth > 6 else rng.choice((1, 1, 2, 3))
            return [self.make(args[0], depth + 1, name) for _ in range(count)]
        if origin in (dict, collections.abc.Mapping):
            return {f"k{n}": self.make(args[1], depth + 1) for n in range(rng.randrange(3))}
        if te.is_typeddict(kind):
            hints = te.get_type_hints(kind, include_extras=True)
            wanted = [key for key, hint in hints.items() if is_required(kind, hint) or depth < 6 and rng.random() < 0.35]
            return {key: self.make(hints[key], depth + 1, key) for key in wanted}
        if kind is str:
            if "data" in name or name in ("signature", "encrypted_content"):
                return base64.b64encode(rng.randbytes(60)).decode()
            if "url" in name or name == "uri":
                return f"https://example.org/{rng.randrange(10**6)}"
            return self.text(rng.choice((1, 1, 2))) if name in ("text", "content", "output") else f"{name}-{rng.randrange(100)}"
        if kind in (int, float):
            return rng.randrange(1, 9)
        if kind is bool:
            return rng.random() < 0.5
        return None if kind in (type(None), None) else {"a": rng.randrange(9)}


def is_required(kind, hint):
    # The set of required keys that Python has is wrong where annotations are strings.
    return te.get_origin(hint) is te.Required or kind.__total__ and te.get_origin(hint) is not te.NotRequired


def has_fields(kind):
    return te.is_typeddict(kind) or te.get_origin(kind) in (list, collections.abc.Iterable, dict)


def kinds(union):
    """The members of a union by the value of their field `type`."""
    members = {}
    for member in te.get_args(union):
        if te.is_typeddict(member):
            literal = te.get_type_hints(member).get("type")
            for value in te.get_args(literal) if te.get_origin(literal) is te.Literal else ():
                members.setdefault(value, member)
    return members


def long(maker):
    return maker.text(maker.rng.choice((3, 60, 300)))


def chat_body(maker):
    rng, messages = maker.rng, [{"role": "user", "content": "go"}]
    for _ in range(rng.randrange(2, 7)):
        turn = maker.make(chat.ChatCompletionAssistantMessageParam)
        turn.update(role="assistant", tool_calls=[])
        answers = []
        for _ in range(rng.choice((1, 1, 2))):
            call = maker.make(rng.choice((chat.ChatCompletionMessageFunctionToolCallParam, chat.ChatCompletionMessageCustomToolCallParam)))
            call["id"] = maker.id()
            if "function" in call:
                call["function"]["arguments"] = json.dumps({"path": "a", "text": long(maker)})
            answer = maker.make(chat.ChatCompletionToolMessageParam)
            answer["tool_call_id"] = call["id"]
            parts = isinstance(answer["content"], list)
            answer["content"] = [{"type": "text", "text": long(maker)} for _ in range(2)] if parts else long(maker)
            turn["tool_calls"].append(call)
            answers.append(answer)
        messages += [turn, *answers]
        if rng.random() < 0.3:
            messages.append(maker.make(chat.ChatCompletionUserMessageParam))
    return {"model": "m", "messages": [*messages, {"role": "assistant", "content": "ok"}], "tools": [READER["chat"]]}


ITEMS = kinds(responses.ResponseInputItemParam)
PAIRS = [(one, one + "_output") for one in ITEMS if one + "_output" in ITEMS]


def responses_body(maker):
    rng, items = maker.rng, [{"role": "user", "content": "go"}]
    for _ in range(rng.randrange(3, 9)):
        if rng.random() < 0.7:
            call, output = (maker.make(ITEMS[kind]) for kind in rng.choice(PAIRS))
            call["call_id"] = output["call_id"] = maker.id()
            if "caller" in call and "caller" in te.get_type_hints(ITEMS[output["type"]]):
                output["caller"] = call["caller"]
            else:
                output.pop("caller", None)
            if isinstance(call.get("arguments"), str):
                call["arguments"] = json.dumps({"text": long(maker)})
            if rng.random() < 0.5 and call["type"] in ("function_call", "custom_tool_call"):
                output["output"] = long(maker)
            for part in output["output"] if isinstance(output.get("output"), list) else ():
                part.update({key: long(maker) for key in ("text", "stdout") if isinstance(part.get(key), str)})
            items += [call, output]
        else:
            items.append(maker.make(ITEMS[rng.choice(list(ITEMS))]))
    return {"model": "m", "input": [*items, {"role": "assistant", "content": "ok"}], "tools": [READER["responses"]]}


BLOCKS = kinds(claude.BetaContentBlockParam)


def claude_body(maker):
    rng, messages = maker.rng, [{"role": "user", "content": "go"}]
    ours = [kind for kind in BLOCKS if kind not in ("tool_use", "tool_result")]
    for _ in range(rng.randrange(2, 7)):
        call, answer = maker.make(BLOCKS["tool_use"]), maker.make(BLOCKS["tool_result"])
        call["id"] = answer["tool_use_id"] = maker.id()
        call["input"] = {"path": "a", "text": long(maker)}
        if rng.random() < 0.5:
            answer["content"] = long(maker)
        for part in answer.get("content") or ():
            if isinstance(part, dict) and part.get("type") == "text":
                part["text"] = long(maker)
        beside = [maker.make(BLOCKS[rng.choice(ours)]) for _ in range(rng.randrange(2))]
        messages += [{"role": "assistant", "content": [*beside, call]}, {"role": "user", "content": [answer]}]
    return {"model": "m", "max_tokens": 9, "messages": [*messages, {"role": "assistant", "content": "ok"}], "tools": [READER["claude"]]}


def gemini_body(maker):
    rng, contents = maker.rng, [{"role": "user", "parts": [{"text": "go"}]}]
    for _ in range(rng.randrange(2, 7)):
        call = {"name": "f", "args": {"text": long(maker)}, **({"id": maker.id()} if rng.random() < 0.5 else {})}
        key = rng.choice(("output", "result", "content", "error", "return_value"))
        response = {key: long(maker)} if rng.random() < 0.7 else {key: long(maker), "exit_code": 0, "more": [1, None]}
        answer = {**{k: call[k] for k in ("id", "name") if k in call}, "response": response}
        if rng.random() < 0.2:
            answer["parts"] = [{"inlineData": {"mimeType": "image/png", "data": base64.b64encode(rng.randbytes(90)).decode()}}]
        extra = {"thoughtSignature": "c2ln"} if rng.random() < 0.3 else {}
        contents += [{"role": "model", "parts": [{"text": "hm", "thought": True}, {"functionCall": call, **extra}]}, {"role": "user", "parts": [{"functionResponse": answer}]}]
    return {"contents": [*contents, {"role": "model", "parts": [{"text": "ok"}]}], "tools": [{"functionDeclarations": [READER["gemini"]]}]}


SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}, "pattern": {"type": "string"}}}
READER = {
    "chat": {"type": "function", "function": {"name": "read_file", "parameters": SCHEMA}},
    "responses": {"type": "function", "name": "read_file", "parameters": SCHEMA, "strict": False},
    "claude": {"name": "read_file", "input_schema": SCHEMA},
    "gemini": {"name": "read_file", "parameters": SCHEMA},
}
CHECKS = {
    "chat": (chat_body, "messages", pydantic.TypeAdapter(list[chat.ChatCompletionMessageParam])),
    "responses": (responses_body, "input", pydantic.TypeAdapter(responses.ResponseInputParam)),
    "claude": (claude_body, "messages", pydantic.TypeAdapter(list[claude.BetaMessageParam])),
    "gemini": (gemini_body, "contents", pydantic.TypeAdapter(list[gemini.Content])),
}
# The places that may change: results and arguments.
MAY_CHANGE = {
    "chat": r"/\*/content(/.*)?|/\*/tool_calls/\*/(function/arguments|custom/input)",
    "responses": r"/\*/(output|arguments|input|result|error)(/.*)?",
    "claude": r"/\*/content/\*/(content|input)(/.*)?",
    "gemini": r"/\*/parts/\*/(functionResponse/(response|parts)|functionCall/args)(/.*)?",
}


def differences(one, other, path=""):
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            yield from differences(one.get(key), other.get(key), f"{path}/{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for first, second in zip(one, other):
            yield from differences(first, second, f"{path}/*")
    elif one != other:
        yield path


def goes_to_program(value):
    """True if a program called for this result or made this call."""
    caller = value.get("caller") if isinstance(value, dict) else None
    return isinstance(caller, dict) and caller.get("type") not in (None, "direct")


def for_programs(messages):
    calls = [one for message in messages for one in [message, *parts_of(message)] if goes_to_program(one)]
    ids = {call.get("id") or call.get("call_id") for call in calls} - {None}
    for message in messages:
        for one in [message, *parts_of(message)]:
            if isinstance(one, dict) and (goes_to_program(one) or (one.get("tool_use_id") or one.get("call_id")) in ids):
                yield one


def parts_of(message):
    content = message.get("content")
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def is_valid(adapter, messages):
    try:
        adapter.validate_python(messages)
        return True
    except pydantic.ValidationError:
        return False


def check(job):
    """The faults of one body, and whether it was changed."""
    offcut, settings, store, name, seed = job
    make, field, adapter = CHECKS[name]
    body = make(Maker(random.Random(seed)))
    command = [offcut, "reduce", "--config", settings, "--backend", f"{store}/{name}-{seed}"]
    done = subprocess.run(command, input=json.dumps(body), capture_output=True, text=True)
    if done.returncode:
        return name, seed, True, [f"exit code {done.returncode}: {done.stderr[:200]}"]
    before, after = body[field], json.loads(done.stdout)[field]
    faults = [f"changed: {path}" for path in differences(before, after) if not re.fullmatch(MAY_CHANGE[name], path)]
    if is_valid(adapter, before) and not is_valid(adapter, after):
        faults.append("the SDK's types refuse it afterwards")
    if list(for_programs(before)) != list(for_programs(after)):
        faults.append("what a program reads was changed")
    return name, seed, before != after, faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("offcut")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    tried, changed, faults = collections.Counter(), collections.Counter(), collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, multiprocessing.Pool() as pool:
        settings = f"{folder}/settings.toml"
        with open(settings, "w") as file:
            file.write(SETTINGS)
        names = list(CHECKS)
        jobs = ((args.offcut, settings, folder, names[n % len(names)], args.seed + n) for n in range(args.count))
        for name, seed, is_changed, found in pool.imap_unordered(check, jobs, chunksize=16):
            tried[name] += 1
            changed[name] += is_changed
            for fault in found:
                faults[name, fault].append(seed)
    for name in tried:
        print(f"{name}: {tried[name]} bodies, {changed[name]} changed")
    for (name, fault), seeds in sorted(faults.items()):
        print(f"FAULT {name}: {fault}: {len(seeds)} bodies, such as that of seed {min(seeds)}")
    raise SystemExit(bool(faults))


if __name__ == "__main__":
    main()
