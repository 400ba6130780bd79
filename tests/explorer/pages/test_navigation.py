"""Which link of the navigation is that of a page."""

import re

import pytest

LINK = re.compile(r'href="([^"]+)" aria-current="page"')


@pytest.mark.parametrize(
    ("address", "link"),
    [
        ("/explorer/", "/explorer/"),
        ("/?q=rollback", "/explorer/"),
        ("/connections/", "/connections/"),
        ("/connections/new/", "/connections/"),
        ("/language-models/usage/", "/language-models/"),
        ("/access/keys/", "/access/keys/"),
        ("/keys/new/", "/keys/"),
    ],
)
def test_the_link_of_a_page_is_that_of_the_nearest_address(world, browse, address, link):
    assert LINK.findall(browse("alice").get(address).content.decode()) == [link]


def test_a_page_of_no_section_marks_none(world, browse):
    assert LINK.findall(browse("alice").get("/password/").content.decode()) == []
