"""Quality filter preview, on a connection's page."""

import pytest

from corecube.models import Grant
from retrieval.models import Chunk

PATH = "/connections/ledger/quality/"


@pytest.fixture(autouse=True)
def low(world):
    Chunk.objects.filter(connection_id=world.ledger.pk).update(quality=0.1, quality_parts={"legal": 0.9})


def test_the_fragment_and_the_page_show_the_same(browse, htmx):
    alice = browse("alice")
    page, fragment = alice.get(PATH), alice.get(PATH, headers=htmx)
    assert page.templates[0].name == "explorer/connections/connection_quality.html"
    assert "<html" not in fragment.content.decode()
    for response in (page, fragment):
        assert (response.context["preview"].dropped, response.context["preview"].minimum) == (1, 0.3)
        assert "The rollback in March cost" in response.content.decode()
        # A browser that goes back must not show the one for the other.
        assert "HX-Request" in response.headers["Vary"]
        assert "no-store" in response.headers["Cache-Control"]


def test_the_connection_page_asks_for_the_fragment_and_links_to_the_page(browse):
    text = browse("alice").get("/connections/ledger/").content.decode()
    assert f'hx-get="{PATH}"' in text
    assert f'href="{PATH}"' in text


def test_another_threshold_is_tried(browse):
    response = browse("alice").get(PATH, {"minimum": "0.05"})
    assert response.context["preview"].dropped == 0
    assert 'value="0.05"' in response.content.decode()


def test_a_bookmark_with_the_former_parameter_opens(browse):
    assert browse("alice").get(PATH, {"least": "0.05"}).context["preview"].minimum == 0.05


@pytest.mark.parametrize("minimum", ["2", "-0.1", "x", "", "nan"])
def test_a_wrong_threshold_is_told_and_lists_nothing(browse, minimum):
    response = browse("alice").get(PATH, {"minimum": minimum})
    assert response.status_code == 422
    assert 'role="alert"' in response.content.decode()
    assert "preview" not in response.context


def test_no_more_than_fifty_are_listed(browse, world):
    first = Chunk.objects.get(connection_id=world.ledger.pk)
    Chunk.objects.bulk_create(
        Chunk(
            document_id=first.document_id,
            ordinal=number,
            connection_id=world.ledger.pk,
            text=f"Line {number}",
            token_count=2,
            quality=0.0,
            search="",
        )
        for number in range(1, 60)
    )
    response = browse("alice").get(PATH)
    assert (response.context["preview"].dropped, len(response.context["preview"].lowest)) == (60, 50)
    assert "Showing the 50 lowest." in response.content.decode()


@pytest.mark.parametrize("name", ["bob", "charlie"])
def test_for_anyone_but_an_admin_it_does_not_exist(browse, name, htmx):
    assert browse(name).get(PATH).status_code == 404
    assert browse(name).get(PATH, headers=htmx).status_code == 404


def test_an_admin_without_a_grant_sees_the_count_and_no_text(browse, world):
    Grant.objects.filter(user=world.alice, compartment__slug="finance").delete()
    response = browse("alice").get(PATH)
    text = response.content.decode()
    assert response.context["preview"].dropped == 1
    assert not any(word in text for word in ("Costs", "rollback in March", "tangerine"))


def test_text_is_escaped(browse, world):
    Chunk.objects.filter(connection_id=world.ledger.pk).update(text="<script>alert(1)</script>")
    assert "&lt;script&gt;" in browse("alice").get(PATH).content.decode()


def test_an_unknown_connection_is_not_found(browse):
    assert browse("alice").get("/connections/nowhere/quality/").status_code == 404
