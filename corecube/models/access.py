"""Users, compartments, grants, API keys and the audit log."""

import hashlib
import secrets
import uuid
from functools import cache
from typing import ClassVar, Final, Self

from django.conf import settings
from django.contrib.auth.models import AbstractUser, Group
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import connection, models
from django.db.models import Q
from django.utils import timezone

from corecube.database import Prepared, columns_of, execution, instance_of
from corecube.scope import FreshnessBasis, Sensitivity, TrustLevel

_LANGUAGES: Final = (
    "arabic armenian basque catalan danish dutch english finnish french german greek hindi hungarian indonesian irish "
    "italian lithuanian nepali norwegian portuguese romanian russian serbian spanish swedish tamil turkish yiddish"
)
#: Text search configurations of every server from PostgreSQL 14, with labels; the first sync chooses one for "".
LANGUAGE_CHOICES: Final = (
    ("", "Automatic"),
    ("simple", "Any (no stemming)"),
    *((language, language.capitalize()) for language in _LANGUAGES.split()),
)

SENSITIVITY_CHOICES = [(level.value, level.name.capitalize()) for level in Sensitivity]
TRUST_CHOICES = [(level.value, level.name.capitalize()) for level in TrustLevel]
FRESHNESS_CHOICES = [(basis.value, f"last {basis.value}") for basis in FreshnessBasis]


KEY_PREFIX: Final = "cc_"
MAX_REQUESTS_PER_MINUTE: Final = 100_000


class User(AbstractUser):
    """A user. `is_staff` makes an admin; access to documents comes only from grants."""

    @property
    def is_admin(self) -> bool:
        """Whether the user can use the console and act as other users."""
        return self.is_active and self.is_staff


class CompartmentQuerySet(models.QuerySet["Compartment"]):
    """Compartments."""

    def listed(self) -> Self:
        """Return those that lists show: all but those of files attached to conversations."""
        return self.exclude(connections__is_attached=True)


class Compartment(models.Model):
    """A set of connections to which access is granted together."""

    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=120)
    description = models.TextField(blank=True)

    objects = CompartmentQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name


class Grant(models.Model):
    """Access of a user or a group to a compartment, up to a sensitivity."""

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
        """The user or group as text: "group finance-eu"."""
        return f"user {self.user.username}" if self.user else f"group {self.group.name if self.group else '?'}"


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    """Queries of API keys."""

    def usable(self) -> Self:
        """Return the keys of active users that are neither revoked nor expired."""
        now = timezone.now()
        return self.filter(
            Q(expires_at__isnull=True) | Q(expires_at__gt=now), revoked_at__isnull=True, user__is_active=True
        )

    def for_secret(self, secret: str) -> "ApiKey | None":
        """Return the usable key with this secret, with its user and compartments, or None; in one round trip.

        Every request with a key reads it, and Django's ORM takes ten times as long to compile the two queries.
        """
        held, compartments = _key_statements()
        with connection.cursor() as cursor:
            both = f"{execution(cursor, held)};\n{execution(cursor, compartments)}"
            cursor.execute(both, {"digest": key_digest(secret), "now": timezone.now()})
            row = cursor.fetchone()
            cursor.nextset()
            limited = cursor.fetchall()
        if row is None:
            return None
        key, of_user = instance_of(ApiKey, row)
        key.user, _ = instance_of(User, of_user)
        # As `prefetch_related` does, but for further filters.
        found = [instance_of(Compartment, it)[0] for it in limited]
        key._prefetched_objects_cache = {"compartments": found}  # type: ignore[attr-defined]  # noqa: SLF001
        return key


#: The usable key with a digest and its user; and the key's compartments.
_KEY: Final = """
SELECT {key}, {user}
FROM corecube_apikey
JOIN corecube_user ON corecube_user.id = user_id
WHERE digest = %(digest)s AND revoked_at IS NULL AND is_active AND (expires_at IS NULL OR expires_at > %(now)s)
"""
_KEY_COMPARTMENTS: Final = """
SELECT {compartment}
FROM corecube_apikey
JOIN corecube_apikey_compartments ON apikey_id = corecube_apikey.id
JOIN corecube_compartment ON corecube_compartment.id = compartment_id
WHERE digest = %(digest)s
ORDER BY corecube_compartment.name
"""


@cache
def _key_statements() -> tuple[Prepared, Prepared]:
    key, user, compartment = map(columns_of, (ApiKey, User, Compartment))
    return Prepared(_KEY.format(key=key, user=user)), Prepared(_KEY_COMPARTMENTS.format(compartment=compartment))


def key_digest(secret: str) -> str:
    """Return the SHA-256 of a key, whose 256 random bits need no slow hash."""
    return hashlib.sha256(secret.encode()).hexdigest()


class ApiKey(models.Model):
    """An API key. It acts for its user with the same or less access."""

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
    #: The forwarding secret, encrypted (`corecube.secrets`) and never shown.
    sealed_forwarding_secret = models.TextField(blank=True, default="", editable=False)
    #: When all requests would have arrived at the permitted rate (`corecube.rate_limit`).
    paced_until = models.DateTimeField(null=True, editable=False)

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        verbose_name = "API key"
        ordering: ClassVar = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def draw_secret(self) -> str:
        """Give an unsaved key a new secret and return it; only digest and prefix are stored."""
        secret = f"{KEY_PREFIX}{secrets.token_urlsafe(32)}"
        self.prefix, self.digest = secret[:9], key_digest(secret)
        return secret

    @classmethod
    def issue(cls, *, user: User, name: str) -> "tuple[ApiKey, str]":
        """Save a new key and return it with its secret, which is not stored."""
        key = cls(user=user, name=name)
        secret = key.draw_secret()
        key.save()
        return key, secret


class ForwardedToken(models.Model):
    """The id of a used token, stored until it expires, to reject a second use."""

    key = models.ForeignKey(ApiKey, on_delete=models.CASCADE, related_name="forwarded_tokens")
    digest = models.CharField(max_length=64)  #: SHA-256 of the token's id.
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["key", "digest"], name="forwarded_token_once")]

    def __str__(self) -> str:
        return self.digest


class AuditEvent(models.Model):
    """An audit event with names and ids, without document or query text."""

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="audit_events"
    )
    #: Subject and verb: "search.run_as", "key.issued", "connection.sync_queued".
    action = models.CharField(max_length=60)
    subject = models.CharField(max_length=200, blank=True)
    details = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering: ClassVar = ["-at", "-id"]

    def __str__(self) -> str:
        return f"{self.action} {self.subject}"
