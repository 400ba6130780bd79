"""Listing a source: an item is known by its version or becomes one that workers take in, and the rest is gone.

Of a source that tells what changed only that may be listed; then nothing is gone.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, TypeVar
from uuid import UUID

from django.db import transaction
from django.db.models import F, Sum
from django.utils import timezone

from corecube.connectors import ItemProblem, SourceItem
from corecube.connectors.types import IncrementalConnector, ItemGone
from corecube.connectors.upload import UploadConnector
from corecube.models import AuditEvent, Connection
from corecube.sanitise import storable
from retrieval.ingest.changes import changes_since, settings_mark
from retrieval.ingest.dry_run import DryRun
from retrieval.ingest.prepare import version_mark
from retrieval.ingest.problems import note_problems, solve_problems
from retrieval.ingest.reasons import TRANSIENT
from retrieval.ingest.run import Job, Progress, SyncEndedError, item_to_json, reload
from retrieval.ingest.steps import Steps
from retrieval.models import Document, Sync, SyncItem
from retrieval.models.document import document_id

logger = logging.getLogger(__name__)

#: What the audit log calls an upload; its details name the connection by its id.
FILE_UPLOADED: Final = "connection.file_uploaded"
#: Entries of a source that one transaction takes note of; of a dry run, which opens files, fewer.
_PAGE: Final = 500
_DRY_PAGE: Final = 20
_STATE = SyncItem.State
_Entry = TypeVar("_Entry")
#: Items that a dry run names of those that it would add, of those that it would change and of those that are gone.
FIRST_NAMES: Final = 10
#: Counts that a listing, begun anew, makes anew.
_COUNTS: Final = ("seen", "added", "changed", "unchanged", "failed", "deleted")


@dataclass(slots=True)
class Listing:
    """One pass over a source. After a pass that was cut off, the next one keeps what was done since."""

    job: Job
    progress: Progress
    steps: Steps
    #: Ids of what the source holds, 16 bytes each: all of them, so that what is missing can be told at the end.
    _seen: set[bytes] = field(default_factory=set)
    #: Folders that could not be listed: what lies below is not seen, but not gone either.
    _hidden: list[str] = field(default_factory=list)
    #: What a dry run found to be as it is stored.
    _unchanged: set[UUID] = field(default_factory=set)
    #: Items beyond the first with the same id, by that id.
    _twins: Counter[str] = field(default_factory=Counter)

    def run(self) -> None:
        """List the source to its end, or its changes. Raises what the connector raises, and SyncEndedError."""
        self.job.source.connector.check()
        self._require_uploads()
        if not self._list_changes():
            self._list_all()
        self._update(listed_at=timezone.now(), stage=Sync.Stage.WORKING)
        reload(self.job.sync)

    def _require_uploads(self) -> None:
        """Raise ConfigError where files were uploaded, and lie on another machine: they are not gone."""
        connector, connection = self.job.source.connector, self.job.target.connection
        if isinstance(connector, UploadConnector) and has_uploads(connection):
            connector.require_folder()

    def _list_changes(self) -> bool:
        """List what changed, where that is enough; return False when all is to be listed after all."""
        sync, connector = self.job.sync, self.job.source.connector
        since = changes_since(sync.connection) if sync.kind == Sync.Kind.CHANGES else None
        if since is None or not isinstance(connector, IncrementalConnector):
            return False
        self._forget_counts()
        for page in _pages(self._wanted(connector.changed_since(since)), _PAGE):
            # What hangs on such a document may not be shown any more either, and only a look at everything tells.
            if self._are_stored(it.external_id for it in page if isinstance(it, ItemGone)):
                return False
            self._note_page([it for it in page if not isinstance(it, ItemGone)])
        self._take_up_failed()
        return True

    def _list_all(self) -> None:
        sync = self.job.sync
        kind = Sync.Kind.FULL if sync.kind == Sync.Kind.CHANGES else sync.kind
        self._update(kind=kind, settings_mark=settings_mark(self.job.target.connection))
        self._seen.clear()
        self._forget_counts()
        reload(sync)
        if sync.kind == Sync.Kind.DRY_RUN:
            self._try_all()
        else:
            for page in _pages(self._wanted(self.job.source.connector.items()), _PAGE):
                self._note_page(page)
        self._note_missing()

    def _try_all(self) -> None:
        trial = DryRun(self.job, self.steps)
        for page in _pages(self._wanted(self.job.source.connector.items()), _DRY_PAGE):
            # Before the transaction: files are opened meanwhile.
            tried = trial.tried(page)
            self._unchanged = trial.unchanged
            self._note_page(tried)
        self._update(message=trial.summary)

    def _wanted(self, entries: Iterable[_Entry]) -> Iterator[_Entry]:
        """Yield the entries until the sync is cancelled, and raise SyncEndedError then."""
        for entry in entries:
            self.steps.require_wanted()
            yield entry

    def _note_page(self, page: Sequence[SourceItem | ItemProblem]) -> None:
        with transaction.atomic():
            self._note(page)
        reload(self.job.sync)
        self.progress(self.job.sync)

    def _are_stored(self, external_ids: Iterable[str]) -> bool:
        """Return whether any of these is stored."""
        connection = self.job.target.connection
        ids = [document_id(connection.pk, external_id) for external_id in external_ids]
        return Document.objects.filter(pk__in=ids).exists()

    def _take_up_failed(self) -> None:
        """Try again what earlier syncs could not take in for a reason that may have passed."""
        sync = self.job.sync
        failed = SyncItem.objects.filter(
            sync__connection=sync.connection_id, state=_STATE.FAILED, reason__in=TRANSIENT
        ).exclude(item={})
        noted = sync.items.values("document_id")
        with transaction.atomic():
            count = failed.exclude(document_id__in=noted).update(
                sync=sync, state=_STATE.QUEUED, attempts=0, reason="", message="", next_try_at=None
            )
            self._update(seen=F("seen") + count)

    def _forget_counts(self) -> None:
        """Count only what an earlier pass led to: items that are done or failed already."""
        sync = self.job.sync
        done = sync.items.filter(state=_STATE.DONE)
        counts = dict.fromkeys(_COUNTS, 0) | {
            outcome.value: done.filter(outcome=outcome).count() for outcome in SyncItem.Outcome
        }
        counts["chunks"] = done.aggregate(total=Sum("chunks", default=0))["total"]
        counts["failed"] = sync.items.filter(state=_STATE.FAILED).count()
        self._update(**counts, stage=Sync.Stage.LISTING)

    def _note(self, page: Sequence[SourceItem | ItemProblem]) -> None:
        """Store what is to be done about a page of entries."""
        new: list[SyncItem] = []
        items: dict[UUID, SourceItem] = {}
        for entry in page:
            identity = document_id(self.job.target.connection.pk, entry.external_id)
            if isinstance(entry, ItemProblem):
                new.append(self._problem(identity, entry))
                self._hidden += [entry.external_id] if entry.covers_subtree else []
            elif identity.bytes in self._seen:
                new.append(self._twin(entry.external_id))
            elif storable(entry.locator) != entry.locator:
                new.append(self._problem(identity, ItemProblem(entry.external_id, "bad_name", "Its name is no text.")))
            else:
                items[identity] = entry
            self._seen.add(identity.bytes)
        self._store(len(page), new, items)

    def _twin(self, external_id: str) -> SyncItem:
        """Return the problem of an item whose id another one has already, under a name of its own."""
        self._twins[external_id] += 1
        name = f"{external_id} (duplicate {self._twins[external_id]})"
        problem = ItemProblem(name, "duplicate", "Another item has the same id; the first one counts.")
        return self._problem(document_id(self.job.target.connection.pk, name), problem)

    def _store(self, seen: int, problems: list[SyncItem], items: dict[UUID, SourceItem]) -> None:
        sync = self.job.sync
        ids = [*items, *(problem.document_id for problem in problems)]
        if sync.kind == Sync.Kind.CHANGES:
            # A full sync forgets what failed before it all at once, when it ends.
            SyncItem.objects.filter(document_id__in=ids, state=_STATE.FAILED).exclude(sync=sync).delete()
        noted = set(sync.items.filter(document_id__in=ids).values_list("document_id", flat=True))
        fresh = {identity: item for identity, item in items.items() if identity not in noted}
        unchanged, counts = self._sort(fresh)
        failed = list({it.document_id: it for it in problems if it.document_id not in noted}.values())
        SyncItem.objects.bulk_create(failed)
        if sync.kind != Sync.Kind.DRY_RUN:
            note_problems(failed)
            solve_problems(sync.connection_id, [fresh[identity].external_id for identity in unchanged])
            Document.objects.filter(pk__in=unchanged).update(synced_at=self.job.target.synced_at)
            waiting = fresh.keys() - set(unchanged)
            SyncItem.objects.bulk_create(self._waiting(it, fresh[it]) for it in fresh if it in waiting)
        else:
            self._name_first(fresh, unchanged)
        counts |= {"seen": seen, "unchanged": len(unchanged), "failed": len(failed)}
        self._update(**{name: F(name) + count for name, count in counts.items()})

    def _name_first(self, items: dict[UUID, SourceItem], unchanged: list[UUID]) -> None:
        """Keep the names of the first that a dry run would add and change."""
        new = [identity for identity in items if identity not in set(unchanged)]
        known = set(Document.objects.filter(pk__in=new).values_list("pk", flat=True))
        for outcome, ids in (
            (SyncItem.Outcome.ADDED, [pk for pk in new if pk not in known]),
            (SyncItem.Outcome.CHANGED, [pk for pk in new if pk in known]),
        ):
            SyncItem.objects.bulk_create(
                SyncItem(
                    sync=self.job.sync,
                    document_id=pk,
                    external_id=items[pk].external_id,
                    state=_STATE.DONE,
                    outcome=outcome,
                )
                for pk in ids[: self._room(outcome=outcome)]
            )

    def _room(self, **kind: str) -> int:
        """Return how many more items of a kind a dry run may name."""
        return max(FIRST_NAMES - self.job.sync.items.filter(**kind).count(), 0)

    def _sort(self, items: dict[UUID, SourceItem]) -> tuple[list[UUID], dict[str, int]]:
        """Return which items are known to be unchanged, and, for a dry run, how many of the others are what."""
        rows = Document.objects.filter(pk__in=items).values_list("pk", "version", "fingerprint")
        known = {pk: (version, mark) for pk, version, mark in rows}
        is_dry = self.job.sync.kind == Sync.Kind.DRY_RUN
        unchanged: list[UUID] = []
        counts = {"added": 0, "changed": 0}
        for identity, item in items.items():
            version, mark = known.get(identity, ("", ""))
            is_known = bool(version) and version == version_mark(item.version, recipe=self.job.recipe(item))
            if is_known or identity in self._unchanged:
                unchanged.append(identity)
            elif is_dry:
                counts["changed" if mark else "added"] += 1
        return unchanged, counts

    def _problem(self, identity: UUID, problem: ItemProblem) -> SyncItem:
        logger.info("ingest.problem connection=%s reason=%s", self.job.target.connection.slug, problem.reason)
        return SyncItem(
            sync=self.job.sync,
            document_id=identity,
            external_id=storable(problem.external_id),
            state=_STATE.FAILED,
            reason=problem.reason,
            message=storable(problem.message),
        )

    def _waiting(self, identity: UUID, item: SourceItem) -> SyncItem:
        return SyncItem(sync=self.job.sync, document_id=identity, external_id=item.external_id, item=item_to_json(item))

    def _note_missing(self) -> None:
        """Note the documents that the source no longer holds; what could not be read or listed is not missing."""
        for page in _pages(self._missing(), _PAGE):
            noted = page
            if self.job.sync.kind == Sync.Kind.DRY_RUN:
                self._update(deleted=F("deleted") + len(page))
                noted = page[: self._room(state=_STATE.GONE)]
            gone = [
                SyncItem(sync=self.job.sync, document_id=pk, external_id=external_id, state=_STATE.GONE)
                for pk, external_id in noted
            ]
            SyncItem.objects.bulk_create(gone, ignore_conflicts=True)

    def _missing(self) -> Iterator[tuple[UUID, str]]:
        documents = Document.objects.filter(connection=self.job.target.connection).order_by("pk")
        for pk, external_id in documents.values_list("pk", "external_id").iterator(chunk_size=_PAGE):
            if pk.bytes not in self._seen and not self._is_hidden(external_id):
                yield pk, external_id

    def _is_hidden(self, external_id: str) -> bool:
        return any(folder in {"", "."} or external_id.startswith(f"{folder}/") for folder in self._hidden)

    def _update(self, **values: object) -> None:
        """Write to the sync's row; raise SyncEndedError when it runs no more."""
        if not Sync.objects.filter(pk=self.job.sync.pk, status=Sync.Status.RUNNING).update(**values):
            raise SyncEndedError


def has_uploads(connection: Connection) -> bool:
    """Return whether files were ever uploaded to a connection, whatever folder this machine has."""
    events = AuditEvent.objects.filter(action=FILE_UPLOADED, details__connection_id=connection.pk)
    return Document.objects.filter(connection=connection).exists() or events.exists()


def _pages(entries: Iterable[_Entry], size: int) -> Iterator[list[_Entry]]:
    rest = iter(entries)
    while page := list(islice(rest, size)):
        yield page
