from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corecube.connectors.types import ItemError
from corecube.connectors.web.links import CrawlBounds, normalised, path_of


@pytest.mark.parametrize(
    ("address", "form"),
    [
        ("HTTPS://Docs.Example:443/a", "https://docs.example/a"),
        ("http://docs.example:80", "http://docs.example/"),
        ("http://docs.example:8080/a#part", "http://docs.example:8080/a"),
        ("http://x/a/../b/./c", "http://x/b/c"),
        ("http://x/../../a", "http://x/a"),
        ("http://x/a/b/..", "http://x/a/"),
        ("http://x//evil.example/a", "http://x//evil.example/a"),
        ("http://x/%7Euser/%e4%B8", "http://x/~user/%E4%B8"),
        ("http://x/a%2fb", "http://x/a%2Fb"),
        ("http://x/a b/ü", "http://x/a%20b/%C3%BC"),
        ("http://x/a%25b", "http://x/a%25b"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://x/?b=2&a=1&b=1", "http://x/?a=1&b=1&b=2"),
        ("http://x/?utm_source=m&gclid=1&PHPSESSID=2", "http://x/"),
        ("http://x/a;jsessionid=17?x", "http://x/a?x="),
        ("http://[::1]:8080/a", "http://[::1]:8080/a"),
    ],
)
def test_addresses_that_mean_the_same_have_one_form(address, form):
    assert normalised(address) == form


@given(st.text("abz./~%2fF3?&=;é ü#:@", max_size=40).map(lambda it: f"http://docs.example/{it}"))
def test_the_form_of_a_form_is_itself_and_stays_on_its_host(address):
    form = normalised(address)
    assert normalised(form) == form
    assert urlsplit(form).netloc == "docs.example"
    assert form.isascii()


@pytest.mark.parametrize(
    "address",
    ["mailto:a@b", "javascript:alert(1)", "ftp://x/", "//", "http://", "http://u:p@x/", "http://[x/", "http://x:99999/",
     "data:text/html,x", "http://x/" + "a" * 2001, "http://" + "a" * 70 + ".example/"],
)  # fmt: skip
def test_what_is_no_plain_address_is_refused(address):
    with pytest.raises(ItemError) as caught:
        normalised(address)
    assert caught.value.reason == "bad_address"


def test_a_crawl_holds_what_lies_below_its_prefixes_whatever_the_scheme():
    bounds = CrawlBounds(("x/docs/", "y/"))
    held = ["http://x/docs/a", "https://x/docs/", "https://y/"]
    assert [
        it for it in [*held, "https://x/docs", "https://x/blog", "https://x.y/", "https://z/"] if bounds.contains(it)
    ] == held


def test_patterns_see_paths_as_people_write_them():
    assert path_of("https://x/docs/%C3%BC%20b?a=1") == "docs/ü b?a=1"
