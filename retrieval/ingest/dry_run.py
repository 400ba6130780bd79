"""A dry run: what a sync would add and change, and which files it could not take in, with nothing stored."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import Error

from corecube.connectors import ItemProblem, SourceItem
from corecube.errors import UnknownConnectionError
from retrieval.ingest.prepare import fingerprint, version_mark
from retrieval.ingest.problems import reason_of
from retrieval.ingest.run import Job, SyncEndedError
from retrieval.ingest.sandbox.process import InterruptedPreparationError
from retrieval.ingest.steps import Steps
from retrieval.models import Document
from retrieval.models.document import document_id

_NOT_OPENED: Final = (
    "{opened:,} of {all:,} new and changed files were opened in {seconds} seconds (CORECUBE_DRY_RUN_SECONDS);"
    " of the others only what the source lists is known."
)


@dataclass(slots=True)
class DryRun:
    """Opens the new and changed files of a source as a sync would, for as long as a dry run may take."""

    job: Job
    steps: Steps
    #: Documents whose bytes are those that are stored.
    unchanged: set[UUID] = field(default_factory=set)
    _opened: int = 0
    _unopened: int = 0
    _ends: float = field(default_factory=lambda: time.monotonic() + settings.CORECUBE_DRY_RUN_SECONDS)

    @property
    def summary(self) -> str:
        """What was not opened, in words for an admin; empty when everything was."""
        if not self._unopened:
            return ""
        both = self._opened + self._unopened
        return _NOT_OPENED.format(opened=self._opened, all=both, seconds=settings.CORECUBE_DRY_RUN_SECONDS)

    def tried(self, page: Sequence[SourceItem | ItemProblem]) -> list[SourceItem | ItemProblem]:
        """Return a page of a listing with a problem in the place of each item that cannot be taken in.

        Raises SyncEndedError soon after the sync was cancelled.
        """
        connection = self.job.target.connection.pk
        ids = {entry.external_id: document_id(connection, entry.external_id) for entry in page}
        rows = Document.objects.filter(pk__in=ids.values()).values_list("pk", "version", "fingerprint")
        known = {pk: (version, mark) for pk, version, mark in rows}
        return [
            entry
            if isinstance(entry, ItemProblem)
            else self._tried(entry, ids[entry.external_id], *known.get(ids[entry.external_id], ("", "")))
            for entry in page
        ]

    def _tried(self, item: SourceItem, identity: UUID, version: str, mark: str) -> SourceItem | ItemProblem:
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
                self.job.prepared(item, content)
                self._opened += 1
        except (Error, UnknownConnectionError):
            raise
        except InterruptedPreparationError as error:
            raise SyncEndedError from error
        except Exception as error:  # noqa: BLE001 -- as in a sync: whatever is wrong with one item stops no other
            self._opened += 1
            return ItemProblem(item.external_id, *reason_of(error))
        return item
