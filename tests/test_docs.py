"""The documentation says what the code has."""

import ast
import re
import tomllib
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from retrieval.management.commands.docs import generated, updated
from retrieval.management.commands.tunables import tunables_table
from retrieval.presets.catalog import TUNED
from retrieval.presets.stage_catalog import ABOUT

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


@pytest.mark.parametrize("name", TUNED)
def test_the_tunables_tables_are_current(name):
    assert tunables_table(TUNED[name].defaults) in (DOCS / "configuration.md").read_text()


def test_every_environment_variable_is_documented():
    read = re.findall(r'\benv\.\w+\(\s*"([A-Z0-9_]+)"', (ROOT / "corecube" / "settings.py").read_text())
    documented = (DOCS / "configuration.md").read_text()
    assert read
    assert [name for name in read if f"`{name}`" not in documented] == []


#: Defaults that the page says in words, and what the settings have for them.
_IN_WORDS = {
    "none": ("", 0),
    "all": (0,),
    "no limit": (0,),
    "published": ("",),
    "the provider's": ("",),
    "the same": ("",),
    "the address of the request": ("",),
    "8000, or the next free one": (0,),
    "": ("", 0),
    "on": (True,),
    "yes": (True,),
    "no": (False,),
}
#: Variables without which the start makes something by itself, which the page describes.
_MADE_AT_START = {"DATABASE_URL", "REDIS_URL", "CORECUBE_REDIS_URL", "SECRET_KEY"}


def settings_defaults():
    """Return the defaults that `corecube/settings.py` writes as plain values, by the variable's name or its end."""
    found = {}
    for node in ast.walk(ast.parse((ROOT / "corecube" / "settings.py").read_text())):
        if isinstance(node, ast.Call) and re.match(
            r"env\.(?!usable_folder|secret_key|file_queue|folder_roots)", ast.unparse(node.func)
        ):
            name = {"name": "CORECUBE_EMBEDDER"}.get(it := ast.unparse(node.args[0]), it)
            name = name.strip("'f\"").replace("{name}", "…")
            given = [it.value for it in node.keywords if it.arg == "default"] or node.args[1:2]
            expression = ast.unparse(given[0]) if given else "''"
            if not re.search(r"[A-Z]|\w\(", expression):
                found[name] = eval(expression)
    return found


def documented_defaults():
    """Yield each variable of the tables with its default; two variables of one row have two defaults."""
    rows = re.findall(r"^\| (`[^|]+`) \|([^|]*)\| ", (DOCS / "configuration.md").read_text(), re.MULTILINE)
    for names, written in rows:
        defaults = written.strip()
        listed = re.findall(r"`([A-Z0-9_…]+)`", names)
        shared = [defaults] if len(listed) == 1 or defaults in _IN_WORDS else defaults.split(", ")
        yield from zip(listed, shared * len(listed) if len(shared) == 1 else shared, strict=True)


def test_the_documented_defaults_are_those_of_the_settings():
    settings, documented = settings_defaults(), dict(documented_defaults())
    assert len(settings) > 60
    differing = {}
    for name in settings.keys() - _MADE_AT_START:
        default, said = settings[name], documented[name].strip("`")
        written = f"{default:g}" if isinstance(default, float) else default
        if default not in _IN_WORDS.get(said, ()) and str(written) != said:
            differing[name] = (default, said)
    assert differing == {}


@pytest.mark.parametrize("name", ABOUT)
def test_every_stage_is_described(name):
    assert f"| `{name}` |" in (DOCS / "stages.md").read_text()


def test_the_generated_tables_are_current():
    assert [
        page.name for page, text in generated().items() if page.read_text() != updated(page.read_text(), text)
    ] == []


def test_every_dependency_has_its_need_and_no_other_package_is_described():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    declared = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    names = {re.match("[a-z0-9-]+", requirement)[0] for requirement in declared}
    rows = re.findall(r"^\| (.+?) \| .+ \|$", (DOCS / "dependencies.md").read_text(), re.MULTILINE)
    described = [name for row in rows for name in row.split(", ") if name not in {"package", "---"}]
    assert sorted(described) == sorted(names)


#: The pages that people read.
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("retrieval/presets/*/README.md")])


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_links_to_headings_lead_somewhere():
    for page in PAGES:
        for target, heading in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text()):
            text = (page.parent / target).read_text() if target else page.read_text()
            headings = {
                re.sub(r"[^\w -]", "", it).lower().replace(" ", "-")
                for it in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
            }
            assert heading in headings, f"{page.name}: {target}#{heading}"


def test_git_holds_the_pictures_that_a_page_shows():
    shown = {name for page in PAGES for name in re.findall(r"screenshots/([\w-]+\.png)", page.read_text())}
    held = set(re.findall(r"^!/docs/screenshots/(.+)$", (ROOT / ".gitignore").read_text(), re.MULTILINE))
    assert shown
    assert shown == held


def test_files_that_a_page_names_exist():
    # The examples of extending.md name files that they add; names in capitals stand for others.
    named = {
        path
        for page in PAGES
        if page.name != "extending.md"
        for path in re.findall(
            r"`((?:corecube|retrieval|explorer|templates|static|tests|docs)/[\w./-]+)`", page.read_text()
        )
        if not re.search(r"[A-Z]{3}", path.replace("README", ""))
    }
    assert len(named) > 20
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_every_package_of_the_engine_has_its_line():
    packages = {path.parent.name for path in (ROOT / "retrieval").glob("*/__init__.py")}
    _, _, engine = (DOCS / "architecture.md").read_text().partition("### `retrieval`")
    rows = re.findall(r"^\| (`[a-z]+/`.*?) \|", engine.partition("### `explorer`")[0], re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([a-z]+)/`", row)} == packages - {"migrations"}


def test_the_constant_of_rank_fusion_is_in_one_place():
    written = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "retrieval").rglob("*.py")
        if re.search(r"(?i)rank_constant\b[^=\n]*=\s*(?:tunable\()?\d", path.read_text())
    }
    assert written == {"retrieval/stages/fuse.py"}


def test_every_page_is_in_the_navigation():
    listed = set(re.findall(r"^[\w/-]+$", (DOCS / "index.md").read_text(), re.MULTILINE))
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")}
    assert {it for it in pages if not re.match(r"decisions/\d", it)} - {"index"} == listed


def options_of(parser):
    """Yield the options of a command and of its subcommands."""
    for action in parser._actions:
        yield from action.option_strings
        for command in action.choices.values() if isinstance(action.choices, dict) else ():
            yield from options_of(command)


def test_commands_that_a_page_names_exist_with_their_options():
    known, unknown = get_commands(), []
    pages = [page for page in PAGES if page.parent.name != "decisions" and page.name != "CHANGELOG.md"]
    named = {it for page in pages for it in re.findall(r"manage\.py ([a-z][a-z0-9_]+)([^`\n|#]*)", page.read_text())}
    for name, rest in sorted(named):
        if name not in known:
            unknown.append(name)
            continue
        parser = load_command_class(known[name], name).create_parser("manage.py", name)
        options = set(options_of(parser))
        unknown += [
            f"{name} {option}" for option in re.findall(r"(?<!\S)\[?(--[a-z-]+)", rest) if option not in options
        ]
    assert len(named) > 50
    assert unknown == []
