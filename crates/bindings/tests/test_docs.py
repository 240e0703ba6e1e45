"""The examples of the page for Python, as they stand there, against a provider on loopback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from provider import Provider

PAGE = (Path(os.environ["OFFCUT_PAGES"]) / "python.md").read_text()
README = (Path(os.environ["OFFCUT_PAGES"]).parent / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_has_its_examples():
    assert len(BLOCKS) == 5


def test_the_readme_s_block_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [block] = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    call = {"id": "call_1", "type": "function", "function": {"name": "grep", "arguments": "{}"}}
    names = {"my_tools": [], "messages": [{"role": "user", "content": "go"}], "call": call, "run": lambda call: "fine"}
    exec(block, names)
    assert names["messages"][-1]["content"] == "fine" and len(names["tools"]) == 1


@pytest.mark.parametrize("nth", range(5))
def test_an_example_runs(tmp_path, monkeypatch, nth):
    wanted = re.findall(r"^(?:import|from) (\w+)", BLOCKS[nth], re.MULTILINE)
    if missing := [name for name in wanted if find_spec(name) is None]:
        pytest.skip(f"without {missing}")
    provider = Provider()
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.setenv(name, f"{provider.url}/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "a key")
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    (tmp_path / "example.py").write_text(BLOCKS[nth])
    ran = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert "the leak is in pool.rs" in ran.stdout, ran.stdout + ran.stderr
    provider.check(ran.stdout)
