"""What an admin inspects while an experiment runs."""

import pytest

from tests.experiments import begun


@pytest.mark.usefixtures("unhurried")
def test_what_an_admin_inspects_takes_part_in_no_experiment(browse, world):
    experiment = begun(world)
    browse("alice").get("/", {"q": "rollback"})
    experiment.refresh_from_db()
    assert experiment.questions == 0
    browse("bob").get("/", {"q": "rollback"})
    experiment.refresh_from_db()
    assert experiment.questions == 1
