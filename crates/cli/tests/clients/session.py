"""What all sessions in Python share: the prompts, the tools, and a program's patience with errors."""

import json
import sys

ASKED = ["First task: look up the tables.", "Second task: look up more of them."]

ROWS = [40, 400, 900, 2500]

DEFINITIONS = [
    {
        "name": "fetch",
        "description": "Fetches a table.",
        "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    },
    {
        "name": "read_file",
        "description": "Reads lines of a file.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "offset": {"type": "integer"}, "limit": {"type": "integer"}},
            "required": ["path"],
        },
    },
]


def fetch(n):
    states = ["open", "closed", "waiting"]
    rows = range(ROWS[n % 4])
    return "".join(f"row {row} of table {n}: item-{(row * 7919 + n * 31) % 10007} is {states[row % 3]}\n" for row in rows)


def run(name, arguments):
    """Runs a call of the model."""
    if name == "fetch":
        return fetch(int(arguments["n"]))
    with open(arguments["path"]) as file:
        lines = file.readlines()
    start = int(arguments.get("offset", 1)) - 1
    return "".join(lines[start : start + int(arguments.get("limit", 200))])


def again(turn):
    """Tries a turn of the model again that the SDK itself has given up."""
    for _ in range(4):
        try:
            return turn()
        except Exception as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            failed = error
    raise failed


def say(answers):
    print(json.dumps(list(answers)))
