import pytest
from hypothesis import given
from hypothesis import strategies as st

from corecube.connectors.globs import Globs
from corecube.errors import ConfigError

PATHS = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8), min_size=1
).map("/".join)


@pytest.mark.parametrize(
    ("pattern", "fits", "misses"),
    [
        ("*.md", ["a.md", "docs/a.md"], ["a.mdx", "a.md.txt"]),
        ("/*.md", ["a.md"], ["docs/a.md"]),
        ("docs/", ["docs/a", "docs/b/c", "x/docs/a"], ["docs"]),
        ("/docs/**", ["docs/a", "docs/b/c"], ["x/docs/a", "docs-old/a"]),
        ("docs/**/*.md", ["docs/a.md", "docs/b/c/d.md"], ["a.md", "docs/a.txt"]),
        ("a?c", ["abc", "x/abc"], ["ac", "a/c"]),
        ("[ab].md", ["a.md", "b.md"], ["c.md"]),
        ("notes", ["notes", "notes/a", "x/notes/b"], ["mynotes"]),
        ("**/b/**/c", ["b/c", "a/b/x/y/c"], ["c", "b"]),
        ("a/**/**/b", ["a/b", "a/x/b"], ["b"]),
        ("*.M[dD]", ["a.Md"], ["a.md"]),
        ("docs/*", ["docs/a", "docs/b/c"], ["docs"]),
        ("a[!b]c", ["axc", "a\nc"], ["abc", "a/c"]),
        ("[!]]", ["a"], ["]", "aa"]),
        ("#a", ["#a", "x/#a"], ["a"]),
        ("a[b", ["a[b"], ["ab"]),
        ("docs//a", ["docs/a", "docs//a"], ["a"]),
    ],
)
def test_patterns_read_as_in_a_gitignore(pattern, fits, misses):
    globs = Globs(include=(pattern,))
    assert [path for path in fits + misses if globs.includes(path)] == fits


def test_what_is_included_can_be_excluded_and_without_an_include_all_is_wanted():
    globs = Globs(include=("docs/",), exclude=("*.tmp",))
    assert globs.includes("docs/a.md")
    assert not globs.includes("docs/a.tmp")
    assert not globs.includes("a.md")
    assert Globs(exclude=("*.tmp",)).includes("a.md")


def test_a_later_pattern_takes_back_what_an_earlier_one_said():
    globs = Globs(include=("*.md", "!old.md"))
    assert (globs.includes("a/new.md"), globs.includes("a/old.md")) == (True, False)


@given(PATHS)
def test_without_patterns_everything_is_wanted_and_two_stars_fit_everything(path):
    assert Globs().includes(path)
    assert Globs(include=("**",)).includes(path)
    assert not Globs(exclude=("**",)).includes(path)


@pytest.mark.parametrize(
    "patterns", [("",), ("!",), ("/",), ("!/",), (" ",), ("[z-a]",), ("a\0b",), ("x" * 501,), ("a",) * 201]
)
def test_what_is_no_pattern_is_refused(patterns):
    with pytest.raises(ConfigError):
        Globs(include=patterns)


@pytest.mark.timeout(5)
@pytest.mark.parametrize("pattern", ["*a" * 200 + "b", "**/*a/" * 60 + "b", "*" + "?" * 400 + "b"])
def test_a_pattern_made_to_take_long_is_quick(pattern):
    globs = Globs(include=(pattern,))
    assert not globs.includes("a" * 3000)
    assert not globs.includes("a/" * 1500)


@pytest.mark.timeout(20)
def test_as_many_long_patterns_as_are_allowed_are_quick_and_decide():
    patterns = tuple("*a" * 200 + f"b{number}" for number in range(200))
    globs = Globs(exclude=patterns)
    assert globs.includes("a" * 3000)
    assert not globs.includes("a" * 3000 + "b199")


def test_a_name_that_is_no_unicode_has_a_decision():
    assert Globs(include=("docs/",)).includes("docs/\udcff")


def test_what_lies_in_an_excluded_folder_can_be_taken_back():
    globs = Globs(exclude=("docs/", "!docs/keep.md"))
    assert [path for path in ("docs/a.md", "docs/keep.md", "b.md") if globs.includes(path)] == ["docs/keep.md", "b.md"]
