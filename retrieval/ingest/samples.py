"""The sample sources: a fictional company in `corecube/samples` for trying out the product.

`company.toml` there lists compartments, groups, users, grants, connections and questions. Adding them is idempotent;
removing deletes the rows with their names, except those with another use.
"""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from django.contrib.auth.models import Group
from django.db import transaction

from corecube import audit
from corecube.errors import InvalidRequestError
from corecube.models import AuditEvent, Compartment, Connection, Grant, User
from corecube.people import ADMINISTRATORS, NewAccount, draw_password
from corecube.scope import FreshnessBasis, Sensitivity, TrustLevel
from retrieval.index.writer import delete_all_documents
from retrieval.ingest.sync import sync_connection
from retrieval.models import Sync

_ADDED: Final = "samples.added"


@dataclass(frozen=True, slots=True)
class Company:
    """The tables of `company.toml`; each row is a mapping as in the file."""

    folder: Path
    compartments: tuple[dict[str, Any], ...]
    groups: tuple[dict[str, Any], ...]
    users: tuple[dict[str, Any], ...]
    grants: tuple[dict[str, Any], ...]
    connections: tuple[dict[str, Any], ...]
    questions: tuple[dict[str, Any], ...]

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the file in a folder of samples."""
        tables = tomllib.loads((folder / "company.toml").read_text(encoding="utf-8"))
        names = ("compartment", "group", "user", "grant", "connection", "question")
        return cls(folder, *(tuple(tables[name]) for name in names))

    def path(self, connection: dict[str, Any]) -> str:
        """Return the folder of a connection's documents."""
        return str(self.folder / connection["path"])

    def slugs(self) -> list[str]:
        """Return the slugs of its connections."""
        return [row["slug"] for row in self.connections]


def is_in_use(company: Company) -> bool:
    """Return whether the samples were added before, or the installation has other connections."""
    return (
        AuditEvent.objects.filter(action=_ADDED).exists()
        or Connection.objects.exclude(slug__in=company.slugs()).exists()
    )


def add_samples(company: Company, progress: Callable[[Sync], None] = lambda _: None) -> list[NewAccount]:
    """Add the missing samples, index their documents, and return the users who got a password.

    After an interruption it can be called again. Raises InvalidRequestError when another connection has one of their
    names, and what a sync raises.
    """
    _add_rows(company)
    for connection in Connection.objects.filter(slug__in=company.slugs()).select_related("compartment"):
        sync_connection(connection, progress=progress)
    return _open_accounts(company)


@transaction.atomic
def _add_rows(company: Company) -> None:
    """Add compartments, people and connections. Users cannot sign in yet."""
    compartments = {
        row["slug"]: Compartment.objects.get_or_create(
            slug=row["slug"], defaults={"name": row["name"], "description": row["description"]}
        )[0]
        for row in company.compartments
    }
    groups = {row["slug"]: Group.objects.get_or_create(name=row["name"])[0] for row in company.groups}
    users = {row["username"]: _add_user(row, groups) for row in company.users}
    for row in company.grants:
        user, group = users.get(row.get("user", "")), groups.get(row.get("group", ""))
        _grant(compartments[row["compartment"]], Sensitivity[row["clearance"].upper()], user=user, group=group)
    administrators = Group.objects.get_or_create(name=ADMINISTRATORS)[0]
    for compartment in compartments.values():
        _grant(compartment, Sensitivity.RESTRICTED, group=administrators)
    for row in company.connections:
        _add_connection(row, company.path(row), compartments[row["compartment"]])


def _add_user(row: dict[str, Any], groups: dict[str, Group]) -> User:
    first_name, _, last_name = row["name"].partition(" ")
    user, is_new = User.objects.get_or_create(
        username=row["username"], defaults={"first_name": first_name, "last_name": last_name, "is_staff": row["admin"]}
    )
    if is_new:
        user.set_unusable_password()
        user.save()
        user.groups.set(groups[slug] for slug in row["groups"])
    return user


def _grant(
    compartment: Compartment, clearance: Sensitivity, *, user: User | None = None, group: Group | None = None
) -> None:
    Grant.objects.get_or_create(compartment=compartment, user=user, group=group, defaults={"clearance": clearance})


def _add_connection(row: dict[str, Any], path: str, compartment: Compartment) -> None:
    defaults = {
        "name": row["name"],
        "kind": "folder",
        "config": {"path": path},
        "compartment": compartment,
        "sensitivity": Sensitivity[row["sensitivity"].upper()],
        "trust": TrustLevel[row["trust"].upper()],
        "source_type": row["source_type"],
        "half_life_days": row["half_life_days"],
        "freshness_basis": FreshnessBasis(row["freshness_basis"]),
    }
    connection, _ = Connection.objects.get_or_create(slug=row["slug"], defaults=defaults)
    if connection.config != {"path": path}:
        raise InvalidRequestError(f"A connection {connection.slug!r} with other documents exists already.")


@transaction.atomic
def _open_accounts(company: Company) -> list[NewAccount]:
    accounts = []
    names = [row["username"] for row in company.users]
    for user in User.objects.filter(username__in=names, last_login=None, is_active=True):
        if not user.has_usable_password():
            accounts.append(NewAccount(user.username, draw_password()))
            user.set_password(accounts[-1].password)
            user.save()
    audit.record(_ADDED, actor=None)
    return accounts


def remove_samples(company: Company) -> None:
    """Delete the samples' documents and connections, then the users, groups and compartments without another use."""
    for row in company.connections:
        connection = Connection.objects.filter(slug=row["slug"], config={"path": company.path(row)}).first()
        if connection is not None:
            delete_all_documents(connection)
            connection.delete()
    with transaction.atomic():
        User.objects.filter(username__in=[row["username"] for row in company.users], is_superuser=False).delete()
        compartments = [row["slug"] for row in company.compartments]
        Compartment.objects.filter(slug__in=compartments, connections=None).delete()
        Group.objects.filter(name__in=[row["name"] for row in company.groups], user=None, grants=None).delete()
        audit.record("samples.removed", actor=None)
