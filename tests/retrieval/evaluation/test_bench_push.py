"""Pushing documents in a scratch database, through the whole API."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from corecube.models import Connection
from retrieval.evaluation.bench.push import PushPhase, PushPoint
from retrieval.models import Document


def run(*options):
    output = StringIO()
    call_command("bench", *options, stdout=output)
    return output.getvalue()


@pytest.mark.usefixtures("migrated_scratch")
def test_every_document_is_taken_in_and_the_installation_is_left_alone():
    application = connection.settings_dict["NAME"]
    header, *lines = run("--push=120").splitlines()
    assert header == "120 documents, 120 chunks, 0 failed"
    told = [line.rpartition(" in ")[0].strip() for line in lines if " per second" in line and ":" in line]
    assert told == ["pushed at once: 12", "pushed for later: 108", "indexed by a sync: 108"]
    points = [line.split() for line in lines if line and all(part.replace(".", "").isdigit() for part in line.split())]
    # Ten points of the pushes, and one of the only batch.
    assert [int(done) for done, _, _ in points][-11:] == [11, 22, 33, 44, 54, 65, 76, 87, 98, 108, 108]
    assert all(int(mebibytes) > 1 for _, _, mebibytes in points)
    assert sum("memory after the first fifth" in line for line in lines) == 3
    assert connection.settings_dict["NAME"] == application
    assert not Document.objects.exists()
    assert not Connection.objects.exists()


def test_growth_counts_from_the_first_fifth_on():
    points = tuple(PushPoint(done, 1.0, rss) for done, rss in [(10, 50), (20, 100), (50, 104), (100, 103)])
    assert PushPhase("x", 100, 1.0, points).grown_bytes == 3


@pytest.mark.parametrize("documents", [99, 1_000_001])
def test_sizes_that_make_no_sense_are_refused(documents):
    with pytest.raises(CommandError, match="between 100 and 1,000,000"):
        run(f"--push={documents}")
