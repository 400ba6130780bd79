"""Connections, and documents that applications push to them."""

from typing import ClassVar, Final, Self

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from corecube.models.access import FRESHNESS_CHOICES, LANGUAGE_CHOICES, SENSITIVITY_CHOICES, TRUST_CHOICES, Compartment
from corecube.scope import FreshnessBasis, Sensitivity, TrustLevel

CHUNK_PROFILE_CHOICES: Final = (
    ("default", "512 tokens, maximum 1,024, overlap 50"),
    ("chunk_first", "768 tokens, maximum 1,536, overlap 128"),
)
ENRICHMENT_CHOICES: Final = (
    ("", "Nothing"),
    ("context", "A paragraph with context for the chunk"),
    ("questions", "Questions that the chunk answers"),
    ("both", "The paragraph and the questions"),
    ("triples", "Relations: links between documents"),
    ("all", "The paragraph, the questions and the links"),
)
_MAX_MINUTES: Final = 40_320  #: Maximum sync interval: four weeks.


class ConnectionQuerySet(models.QuerySet["Connection"]):
    """Connections."""

    def listed(self) -> Self:
        """Return those that lists show: all but files attached to conversations."""
        return self.filter(is_attached=False)

    def private(self) -> Self:
        """Return those that only their user may read: files attached to conversations, and the memory of agents."""
        return self.filter(models.Q(is_attached=True) | models.Q(memory__isnull=False))


class Connection(models.Model):
    """A source of documents, which share its compartment, sensitivity and trust level."""

    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=20, help_text="The connector that reads it: folder, upload …")
    config = models.JSONField(default=dict, blank=True, help_text="What the connector needs, such as a folder's path.")
    #: The path set by a command on this machine, which the connection may always read.
    command_path = models.TextField(blank=True, default="", editable=False)
    compartment = models.ForeignKey(Compartment, on_delete=models.PROTECT, related_name="connections")
    sensitivity = models.PositiveSmallIntegerField(choices=SENSITIVITY_CHOICES, default=Sensitivity.INTERNAL.value)
    trust = models.PositiveSmallIntegerField(choices=TRUST_CHOICES, default=TrustLevel.REFERENCE.value)
    source_type = models.CharField(
        max_length=20, blank=True, help_text="Overrides the documents' own source type (pdf, excel, web …)."
    )
    half_life_days = models.FloatField(
        default=180.0, validators=[MinValueValidator(0.01)], help_text="Days after which freshness has halved."
    )
    freshness_basis = models.CharField(
        max_length=10,
        choices=FRESHNESS_CHOICES,
        default=FreshnessBasis.SYNCED.value,
        help_text="Whether age counts from the last sync or from the document's own last change.",
    )
    language = models.CharField(
        max_length=20,
        choices=LANGUAGE_CHOICES,
        blank=True,
        help_text="Decides how words are stemmed for full-text search. Automatic: the first sync chooses it."
        " A change takes effect with the next sync.",
    )
    chunk_profile = models.CharField(
        max_length=20,
        choices=CHUNK_PROFILE_CHOICES,
        default="default",
        help_text="Sizes of the chunks. A change takes effect with the next sync, which processes all documents again.",
    )
    enrichment = models.CharField(
        max_length=20,
        choices=ENRICHMENT_CHOICES,
        blank=True,
        help_text="What a language model adds to the chunks after a sync. Requires an enrichment model.",
    )
    enabled = models.BooleanField(default=True, help_text="A disabled connection is neither synced nor searched.")
    #: The secrets of the connector, encrypted (`corecube.secrets`) and never shown.
    sealed_secrets = models.TextField(blank=True, default="", editable=False)
    sync_every_minutes = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(_MAX_MINUTES)],
        help_text="Minutes between automatic syncs; empty for none.",
    )
    #: Files attached to a conversation: searched only where a request names it, and listed nowhere.
    is_attached = models.BooleanField(default=False, db_default=False, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    last_synced_at = models.DateTimeField(null=True, blank=True, editable=False)
    #: The time of the next scheduled sync; empty before the first.
    next_sync_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = ConnectionQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name


class PushedItem(models.Model):
    """A pushed document, stored so that it can be processed again."""

    connection = models.ForeignKey(Connection, on_delete=models.CASCADE, related_name="pushed_items")
    external_id = models.TextField()  #: The id of the client, unique in the connection.
    name = models.TextField()  #: The file name, whose suffix selects the parser.
    media_type = models.CharField(max_length=120, blank=True)
    uri = models.TextField(blank=True)
    content = models.BinaryField()
    facts = models.JSONField(default=dict)  #: Metadata: title, author ... (strings only).
    modified_at = models.DateTimeField(null=True)
    version = models.CharField(max_length=64)  #: SHA-256 of the content and all fields above.
    pushed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["external_id"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["connection", "external_id"], name="one_pushed_item_per_id")
        ]

    def __str__(self) -> str:
        return self.external_id
