"""Installations with some of everything that a backup contains, and comparing them."""

import json
import subprocess
import sys

from django.conf import settings

#: Fills an installation, and prints an API key.
FILL = """
import random
from django.core.management import call_command
from django.contrib.auth.models import Group
from django.utils import timezone
from pgvector import HalfVector, SparseVector
from corecube.connectors.setup import upload_folder
from corecube.models import ApiKey, Compartment, Connection, Grant, User
from corecube.secrets import seal
from corecube.scope import Sensitivity
from retrieval.index.embedding_index import searched
from retrieval.index.encodings import require_sparse_index
from retrieval.index.writer import create_vector_index
from retrieval.models import (
    Chunk, Document, Embedding, EmbeddingIndex, OutboxEntry, SearchRecord, SparseEmbedding, TermFrequency,
    TokenEmbedding,
)
from retrieval.models.document import document_id

alice = User.objects.create_superuser("alice", password="wonderland")
group = Group.objects.create(name="engineers")
alice.groups.add(group)
engineering = Compartment.objects.create(slug="engineering", name="Engineering \\u00dc\\t\\\\N")
Grant.objects.create(group=group, compartment=engineering, clearance=Sensitivity.INTERNAL)
gone = Connection.objects.create(slug="gone", name="Gone", kind="upload", compartment=engineering)
inbox = Connection.objects.create(
    slug="inbox", name="Inbox", kind="upload", compartment=engineering, sealed_secrets=seal({"token": "tangerine"})
)
last = Connection.objects.create(slug="last", name="Last", kind="upload", compartment=engineering)
last.delete()
gone.delete()
folder = upload_folder(inbox)
(folder / "2026").mkdir(parents=True)
(folder / "2026" / "notes.md").write_text("# Notes")
index = EmbeddingIndex.objects.create(model="tiny", weights="w", dim=4, status="active")
create_vector_index(searched(index))
require_sparse_index(model_key=12, dim=1000)
draw = random.Random(1)
for number in range(30):
    document = Document.objects.create(
        id=document_id(inbox.pk, f"d{number}"), connection=inbox, external_id=f"d{number}",
        title=f"Title {number}", source_type="text", fingerprint="f", byte_size=3,
        metadata={"a": [1, None, "\\u2603"]}, synced_at=timezone.now(),
    )
    chunk = Chunk.objects.create(
        document=document, ordinal=0, connection_id=inbox.pk, text=f"Roll back {number}\\n",
        heading_path=["A", "B,\\""],
        token_count=3, content_hash="h", search="roll:1A back:2", simhash=-5,
        minhash=bytes(range(128)), triples=[["a", "b", "c"]],
    )
    place = {"document_id": document.pk, "ordinal": 0, "connection_id": inbox.pk}
    Embedding.objects.create(**place, index_id=index.pk, vector=HalfVector([draw.random() for _ in range(4)]))
    SparseEmbedding.objects.create(**place, model_key=12, vector=SparseVector({1: 0.5, 900: 0.25}, 1000))
    TokenEmbedding.objects.create(**place, model_key=12, vectors=bytes(range(256)))
    TermFrequency.objects.create(connection_id=inbox.pk, lexeme="roll", chunks=1)
    OutboxEntry.objects.create(document_id=document.pk, connection_id=inbox.pk, deleted=False, transaction_id=10**9)
    SearchRecord.objects.create(user=alice, preset="corecube", milliseconds=3, hit_count=1, transaction_id=10**9)
print(ApiKey.issue(user=alice, name="test")[1])
"""
#: Prints what a restored installation must have in common with the one that was backed up.
LOOK = """
import json
from django.db import connection
from corecube.models import Connection
from corecube.secrets import unseal
from retrieval.models import OutboxEntry, ReadModel
from corecube.connectors.setup import upload_folder

LEFT_OUT = (
    *("django_session", "django_migrations", "corecube_backup", "corecube_keyuse"),
    *("retrieval_outboxentry", "retrieval_readmodel"),
)
with connection.cursor() as cursor:
    tables = [it for it in connection.introspection.table_names(cursor) if it not in LEFT_OUT]
    digests = {}
    for name in sorted(tables):
        columns = [it.name for it in connection.introspection.get_table_description(cursor, name)]
        columns = [f'"{it}"' for it in sorted(columns) if it != "transaction_id"]
        cursor.execute(f"SELECT count(*), md5(coalesce(string_agg(it::text, ' ' ORDER BY it::text), ''))"
                       f" FROM (SELECT {', '.join(columns)} FROM {name}) it")
        digests[name] = list(cursor.fetchone())
    cursor.execute("SELECT indexname FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname")
    indexes = [name for (name,) in cursor.fetchall()]
    cursor.execute("SELECT last_value FROM corecube_connection_id_seq")
    sequence = cursor.fetchone()[0]
inbox = Connection.objects.get(slug="inbox")
follow = [OutboxEntry.objects.count(), list(ReadModel.objects.values_list("name", flat=True))]
print(json.dumps({
    "digests": digests,
    "indexes": indexes,
    "sequence": sequence,
    "followed": follow,
    "secret": unseal(inbox.sealed_secrets),
    "uploads": {it.relative_to(upload_folder(inbox)).as_posix(): it.read_text()
                for it in sorted(upload_folder(inbox).rglob("*")) if it.is_file()},
}))
"""


def manage(environment, *arguments):
    """Run a command in an installation; return how it ended."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=settings.BASE_DIR,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def run(environment, *arguments):
    """Run a command that must succeed; return what it printed."""
    done = manage(environment, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def looked_at(environment):
    """Return what a restored installation has, whose read models follow from here on, whatever they followed before."""
    found = json.loads(run(environment, "shell", "--verbosity", "0", "-c", LOOK))
    assert found.pop("followed") == [0, ["outbox"]]
    return found
