"""Files made to take long are taken in as quickly as others, in chunks of a bounded size."""

import base64
import random
import time

import pytest
from django.db.models import Max
from django.db.models.functions import Length

from corecube.models import Compartment, Connection
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk
from retrieval.text.document import ChunkLimits
from tests.profiles import turn

BYTES = 2 * 10**6
#: A guard against what takes minutes, and no measure.
MAX_SECONDS = 60
FILES = {
    "letters": lambda: b"a" * BYTES,
    "digits": lambda: b"7" * BYTES,
    "spaces": lambda: b"begin" + b" " * BYTES + b"end",
    "blank lines": lambda: b"begin" + b"\n" * BYTES + b"end",
    "underscores": lambda: b"_" * BYTES,
    # Its words are many and all different, which costs the encoder of the tests more than anything else.
    "base64": lambda: base64.b64encode(random.Random(7).randbytes(BYTES // 8)),
}


@pytest.fixture
def source(db, tmp_path):
    compartment = Compartment.objects.create(slug="c", name="C")
    return Connection.objects.create(
        slug="docs", name="Docs", kind="folder", config={"path": str(tmp_path)}, compartment=compartment
    )


@pytest.mark.parametrize(
    ("name", "suffix"),
    turn([*((name, "txt") for name in FILES), ("letters", "md"), ("blank lines", "py"), ("spaces", "md")], 0, of=3),
)
def test_a_hostile_file_of_two_megabytes_becomes_bounded_chunks_in_time(source, tmp_path, name, suffix):
    (tmp_path / f"hostile.{suffix}").write_bytes(FILES[name]())
    (tmp_path / "honest.md").write_text("# Pumps\n\nThe pump of hall seven wants oil in march.\n")
    started = time.monotonic()
    sync = sync_connection(source)
    assert time.monotonic() - started < MAX_SECONDS
    assert sync.added >= 1
    max_length = Chunk.objects.aggregate(max_length=Max(Length("text")))["max_length"]
    assert max_length <= ChunkLimits().max_characters
    assert Chunk.objects.filter(text__contains="hall seven").exists()
