"""`manage.py ingest PATH`: index a folder or a file as a connection."""

from argparse import ArgumentParser
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from django.core.management.base import CommandError
from django.utils.text import slugify

from corecube.commands import DatabaseCommand
from corecube.connectors import checked_config
from corecube.models import Compartment, Connection
from corecube.models.access import LANGUAGE_CHOICES
from corecube.scope import Sensitivity, TrustLevel
from retrieval.ingest.enrich.wants import default_enrichment
from retrieval.ingest.languages import misread_language, read_language
from retrieval.ingest.problems import advice
from retrieval.ingest.services import queue_sync
from retrieval.ingest.sync import sync_connection
from retrieval.models import Sync, SyncItem, SyncProblem

_MAX_SLUG_CHARACTERS: Final = 50  #: Limits of the database columns.
_MAX_NAME_CHARACTERS: Final = 120
_DEFAULT_COMPARTMENT: Final = "General"


class Command(DatabaseCommand):
    """Ingest a folder or a file as a connection. Later runs ingest only changes."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path)
        parser.add_argument(
            "--connection", metavar="NAME", help="the connection's name (default: the path's last part)"
        )
        parser.add_argument(
            "--compartment",
            metavar="C",
            help=f"the compartment's name (default: {_DEFAULT_COMPARTMENT}); created if missing",
        )
        parser.add_argument("--sensitivity", choices=_names(Sensitivity), help="default: internal")
        parser.add_argument("--trust", choices=_names(TrustLevel), help="default: reference")
        parser.add_argument(
            "--language",
            metavar="L",
            choices=[language for language, _ in LANGUAGE_CHOICES if language],
            help="for full-text search, such as german, or simple for any (default: CORECUBE_TEXT_SEARCH_CONFIG)",
        )
        parser.add_argument("--allow-deletions", action="store_true", help="allow any number of deletions")
        parser.add_argument("--dry-run", action="store_true", help="only count the changes")
        parser.add_argument("--queue", action="store_true", help="let a worker run the sync")

    def handle(self, *_: Any, **options: Any) -> None:
        connection = _connection(options)
        if options["queue"]:
            sync = queue_sync(
                connection, actor=None, allow_deletions=options["allow_deletions"], dry_run=options["dry_run"]
            )
            self.stdout.write(f"Queued sync {sync.pk} of {connection.name}.")
            return
        kind = Sync.Kind.DRY_RUN if options["dry_run"] else Sync.Kind.FULL
        self._report(self._sync(connection, kind, allow_deletions=options["allow_deletions"]))

    def _sync(self, connection: Connection, kind: Sync.Kind, *, allow_deletions: bool) -> Sync:
        with self.bar("files", leave=True) as bar:

            def progress(sync: Sync) -> None:
                bar.total = sync.seen
                bar.update(sync.added + sync.changed + sync.unchanged + sync.failed - bar.n)
                bar.set_postfix(chunks=sync.chunks, failed=sync.failed)

            sync = Sync(connection=connection, kind=kind, allow_deletions=allow_deletions)
            return sync_connection(connection, sync=sync, progress=progress)

    def _report(self, sync: Sync) -> None:
        connection = sync.connection
        if sync.kind == Sync.Kind.DRY_RUN:
            self.stdout.write(
                f"{connection.name}: {sync.seen} seen; a sync would add {sync.added}, change {sync.changed} and"
                f" delete {sync.deleted}; {sync.unchanged} are unchanged, {sync.failed} cannot be indexed."
                " Nothing was stored."
            )
            self._problems(sync.items.filter(state=SyncItem.State.FAILED))
            if sync.message:
                self.stdout.write(sync.message)
            return
        self.stdout.write(
            f"{connection.name} is {sync.label}: {sync.seen} seen, {sync.added} added, {sync.changed} changed, "
            f"{sync.unchanged} unchanged, {sync.deleted} deleted, {sync.failed} failed; {sync.chunks} chunks "
            f"embedded in {sync.seconds:.1f} s ({sync.encode_seconds:.1f} s in the encoder)."
        )
        self._problems(connection.problems.all())
        if sync.status == Sync.Status.STOPPED:
            raise CommandError(f"{sync.message} (--allow-deletions)")
        if language := misread_language(connection):
            self.stdout.write(
                f"Most of these documents are in {language.capitalize()}, but full-text search reads them as"
                f" {read_language(connection).capitalize()}. Set the language of the connection, then sync."
            )
        if not connection.compartment.grants.exists():
            self.stdout.write(f"No user can search this connection: {connection.compartment.name} has no grants yet.")

    def _problems(self, problems: Iterable[SyncItem | SyncProblem]) -> None:
        for it in problems:
            self.stdout.write(f"  {it.external_id}: {it.reason}: {it.message} {advice(it.reason)}".rstrip())


def _names(levels: type[Sensitivity] | type[TrustLevel]) -> list[str]:
    return [level.name.lower() for level in levels]


def _connection(options: dict[str, Any]) -> Connection:
    """Return the connection of the options, created if missing; raise CommandError for contradicting options."""
    path = options["path"].expanduser().absolute()
    name = _checked_name(options["connection"] or path.name)
    config = {"path": str(path)}
    checked_config("folder", config, command_path=str(path))
    slug = _slug(name)
    existing = Connection.objects.select_related("compartment").filter(slug=slug).first()
    if existing is not None:
        _require_same(existing, config, options)
        # A command may choose any path: its user has access to this machine's files anyway.
        existing.command_path = str(path)
        existing.save(update_fields=["command_path"])
        return existing
    connection = Connection(
        slug=slug,
        name=name,
        kind="folder",
        config=config,
        command_path=str(path),
        compartment=_compartment(options["compartment"]),
        sensitivity=Sensitivity[(options["sensitivity"] or "internal").upper()],
        trust=TrustLevel[(options["trust"] or "reference").upper()],
        language=options["language"] or "",
    )
    connection.enrichment = default_enrichment(connection)
    connection.save()
    return connection


def _checked_name(name: str) -> str:
    if len(name) > _MAX_NAME_CHARACTERS:
        raise CommandError(
            f"The name {name!r} has more than {_MAX_NAME_CHARACTERS} characters: choose another with --connection."
        )
    return name


def _compartment(name: str | None) -> Compartment:
    """Return the compartment of that name or slug, created if missing; raise CommandError for a slug in use."""
    wanted = _checked_name(name or _DEFAULT_COMPARTMENT)
    compartment, _ = Compartment.objects.get_or_create(slug=_slug(wanted), defaults={"name": wanted})
    if name not in {None, compartment.name, compartment.slug}:
        raise CommandError(
            f"{name!r} and the compartment {compartment.name!r} would have the same slug {compartment.slug!r}:"
            " choose another name, or create it in the administration."
        )
    return compartment


def _slug(name: str) -> str:
    """Return the slug of a name; raise CommandError for a name without a Latin letter or digit."""
    slug = slugify(name)[:_MAX_SLUG_CHARACTERS]
    if not slug:
        raise CommandError(
            f"{name!r} needs a letter from a to z or a digit: choose another with --connection or --compartment."
        )
    return slug


def _require_same(connection: Connection, config: dict[str, str], options: dict[str, Any]) -> None:
    """Raise CommandError if an option contradicts the existing connection."""
    same = {
        "name": options["connection"] in {None, connection.name, connection.slug},
        "path": connection.config == config,
        "compartment": options["compartment"] in {None, connection.compartment.name, connection.compartment.slug},
        "sensitivity": options["sensitivity"] in {None, connection.get_sensitivity_display().lower()},
        "trust": options["trust"] in {None, connection.get_trust_display().lower()},
        "language": options["language"] in {None, read_language(connection)},
    }
    if different := [name for name, is_same in same.items() if not is_same]:
        raise CommandError(
            f"The connection {connection.slug!r} exists with another {' and '.join(different)}:"
            " change it in the administration, or choose another connection."
        )
