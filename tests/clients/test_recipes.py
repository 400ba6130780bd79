"""The recipes of docs/clients.md, run as they are written, with the real clients."""

import json
import re

import pytest
import yaml

from tests.clients.conftest import ROOT

_PAGE = (ROOT / "docs" / "clients.md").read_text()
_ANSWER = "27 days"
#: How many times a recipe prints the answer that it got, where it asks in several ways.
_TIMES = {"openai-python": 3, "openai-node": 2, "Vercel AI SDK": 2, "LangChain": 2, "LlamaIndex": 2}
#: What recipes print that neither ask a question nor search.
_OTHER = {
    "BEIR": r"leave-and-absence\.md .*'NDCG@1': 1\.0",
    "ir_datasets": r"P@1: 1\.0",
    "Cohere": "Annual leave is 27 days",
    "promptfoo": "1 passed",
}
_COMMANDS = {
    "python": ("recipe.py", ["python", "recipe.py"]),
    "js": ("recipe.mjs", ["node", "recipe.mjs"]),
    "sh": ("recipe.sh", ["bash", "-e", "recipe.sh"]),
    "yaml": ("promptfooconfig.yaml", ["promptfoo", "eval", "--no-cache", "--no-write"]),
}
_ON_NODE = {"openai-node", "Vercel AI SDK", "promptfoo", "MCP Inspector"}
_WITH_OPENAI_2 = {"LlamaIndex", "RAGAS"}


def sections(heading):
    """Return the language and the code of each section below a heading, by its own heading."""
    part = _PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    parts = re.findall(r"^### (.+?)\n(.*?)(?=^### |\Z)", part, re.MULTILINE | re.DOTALL)
    return {name: re.search(r"```(\w+)\n(.*?)```", text, re.DOTALL).groups() for name, text in parts}


RECIPES = sections("Recipes")
SETTINGS = sections("Settings of applications")


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_gets_the_answer_and_its_source(name, run, tmp_path, request):
    if name in _ON_NODE:
        request.getfixturevalue("node")
    language, code = RECIPES[name]
    file, command = _COMMANDS[language]
    (tmp_path / file).write_text(code)
    printed = run(*command, environment="openai2" if name in _WITH_OPENAI_2 else "python")
    if name in _OTHER:
        assert re.search(_OTHER[name], printed)
    else:
        assert printed.count(_ANSWER) >= _TIMES.get(name, 1), printed
        assert re.search(r"Leave and absence|leave-and-absence\.md|\[1\]", printed), printed
    if "embeddings" in code.lower():
        assert "dimensions: 384" in printed


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_can_be_read(name):
    language, written = SETTINGS[name]
    if language == "sh":
        assert "http://localhost:8000" in written
    else:
        assert {"json": json.loads, "yaml": yaml.safe_load}[language](written)
