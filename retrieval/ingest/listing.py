"""Listing a source: new and changed items are queued for workers, and documents that are missing become GONE items.

A source that can list its changes may be listed by these alone; then no document counts as missing.
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

from corecube.connectors.types import IncrementalConnector, ItemGone, ItemProblem, SourceItem
from corecube.connectors.upload import UploadConnector
from corecube.models import AuditEvent, Connection
from corecube.sanitise import storable
from retrieval.ingest.dry_run import DryRun
from retrieval.ingest.first_language import with_language
from retrieval.ingest.prepared_document import version_mark
from retrieval.ingest.problems import TRANSIENT, clear_problems, record_problems
from retrieval.ingest.run import Job, Progress, Steps, SyncEndedError, item_to_json, reload
from retrieval.ingest.schedule import changes_since, settings_mark
from retrieval.models import Document, Sync, SyncItem
from retrieval.models.document import document_id

logger = logging.getLogger(__name__)

#: The audit action of an upload; its details have the connection's id.
FILE_UPLOADED: Final = "connection.file_uploaded"
_PAGE: Final = 500
_DRY_PAGE: Final = 20
_STATE = SyncItem.State
_Entry = TypeVar("_Entry")
MAX_NAMES: Final = 10  #: Maximum items that a dry run lists by name, of each kind: to add, to change, to delete.
_COUNTS: Final = ("seen", "added", "changed", "unchanged", "failed", "deleted")


@dataclass(slots=True)
class Listing:
    """One pass over a source. After an interrupted pass, the next one keeps the items that are done."""

    job: Job  #: After the pass, with the language that a new connection got.
    progress: Progress
    steps: Steps
    #: Ids of all items of the source, 16 bytes each, to find the missing documents at the end.
    _seen: set[bytes] = field(default_factory=set)
    #: Folders that could not be listed; documents below them do not count as missing.
    _unlisted: list[str] = field(default_factory=list)
    _unchanged: set[UUID] = field(default_factory=set)
    _duplicates: Counter[str] = field(default_factory=Counter)

    def run(self) -> None:
        """List the source, or only its changes. Raises what the connector raises, and SyncEndedError."""
        connector, connection = self.job.source.connector, self.job.target.connection
        connector.check()
        # Files that were uploaded to another place are not gone.
        if isinstance(connector, UploadConnector) and _has_uploads(connection):
            connector.require_files()
        if not self._list_changes():
            self._list_all()
        self._update(listed_at=timezone.now(), stage=Sync.Stage.WORKING)
        reload(self.job.sync)

    def _list_changes(self) -> bool:
        """List the changes if that is enough; return False when a full listing is needed."""
        sync, connector = self.job.sync, self.job.source.connector
        since = changes_since(sync.connection) if sync.kind == Sync.Kind.CHANGES else None
        if since is None or not isinstance(connector, IncrementalConnector):
            return False
        self._reset_counts()
        for page in _pages(self._until_cancelled(connector.changed_since(since)), _PAGE):
            # Other documents may have disappeared with a deleted one, which only a full listing shows.
            gone = [document_id(sync.connection_id, it.external_id) for it in page if isinstance(it, ItemGone)]
            if Document.objects.filter(pk__in=gone).exists():
                return False
            self._note_page([it for it in page if not isinstance(it, ItemGone)])
        self._retry_failed()
        return True

    def _list_all(self) -> None:
        sync = self.job.sync
        kind = Sync.Kind.FULL if sync.kind == Sync.Kind.CHANGES else sync.kind
        self._update(kind=kind, settings_mark=settings_mark(self.job.target.connection))
        self._seen.clear()
        self._reset_counts()
        reload(sync)
        if sync.kind == Sync.Kind.DRY_RUN:
            trial = DryRun(self.job, self.steps)
            for page in _pages(self._until_cancelled(self.job.source.connector.items()), _DRY_PAGE):
                # Before the transaction, because this opens files.
                checked = trial.check(page)
                self._unchanged = trial.unchanged
                self._note_page(checked)
            self._update(message=trial.summary)
        else:
            for number, page in enumerate(_pages(self._until_cancelled(self.job.source.connector.items()), _PAGE)):
                if number == 0:
                    listed = [it for it in page if not isinstance(it, ItemProblem)]
                    self.job = with_language(self.job, listed, self.steps)
                    self._update(settings_mark=settings_mark(self.job.target.connection))
                self._note_page(page)
        for missing in _pages(self._missing(), _PAGE):
            noted = missing
            if self.job.sync.kind == Sync.Kind.DRY_RUN:
                self._update(deleted=F("deleted") + len(missing))
                noted = missing[: self._room(state=_STATE.GONE)]
            gone = [
                SyncItem(sync=self.job.sync, document_id=pk, external_id=external_id, state=_STATE.GONE)
                for pk, external_id in noted
            ]
            SyncItem.objects.bulk_create(gone, ignore_conflicts=True)

    def _until_cancelled(self, entries: Iterable[_Entry]) -> Iterator[_Entry]:
        for entry in entries:
            self.steps.require_wanted()
            yield entry

    def _note_page(self, page: Sequence[SourceItem | ItemProblem]) -> None:
        with transaction.atomic():
            self._note(page)
        reload(self.job.sync)
        self.progress(self.job.sync)

    def _retry_failed(self) -> None:
        """Queue the items again that failed in earlier syncs for a transient reason."""
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

    def _reset_counts(self) -> None:
        sync = self.job.sync
        done = sync.items.filter(state=_STATE.DONE)
        counts = dict.fromkeys(_COUNTS, 0) | {
            outcome.value: done.filter(outcome=outcome).count() for outcome in SyncItem.Outcome
        }
        counts["chunks"] = done.aggregate(total=Sum("chunks", default=0))["total"]
        counts["failed"] = sync.items.filter(state=_STATE.FAILED).count()
        self._update(**counts, stage=Sync.Stage.LISTING)

    def _note(self, page: Sequence[SourceItem | ItemProblem]) -> None:
        new: list[SyncItem] = []
        items: dict[UUID, SourceItem] = {}
        for entry in page:
            identity = document_id(self.job.target.connection.pk, entry.external_id)
            if isinstance(entry, ItemProblem):
                new.append(self._problem(identity, entry))
                self._unlisted += [entry.external_id] if entry.covers_subtree else []
            elif identity.bytes in self._seen:
                self._duplicates[entry.external_id] += 1
                name = f"{entry.external_id} (duplicate {self._duplicates[entry.external_id]})"
                problem = ItemProblem(name, "duplicate", "Another item has the same id. Only the first one is indexed.")
                new.append(self._problem(document_id(self.job.target.connection.pk, name), problem))
            elif storable(entry.locator) != entry.locator:
                problem = ItemProblem(entry.external_id, "bad_name", "Its name is not valid text.")
                new.append(self._problem(identity, problem))
            else:
                items[identity] = entry
            self._seen.add(identity.bytes)
        self._store(len(page), new, items)

    def _store(self, seen: int, problems: list[SyncItem], items: dict[UUID, SourceItem]) -> None:
        sync = self.job.sync
        ids = [*items, *(problem.document_id for problem in problems)]
        if sync.kind == Sync.Kind.CHANGES:
            # A full sync deletes earlier failures when it ends.
            SyncItem.objects.filter(document_id__in=ids, state=_STATE.FAILED).exclude(sync=sync).delete()
        noted = set(sync.items.filter(document_id__in=ids).values_list("document_id", flat=True))
        fresh = {identity: item for identity, item in items.items() if identity not in noted}
        unchanged, counts = self._sort(fresh)
        failed = list({it.document_id: it for it in problems if it.document_id not in noted}.values())
        SyncItem.objects.bulk_create(failed)
        if sync.kind != Sync.Kind.DRY_RUN:
            record_problems(failed)
            clear_problems(sync.connection_id, [fresh[identity].external_id for identity in unchanged])
            Document.objects.filter(pk__in=unchanged).update(synced_at=self.job.target.synced_at)
            new = fresh.keys() - set(unchanged)
            SyncItem.objects.bulk_create(
                SyncItem(sync=sync, document_id=pk, external_id=item.external_id, item=item_to_json(item))
                for pk, item in fresh.items()
                if pk in new
            )
        else:
            self._store_names(fresh, unchanged)
        counts |= {"seen": seen, "unchanged": len(unchanged), "failed": len(failed)}
        self._update(**{name: F(name) + count for name, count in counts.items()})

    def _store_names(self, items: dict[UUID, SourceItem], unchanged: list[UUID]) -> None:
        new = [identity for identity in items if identity not in set(unchanged)]
        known = set(Document.objects.filter(pk__in=new).values_list("pk", flat=True))
        for outcome, ids in (
            (SyncItem.Outcome.ADDED, [pk for pk in new if pk not in known]),
            (SyncItem.Outcome.CHANGED, [pk for pk in new if pk in known]),
        ):
            named = ((pk, items[pk].external_id) for pk in ids[: self._room(outcome=outcome)])
            SyncItem.objects.bulk_create(
                SyncItem(sync=self.job.sync, document_id=pk, external_id=name, state=_STATE.DONE, outcome=outcome)
                for pk, name in named
            )

    def _room(self, **kind: str) -> int:
        return max(MAX_NAMES - self.job.sync.items.filter(**kind).count(), 0)

    def _sort(self, items: dict[UUID, SourceItem]) -> tuple[list[UUID], dict[str, int]]:
        """Return the unchanged items, and for a dry run the numbers of added and changed ones."""
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

    def _missing(self) -> Iterator[tuple[UUID, str]]:
        documents = Document.objects.filter(connection=self.job.target.connection).order_by("pk")
        for pk, external_id in documents.values_list("pk", "external_id").iterator(chunk_size=_PAGE):
            is_unlisted = any(it in {"", "."} or external_id.startswith(f"{it}/") for it in self._unlisted)
            if pk.bytes not in self._seen and not is_unlisted:
                yield pk, external_id

    def _update(self, **values: object) -> None:
        if not Sync.objects.filter(pk=self.job.sync.pk, status=Sync.Status.RUNNING).update(**values):
            raise SyncEndedError


def _has_uploads(connection: Connection) -> bool:
    events = AuditEvent.objects.filter(action=FILE_UPLOADED, details__connection_id=connection.pk)
    return Document.objects.filter(connection=connection).exists() or events.exists()


def _pages(entries: Iterable[_Entry], size: int) -> Iterator[list[_Entry]]:
    rest = iter(entries)
    while page := list(islice(rest, size)):
        yield page
