"""A dry run: what a sync would add and change, and which files it could not index, with nothing stored."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import Error

from corecube.connectors.types import ItemProblem, SourceItem
from corecube.errors import UnknownConnectionError
from retrieval.ingest.prepared_document import fingerprint, version_mark
from retrieval.ingest.problems import reason_of
from retrieval.ingest.run import Job, Steps, SyncEndedError
from retrieval.ingest.sandbox.process import InterruptedPreparationError
from retrieval.models import Document
from retrieval.models.document import document_id

_NOT_OPENED: Final = (
    "{opened:,} of {all:,} new and changed files were opened in {seconds} seconds (CORECUBE_DRY_RUN_SECONDS)."
    " The others were listed only."
)


@dataclass(slots=True)
class DryRun:
    """Opens the new and changed files of a source as a sync would, up to the time limit of a dry run."""

    job: Job
    steps: Steps
    unchanged: set[UUID] = field(default_factory=set)
    _opened: int = 0
    _unopened: int = 0
    _ends: float = field(default_factory=lambda: time.monotonic() + settings.CORECUBE_DRY_RUN_SECONDS)

    @property
    def summary(self) -> str:
        """A message for admins on the files that were not opened; empty when all were."""
        if not self._unopened:
            return ""
        both = self._opened + self._unopened
        return _NOT_OPENED.format(opened=self._opened, all=both, seconds=settings.CORECUBE_DRY_RUN_SECONDS)

    def check(self, page: Sequence[SourceItem | ItemProblem]) -> list[SourceItem | ItemProblem]:
        """Return a page with each item that cannot be indexed replaced by its problem. Raises SyncEndedError."""
        connection = self.job.target.connection.pk
        ids = {entry.external_id: document_id(connection, entry.external_id) for entry in page}
        rows = Document.objects.filter(pk__in=ids.values()).values_list("pk", "version", "fingerprint")
        known = {pk: (version, mark) for pk, version, mark in rows}
        return [
            entry
            if isinstance(entry, ItemProblem)
            else self._check(entry, ids[entry.external_id], *known.get(ids[entry.external_id], ("", "")))
            for entry in page
        ]

    def _check(self, item: SourceItem, identity: UUID, version: str, mark: str) -> SourceItem | ItemProblem:
        recipe = self.job.recipe(item)
        if version and version == version_mark(item.version, recipe=recipe):
            return item
        is_late = time.monotonic() >= self._ends
        if is_late and not mark:
            self._unopened += 1
            return item
        self.steps.require_wanted()
        try:
            content = self.job.source.connector.read(item)
            found = fingerprint(content, recipe=recipe)
            if found == mark:
                self.unchanged.add(identity)
            elif is_late:
                self._unopened += 1
            else:
                self.job.prepare(item, content)
                self._opened += 1
        except (Error, UnknownConnectionError):
            raise
        except InterruptedPreparationError as error:
            raise SyncEndedError from error
        except Exception as error:  # noqa: BLE001 -- as in a sync, an error in one item does not stop the others
            self._opened += 1
            return ItemProblem(item.external_id, *reason_of(error))
        return item
