"""The confirmation of a change of access: who would gain and who would lose which connections."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render

from corecube.http import HtmxHttpRequest
from corecube.models import Connection, User
from corecube.reach import Reach, reach_of
from explorer.wording import counted, short_list

#: Usernames with the names of connections, in order.
_Rows = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class AccessEffect:
    """Which connections people gain and lose by a change."""

    gaining: _Rows = ()
    losing: _Rows = ()

    def __bool__(self) -> bool:
        """Whether anybody's access changes."""
        return bool(self.gaining or self.losing)

    @property
    def token(self) -> str:
        """What a form sends to confirm this effect and no other: SHA-256, in hexadecimal."""
        return hashlib.sha256(repr((self.gaining, self.losing)).encode()).hexdigest()

    @property
    def action(self) -> str:
        """The button that confirms the change: what it does to the people who lose or else gain access."""
        users = counted(len(self.losing or self.gaining), "user")
        return f"Remove access for {users}" if self.losing else f"Give access to {users}"

    @property
    def inverse(self) -> "AccessEffect":
        """The effect of undoing the change."""
        return AccessEffect(self.losing, self.gaining)

    @property
    def parts(self) -> list[tuple[str, str, list[tuple[str, str]]]]:
        """Label, tone and rows, username and connections as text, of both directions; none for an empty one."""
        parts = (("Gains access", "warn", self.gaining), ("Loses access", "bad", self.losing))
        return [(label, tone, [(name, short_list(it)) for name, it in rows]) for label, tone, rows in parts if rows]


def effect_of(people: QuerySet[User], change: Callable[[], object]) -> AccessEffect:
    """Return the effect of a change on these people, by making it in a transaction that is rolled back."""
    same = User.objects.filter(pk__in=list(people.values_list("pk", flat=True)))
    with transaction.atomic():
        before = reach_of(same)
        change()
        after = reach_of(same)
        transaction.set_rollback(True)
    names = dict(Connection.objects.values_list("pk", "name"))
    return AccessEffect(_rows(after, before, names), _rows(before, after, names))


def _rows(more: Reach, less: Reach, names: Mapping[int, str]) -> _Rows:
    found = ((person, seen - less.get(person, frozenset())) for person, seen in sorted(more.items()))
    return tuple((person, tuple(sorted(names[pk] for pk in new))) for person, new in found if new)


def is_confirmed(request: HtmxHttpRequest, effect: AccessEffect) -> bool:
    """Return whether a change may be made: it changes nobody's access, or exactly this effect was confirmed."""
    return not effect or request.POST.get("seen") == effect.token


def confirmation(request: HtmxHttpRequest, effect: AccessEffect, *, title: str, back: str) -> HttpResponse:
    """Return a page that shows the effect; its form sends the same request again, confirmed."""
    skipped = {"csrfmiddlewaretoken", "seen"}
    fields = [(name, value) for name, values in request.POST.lists() if name not in skipped for value in values]
    context = {"effect": effect, "title": title, "fields": fields, "action": request.path, "back": back}
    return render(request, "explorer/access/confirm.html", context)
