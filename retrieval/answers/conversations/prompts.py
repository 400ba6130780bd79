"""Starting prompts: questions that admins offer on the empty chat page to those whom they are meant for."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from django.db.models import Exists, OuterRef
from django.utils import timezone

from corecube import audit
from corecube.models import User
from corecube.scope import AccessScope
from retrieval.models import Message, StartingPrompt

_REFUSED_FOR: Final = timedelta(days=7)


def prompts_for(scope: AccessScope) -> tuple[StartingPrompt, ...]:
    """Return the prompts whose sources are all in a scope, in the order in which they were added."""
    visible = {it.connection.slug for it in scope.included}
    return tuple(it for it in StartingPrompt.objects.all() if visible and visible.issuperset(it.sources))


def refused_lately(user: User, texts: Iterable[str]) -> frozenset[str]:
    """Return the questions among `texts` that the user asked in the last week without getting an answer."""
    refusals = Message.objects.filter(
        conversation=OuterRef("conversation"), ordinal=OuterRef("ordinal") + 1, is_refused=True
    )
    asked = Message.objects.filter(
        conversation__user=user, role=Message.Role.USER, text__in=list(texts), at__gte=timezone.now() - _REFUSED_FOR
    )
    return frozenset(asked.filter(Exists(refusals)).values_list("text", flat=True))


def save_prompt(prompt: StartingPrompt, *, actor: User) -> None:
    """Add a prompt, or store its changes; audited."""
    prompt.save()
    audit.record("starting_prompt.saved", actor=actor, subject=str(prompt.pk), sources=prompt.sources)


def delete_prompt(prompt: StartingPrompt, *, actor: User) -> None:
    """Delete a prompt; audited."""
    audit.record("starting_prompt.deleted", actor=actor, subject=str(prompt.pk))
    prompt.delete()
