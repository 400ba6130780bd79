"""The first steps of an installation; which are completed is derived from the data."""

from dataclasses import dataclass

from django.db.models import Q
from django.urls import reverse

from corecube import audit
from corecube.models import ApiKey, AuditEvent, Connection, Grant, User
from retrieval.engine.types import Verdict
from retrieval.models import Document, SearchRecord

_DISMISSED = "guide.dismissed"


@dataclass(frozen=True, slots=True)
class Step:
    """A step."""

    key: str
    title: str
    text: str
    #: The URL of its page.
    address: str
    is_done: bool


@dataclass(frozen=True, slots=True)
class Guide:
    """The steps in order."""

    steps: tuple[Step, ...]

    @property
    def is_done(self) -> bool:
        """Whether all steps are completed."""
        return all(step.is_done for step in self.steps)

    @property
    def done(self) -> int:
        """The number of completed steps."""
        return sum(step.is_done for step in self.steps)

    @property
    def next_step(self) -> Step | None:
        """The first step that is not completed."""
        return next((step for step in self.steps if not step.is_done), None)


def guide(viewer: User) -> Guide:
    """Return the steps with their state, in a query each."""
    useful = Q(verdict__in=(Verdict.ANSWERABLE.value, Verdict.PARTIAL.value))
    return Guide(
        (
            Step(
                "connect",
                "Connect a source",
                "A folder, a repository, a website, a bucket, a wiki or uploaded files.",
                reverse("explorer:new_connection"),
                Connection.objects.exists(),
            ),
            Step(
                "sync",
                "Run the first sync",
                "A sync reads the source, splits it into chunks and embeds them. Finished documents are searchable.",
                reverse("explorer:jobs"),
                Document.objects.exists(),
            ),
            Step(
                "access",
                "Grant access",
                "A clearance defines who can see a compartment, and up to which sensitivity.",
                reverse("explorer:clearances"),
                Grant.objects.exclude(user=viewer).exists(),
            ),
            Step(
                "query",
                "Find an answer",
                "The Explorer shows the hits of a search and explains their ranking.",
                reverse("explorer:search"),
                SearchRecord.objects.filter(useful, hit_count__gt=0).exists(),
            ),
            Step(
                "key",
                "Create an API key",
                "Applications and chat clients use it to search with the access of its user, or less.",
                reverse("explorer:keys"),
                ApiKey.objects.filter(revoked_at__isnull=True).exists(),
            ),
        )
    )


def is_dismissed(viewer: User) -> bool:
    """Return whether this admin has dismissed the guide."""
    return AuditEvent.objects.filter(actor=viewer, action=_DISMISSED).exists()


def dismiss(viewer: User) -> None:
    """Dismiss the guide for this admin, recorded in the audit log."""
    if not is_dismissed(viewer):
        audit.record(_DISMISSED, actor=viewer)
