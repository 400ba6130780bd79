"""Whatever shows a preset's numbers shows those that the preset runs with."""

import re
from dataclasses import fields, is_dataclass
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from lxml import html

from corecube.models import ApiKey
from retrieval.engine.tunables import Tunables
from retrieval.models import PresetVersion, SearchRecord
from retrieval.presets.catalog import PRESETS, TUNED
from retrieval.search import runtime

CONFIGURATION = Path(__file__).parents[3] / "docs" / "configuration.md"
#: Of a version in which they are not the default.
CHANGED = {"deadline_ms": 1234, "query.retrieval_characters": 333}


def configs_in(part):
    """Yield every config that a stage, or a stage within it, holds."""
    if isinstance(part, Tunables):
        yield part
    elif isinstance(part, tuple):
        for inner in part:
            yield from configs_in(inner)
    elif is_dataclass(part):
        for item in fields(part):
            yield from configs_in(getattr(part, item.name))


def numbers_below(config, name=""):
    """Yield the dotted name and value of each number, read from the configs themselves."""
    for item in fields(config):
        value = getattr(config, item.name)
        if isinstance(value, Tunables):
            yield from numbers_below(value, f"{name}{item.name}.")
        elif not isinstance(value, str) and f"{name}{item.name}" not in config.unused:
            yield f"{name}{item.name}", value


def run_with(preset):
    """Return a preset's numbers by dotted name; the stages of its built pipeline hold these and no others."""
    pipeline = preset.build(preset.defaults, runtime.resources())
    held = [it for stage in pipeline.stages for it in configs_in(stage)]
    own = [preset.defaults, *(inner for _, inner in preset.defaults.nested())]
    assert len(held) > 5
    assert [it for it in held if not any(it is inner for inner in own)] == []
    unused = type(preset.defaults).unused
    return {name: value for name, value in numbers_below(preset.defaults) if name not in unused}


def in_table(text):
    """Return the defaults of a Markdown table by name."""
    rows = re.findall(r"^\| `([a-z0-9_.]+)` \| (-?[\d.e+]+)", text, re.MULTILINE)
    return {name: float(value) for name, value in rows}


@pytest.fixture(params=TUNED)
def preset(request, world):
    return TUNED[request.param]


@pytest.fixture(params=["shipped", "another version is live"])
def live(request, preset):
    """Return what is live besides the defaults."""
    if request.param == "shipped":
        return {}
    PresetVersion.objects.create(preset=preset.name, number=1, status="live", values=CHANGED)
    return CHANGED


def test_the_command_prints_them(preset, live):
    out = StringIO()
    call_command("tunables", preset=preset.name, stdout=out)
    assert in_table(out.getvalue()) == run_with(preset)


def test_the_documentation_lists_them(preset):
    chapter = re.search(rf"^### `{preset.name}`$(.*?)^##", CONFIGURATION.read_text(), re.DOTALL | re.MULTILINE)
    assert in_table(chapter.group(1)) == run_with(preset)


def test_the_api_lists_them_beside_what_is_live(preset, live, client, world):
    secret = ApiKey.issue(user=world.alice, name="test")[1]
    presets = client.get("/api/v1/presets", headers={"Authorization": f"Bearer {secret}"}).json()["presets"]
    (listed,) = (it["tunables"] for it in presets if it["name"] == preset.name)
    assert {it["name"]: it["default"] for it in listed} == run_with(preset)
    assert {it["name"]: it["value"] for it in listed} == run_with(preset) | live


def test_the_page_shows_them_beside_what_is_live(preset, live, client, world):
    client.force_login(world.alice)
    page = html.fromstring(client.get(f"/presets/{preset.name}/").content)
    rows = {row.find_class("tunable-key")[0].text_content(): row for row in page.find_class("tunable")}
    limits = {name: row.find_class("tunable-limits")[0].text_content() for name, row in rows.items()}
    shown = {name: float(re.match(r"default (-?[\d.,e+]+),", it)[1].replace(",", "")) for name, it in limits.items()}
    assert shown == run_with(preset)
    assert {name: float(row.xpath("string(.//input/@value)")) for name, row in rows.items()} == shown | live


def test_a_search_is_logged_with_them(preset, live, client, world):
    client.force_login(world.alice)
    client.get("/", {"q": "rollback", "preset": preset.name})
    assert SearchRecord.objects.get().trace.get("values", {}) == live


def test_what_the_api_describes_in_words_is_so(client):
    text = client.get("/api/openapi.json").content.decode()
    for characters in re.findall(r"the first ([\d,]+) characters", text):
        assert {it.defaults.query.retrieval_characters for it in PRESETS.values()} == {int(characters)}
    (chunks,) = set(re.findall(r"section with fewer than (\d+) chunks", text))
    assert PRESETS["consolidated"].defaults.retry.below == int(chunks)
