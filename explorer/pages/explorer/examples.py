"""Example questions about the sample company, for users with its sources in scope."""

import tomllib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from django.conf import settings

from corecube.models import Connection
from corecube.scope import AccessScope

_LIMIT: Final = 6


@dataclass(frozen=True, slots=True)
class Example:
    """A question that the samples answer, or that should be refused."""

    text: str
    kind: str
    user: str
    connections: frozenset[str]  #: Slugs of the connections with the answer; empty for none.


def examples_for(scope: AccessScope, username: str) -> tuple[Example, ...]:
    """Return example questions for a scope, those for the user first; none without the samples."""
    slugs = _sample_sources(scope)
    return choose(_demonstrations(settings.CORECUBE_SAMPLES_DIR), slugs=slugs, username=username) if slugs else ()


def answerable_examples(scope: AccessScope, username: str) -> tuple[Example, ...]:
    """Return the example questions that a scope's sources answer, those for the user first; none without the samples.

    Those that demonstrate a refusal are left out.
    """
    slugs = _sample_sources(scope)
    examples = _demonstrations(settings.CORECUBE_SAMPLES_DIR) if slugs else ()
    answerable = [it for it in examples if it.connections and it.connections <= slugs]
    return choose(answerable, slugs=slugs, username=username)


def _sample_sources(scope: AccessScope) -> frozenset[str]:
    folder = str(settings.CORECUBE_SAMPLES_DIR)
    found = Connection.objects.filter(pk__in=scope.connection_ids, config__path__startswith=folder)
    return frozenset(found.values_list("slug", flat=True))


def choose(examples: Sequence[Example], *, slugs: Collection[str], username: str) -> tuple[Example, ...]:
    """Return the first few that the scope can answer or that are for this user, without duplicate texts."""
    suitable = [
        example
        for example in examples
        if example.user == username or (example.connections and example.connections <= set(slugs))
    ]
    own_first = sorted(suitable, key=lambda example: example.user != username)
    return tuple({example.text: example for example in reversed(own_first)}.values())[::-1][:_LIMIT]


@cache
def _demonstrations(folder: Path) -> tuple[Example, ...]:
    return tuple(_read(folder / "company.toml"))


def _read(path: Path) -> Iterator[Example]:
    """Yield the questions that are marked for the start page."""
    if not path.exists():
        return
    company = tomllib.loads(path.read_text(encoding="utf-8"))
    slugs = {connection["path"]: connection["slug"] for connection in company["connection"]}
    for question in company["question"]:
        if question.get("demo"):
            folders = {expected["path"].partition("/")[0] for expected in question["expected"]}
            connections = frozenset(slugs[folder] for folder in folders)
            yield Example(question["text"], question["kind"], question["user"], connections)
