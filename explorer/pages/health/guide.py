"""The first steps of an installation, and which of them are done: read from the data, never ticked off by hand."""

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
    """One step."""

    key: str
    title: str
    text: str
    #: Where it is done.
    address: str
    is_done: bool


@dataclass(frozen=True, slots=True)
class Guide:
    """The steps in the order in which one leads to the next."""

    steps: tuple[Step, ...]

    @property
    def is_done(self) -> bool:
        """Whether nothing is left."""
        return all(step.is_done for step in self.steps)

    @property
    def done(self) -> int:
        """How many are done."""
        return sum(step.is_done for step in self.steps)

    @property
    def following(self) -> Step | None:
        """The first that is not done."""
        return next((step for step in self.steps if not step.is_done), None)


def guide(viewer: User) -> Guide:
    """Return the steps as they stand, in a query each."""
    useful = Q(verdict__in=(Verdict.ANSWERABLE.value, Verdict.PARTIAL.value))
    return Guide(
        (
            Step(
                "connect",
                "Connect a source",
                "A folder, a repository, a web site, a bucket, a wiki, or files that you upload.",
                reverse("explorer:new_connection"),
                Connection.objects.exists(),
            ),
            Step(
                "sync",
                "Let the first sync finish",
                "It reads the source, cuts it into chunks and embeds them. Searches find what is there already.",
                reverse("explorer:jobs"),
                Document.objects.exists(),
            ),
            Step(
                "access",
                "Give somebody access",
                "A clearance says who may see a compartment, and up to which sensitivity.",
                reverse("explorer:clearances"),
                Grant.objects.exclude(user=viewer).exists(),
            ),
            Step(
                "query",
                "Ask a question that is answered",
                "The Explorer shows what was found, and why each hit stands where it does.",
                reverse("explorer:search"),
                SearchRecord.objects.filter(useful, hit_count__gt=0).exists(),
            ),
            Step(
                "key",
                "Make an API key",
                "Programs and chat clients search with it, and see what its owner may see, or less.",
                reverse("explorer:keys"),
                ApiKey.objects.filter(revoked_at__isnull=True).exists(),
            ),
        )
    )


def is_dismissed(viewer: User) -> bool:
    """Return whether this admin has put the guide away."""
    return AuditEvent.objects.filter(actor=viewer, action=_DISMISSED).exists()


def dismiss(viewer: User) -> None:
    """Put the guide away for this admin; the audit log is where that is kept."""
    if not is_dismissed(viewer):
        audit.record(_DISMISSED, actor=viewer)
