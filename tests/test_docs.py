"""The documentation says what the code has."""

import re
from pathlib import Path

import pytest

from retrieval.management.commands.tunables import tunables_table
from retrieval.presets import PRESETS
from retrieval.stages import __all__ as stage_names

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


@pytest.mark.parametrize("name", PRESETS)
def test_the_tunables_tables_are_current(name):
    assert tunables_table(PRESETS[name].defaults) in (DOCS / "configuration.md").read_text()


def test_every_environment_variable_is_documented():
    read = re.findall(r'env_\w+\(\s*"([A-Z_]+)"', (ROOT / "corecube" / "settings.py").read_text())
    documented = (DOCS / "configuration.md").read_text()
    assert read
    assert [name for name in read if f"`{name}`" not in documented] == []


@pytest.mark.parametrize("name", stage_names)
def test_every_stage_is_described(name):
    import retrieval.stages

    assert f"| `{getattr(retrieval.stages, name).name}` |" in (DOCS / "architecture.md").read_text()


def test_every_dependency_has_its_need():
    declared = re.search(r"\ndependencies = \[(.*?)\n\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL)
    names = re.findall(r'"([a-z0-9-]+)', declared.group(1))
    described = (DOCS / "dependencies.md").read_text()
    assert [name for name in names if name not in described] == []


def test_links_between_pages_lead_somewhere():
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
