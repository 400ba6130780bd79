"""What a link means, and what links mean a document."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.graph.addresses import Place

GUIDE = Place(7, "docs/guide/start.md", "https://www.example.org/docs/guide/start.html")


@pytest.mark.parametrize(
    ("target", "path", "web"),
    [
        ("install.md", "docs/guide/install", "docs/guide/install"),
        ("install", "docs/guide/install", "docs/guide/install"),
        ("../faq.md#why", "docs/faq", "docs/faq"),
        ("./images/../faq.html", "docs/guide/faq", "docs/guide/faq"),
        ("/about.md", "about", "about"),
        ("../", "docs", "docs"),
        ("../README.md", "docs", "docs"),
        ("two%20words.md", "docs/guide/two words", "docs/guide/two words"),
        ("..\\faq.md", "docs/faq", "docs/faq"),
    ],
)
def test_a_relative_link_starts_from_where_the_document_stands(target, path, web):
    assert GUIDE.targets(target) == (f"path:7:{path}", f"//example.org/{web}")


def test_an_address_is_compared_without_what_tells_no_pages_apart():
    same = ["http://example.org/docs/faq", "https://WWW.Example.org:443/docs/faq.html#top", "//example.org/docs/faq/"]
    assert {GUIDE.targets(target) for target in same} == {("//example.org/docs/faq",)}
    assert GUIDE.targets("https://example.org:8080/a?page=2") == ("//example.org:8080/a?page=2",)


@pytest.mark.parametrize(
    "target",
    [
        "",
        "#here",
        "?page=2",
        "mailto:anna@example.org",
        "javascript:alert(1)",
        "tel:112",
        "http://[broken",
        "http:///x",
    ],
)
def test_what_leads_nowhere_else_has_no_address(target):
    assert GUIDE.targets(target) == ()


def test_an_address_holds_nothing_that_the_store_cannot():
    assert GUIDE.targets("https://x.example/a%00b") == ("//x.example/ab",)
    assert Place(7, "a\0b.md", "https://x.example/%00").addresses == ("path:7:ab", "//x.example/")


def test_a_path_out_of_the_source_is_none():
    assert Place(7, "docs/a.md", "").targets("../../b.md") == ()
    assert Place(7, "docs/a.md", "").targets("../b.md") == ("path:7:b",)


def test_a_site_generator_leaves_away_the_underscore():
    assert Place(7, "_security/roles.md", "").addresses == Place(7, "x.md", "").targets("/security/roles/")
    assert Place(7, "guide/_index.md", "").addresses == ("path:7:guide",)


def test_paths_are_those_of_one_connection():
    assert Place(7, "a.md", "").addresses == ("path:7:a",)
    assert Place(8, "a.md", "").addresses == ("path:8:a",)


def test_what_is_known_by_its_web_address_alone_has_no_path():
    assert Place(7, "https://example.org/a", "https://example.org/a").addresses == ("//example.org/a",)
    assert Place(7, "a", "s3://bucket/a").addresses == ("path:7:a",)


@given(st.from_regex(r"\A[a-z]{1,5}(/[a-z]{1,5}){0,3}\Z"), st.from_regex(r"\A[a-z]{1,5}(/[a-z]{1,5}){0,3}\Z"))
def test_a_link_from_the_root_meets_its_document(one, other):
    assert Place(1, f"{one}.md", "").targets(f"/{other}.html") == Place(1, f"{other}.md", "").addresses


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_link_is_an_error(path, target):
    assert all(len(address) <= 1000 for address in Place(1, path, "https://example.org/a").targets(target))
