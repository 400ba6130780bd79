import pytest

from explorer.components.search_page import with_chosen
from retrieval.ingest.sync import sync_connection

_OFFERED = [("a", "A"), ("b", "B")]


@pytest.mark.parametrize("chosen", ["", "a"])
def test_choices_stay_as_they_are(chosen):
    assert with_chosen(_OFFERED, chosen) == _OFFERED


def test_what_is_not_offered_is_added():
    assert with_chosen(iter(_OFFERED), "c") == [*_OFFERED, ("c", "c")]


@pytest.mark.parametrize(
    ("path", "name"),
    [("/log/", "user"), ("/documents/", "connection"), ("/documents/", "type"), ("/jobs/", "connection")],
)
def test_a_filter_shows_the_value_of_the_address_that_it_does_not_offer(client, world, path, name):
    sync_connection(world.runbooks)
    client.force_login(world.alice)
    response = client.get(path, {name: "gone"})
    assert '<option value="gone" selected>gone</option>' in response.content.decode()
