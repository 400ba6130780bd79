"""The pages keep the content security policy: no script, style or handler inside the markup, nothing from elsewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEMPLATES = sorted((ROOT / "templates").rglob("*.*"))
STYLES = sorted((ROOT / "static" / "css").rglob("*.css"))
SCRIPTS = sorted((ROOT / "static" / "js").glob("*.js"))

FORBIDDEN = {
    "a style attribute": re.compile(r"\sstyle\s*=", re.IGNORECASE),
    "a style element": re.compile(r"<style\b", re.IGNORECASE),
    "an event handler": re.compile(r"\son[a-z]+\s*=", re.IGNORECASE),
    "an htmx handler": re.compile(r"\shx-on", re.IGNORECASE),
    "a script of its own": re.compile(r"<script(?![^>]*\ssrc=)[^>]*>", re.IGNORECASE),
    "a javascript address": re.compile(r"javascript:", re.IGNORECASE),
    "an evaluated value": re.compile(r"(hx-vals|hx-headers)=.\s*js:", re.IGNORECASE),
    "something from elsewhere": re.compile(
        r"""(?:src|href|action|url\()\s*=?\s*["'(]?\s*(?:https?:)?//""", re.IGNORECASE
    ),
    "markup that is not escaped": re.compile(r"\|\s*safe\b|autoescape\s+off"),
}


def name(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_template_holds(what):
    assert TEMPLATES
    assert [name(path) for path in TEMPLATES if FORBIDDEN[what].search(path.read_text())] == []


@pytest.mark.parametrize(
    ("what", "markup"),
    [
        ("a style attribute", '<p style="x">'),
        ("an event handler", '<a onclick="x">'),
        ("a script of its own", "<script>x</script>"),
        ("something from elsewhere", '<link href="//cdn/x.css">'),
    ],
)
def test_the_patterns_see_what_they_forbid(what, markup):
    assert FORBIDDEN[what].search(markup)


@pytest.mark.parametrize("path", STYLES, ids=name)
def test_styles_load_nothing_from_elsewhere_and_select_no_ids(path):
    text = path.read_text()
    assert not re.search(r"@import|url\(\s*[\"']?(?:https?:)?//", text)
    selectors = re.findall(r"([^{}]+)\{", text)
    assert not [it for it in selectors if re.search(r"#[a-z]", it)]


@pytest.mark.parametrize("path", STYLES, ids=name)
def test_colours_are_tokens(path):
    if path.name != "tokens.css":
        assert not re.search(r"#[0-9a-f]{3,8}\b|\brgba?\(|\bhsla?\(", path.read_text())


@pytest.mark.parametrize("path", SCRIPTS, ids=name)
def test_scripts_make_no_markup(path):
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|\.style\b", path.read_text())


@pytest.mark.parametrize("kind", ["inter", "jetbrains-mono"])
def test_fonts_are_small_and_carry_their_licence(kind):
    folder = ROOT / "static" / "fonts"
    assert (folder / f"{kind}.woff2").stat().st_size < 60_000
    assert "SIL Open Font License" in (folder / f"{kind}-LICENSE.txt").read_text()


def test_htmx_carries_its_licence():
    folder = ROOT / "static" / "vendor"
    assert (folder / "htmx.min.js").exists()
    assert "Zero-Clause BSD" in (folder / "htmx-LICENSE.txt").read_text()
