"""The questions on the empty chat page: starting prompts first, then those that the sample company answers."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from corecube.models import User
from corecube.scope import AccessScope
from explorer.pages.explorer.examples import answerable_examples
from retrieval.answers.conversations.prompts import prompts_for, refused_lately

_LIMIT: Final = 6


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A question to ask with one click."""

    text: str
    title: str = ""


def suggestions_for(viewer: User, scope: AccessScope) -> tuple[Suggestion, ...]:
    """Return a few questions that the viewer's sources should answer, without those that they lately did not."""
    found: dict[str, Suggestion] = {}
    for suggestion in _suggestions(viewer, scope):
        found.setdefault(suggestion.text, suggestion)
    refused = refused_lately(viewer, found) if found else frozenset()
    return tuple(islice((it for text, it in found.items() if text not in refused), _LIMIT))


def _suggestions(viewer: User, scope: AccessScope) -> Iterator[Suggestion]:
    yield from (Suggestion(it.text, it.title) for it in prompts_for(scope))
    yield from (Suggestion(it.text) for it in answerable_examples(scope, viewer.username))
