"""Users, compartments, grants, API keys and the audit log."""

import hashlib
import secrets
import uuid
from typing import ClassVar, Final, Self

from django.conf import settings
from django.contrib.auth.models import AbstractUser, Group
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from corecube.models.choices import SENSITIVITY_CHOICES

_KEY_SCHEME: Final = "cc"
MAX_REQUESTS_PER_MINUTE: Final = 100_000


class User(AbstractUser):
    """A person who signs in. `is_staff` makes an admin; what a user may see comes from grants alone."""

    @property
    def is_admin(self) -> bool:
        """Whether the console and run-as are open to this user."""
        return self.is_active and self.is_staff


class Compartment(models.Model):
    """A part of the organisation whose documents are granted together."""

    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=120)
    description = models.TextField(blank=True)

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name


class Grant(models.Model):
    """A user or a group may see one compartment up to a sensitivity."""

    user = models.ForeignKey(User, null=True, blank=True, on_delete=models.CASCADE, related_name="grants")
    group = models.ForeignKey(Group, null=True, blank=True, on_delete=models.CASCADE, related_name="grants")
    compartment = models.ForeignKey(Compartment, on_delete=models.CASCADE, related_name="grants")
    clearance = models.PositiveSmallIntegerField(choices=SENSITIVITY_CHOICES)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                name="grant_user_or_group",
                condition=Q(user__isnull=False, group__isnull=True) | Q(user__isnull=True, group__isnull=False),
                violation_error_message="A grant names either a user or a group.",
            ),
            models.UniqueConstraint(fields=["user", "compartment"], name="grant_once_per_user"),
            models.UniqueConstraint(fields=["group", "compartment"], name="grant_once_per_group"),
        ]

    def __str__(self) -> str:
        return f"{self.holder} may see {self.compartment} up to {self.get_clearance_display()}"

    @property
    def holder(self) -> str:
        """The grant's user or group as people read it: "group finance-eu"."""
        return f"user {self.user.username}" if self.user else f"group {self.group.name if self.group else '?'}"


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    """Look-ups of API keys; they fail closed."""

    def usable(self) -> Self:
        """Return the keys that are neither revoked nor expired and whose user is active."""
        now = timezone.now()
        return self.filter(
            Q(expires_at__isnull=True) | Q(expires_at__gt=now), revoked_at__isnull=True, user__is_active=True
        )

    def for_secret(self, secret: str) -> "ApiKey | None":
        """Return the usable key with this secret, or None."""
        keys = self.usable().select_related("user").prefetch_related("compartments")
        return keys.filter(digest=key_digest(secret)).first()


def key_digest(secret: str) -> str:
    """Return the SHA-256 of a key. The secret has 256 random bits, so a slow hash would add nothing."""
    return hashlib.sha256(secret.encode()).hexdigest()


class ApiKey(models.Model):
    """A program's way in. It acts as its user and can only see less, never more."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=120)
    prefix = models.CharField(
        max_length=12, editable=False, help_text="The key's first characters, to tell keys apart."
    )
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    compartments = models.ManyToManyField(
        Compartment, blank=True, help_text="Narrows the key to these compartments; empty leaves all of its user's."
    )
    max_sensitivity = models.PositiveSmallIntegerField(
        choices=SENSITIVITY_CHOICES, null=True, blank=True, help_text="Narrows the key to this sensitivity and below."
    )
    presets = models.JSONField(default=list, blank=True, help_text="Names of the presets it may use; empty allows all.")
    push_connections = models.ManyToManyField(
        "corecube.Connection",
        blank=True,
        related_name="push_keys",
        help_text="Connections that it may push documents to; empty allows none. An admin's key may push anyway.",
    )
    requests_per_minute = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_REQUESTS_PER_MINUTE)],
        help_text="Requests that it may send in a minute; empty for any number.",
    )
    may_forward_users = models.BooleanField(
        default=False, editable=False, help_text="Whether it may act for users whom it names in a signed header."
    )
    #: What it signs with, encrypted (`corecube.secrets`); no form and no API shows it.
    sealed_forwarding_secret = models.TextField(blank=True, default="", editable=False)
    #: When everything that it has sent would have come, had it come at its rate (`corecube.rate_limit`).
    paced_until = models.DateTimeField(null=True, editable=False)

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        verbose_name = "API key"
        ordering: ClassVar = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def draw_secret(self) -> str:
        """Give an unsaved key a fresh secret and return it; only its digest and prefix are kept."""
        secret = f"{_KEY_SCHEME}_{secrets.token_urlsafe(32)}"
        self.prefix, self.digest = secret[:9], key_digest(secret)
        return secret

    @classmethod
    def issue(cls, *, user: User, name: str) -> "tuple[ApiKey, str]":
        """Save a new key and return it with its secret, which is stored nowhere and shown once."""
        key = cls(user=user, name=name)
        secret = key.draw_secret()
        key.save()
        return key, secret


class ForwardedToken(models.Model):
    """A token with an id that a key has sent, kept until it ends, so that nobody sends it again."""

    key = models.ForeignKey(ApiKey, on_delete=models.CASCADE, related_name="forwarded_tokens")
    #: SHA-256 of the token's id.
    digest = models.CharField(max_length=64)
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["key", "digest"], name="forwarded_token_once")]

    def __str__(self) -> str:
        return self.digest


class AuditEvent(models.Model):
    """One deed worth remembering. Holds names and ids, never document or query text."""

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="audit_events"
    )
    #: Dotted verb: "search.run_as", "key.issued", "connection.sync_queued".
    action = models.CharField(max_length=60)
    subject = models.CharField(max_length=200, blank=True)
    details = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering: ClassVar = ["-at", "-id"]

    def __str__(self) -> str:
        return f"{self.action} {self.subject}"
