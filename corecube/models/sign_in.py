"""Who signs in through a provider (OpenID Connect), which groups its claims open, and how fast passwords are tried."""

from typing import ClassVar

from django.contrib.auth.models import Group
from django.db import models

from corecube.models.access import User


class OidcIdentity(models.Model):
    """An account at a provider, and the user that it signs in."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="oidc_identities")
    issuer = models.CharField(max_length=500)
    #: The provider's own name for the account, which it never gives to another one.
    subject = models.CharField(max_length=255)
    #: Whether the user is an admin because the provider says so, and no longer than it does.
    gives_admin = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "OIDC identity"
        verbose_name_plural = "OIDC identities"
        constraints: ClassVar = [models.UniqueConstraint(fields=["issuer", "subject"], name="oidc_subject_once")]

    def __str__(self) -> str:
        return f"{self.user} at {self.issuer}"


class OidcGroup(models.Model):
    """A value of the groups claim puts whoever signs in with it into a group."""

    value = models.CharField(max_length=500, unique=True)
    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="oidc_values")

    class Meta:
        verbose_name = "OIDC group"
        ordering: ClassVar = ["value"]

    def __str__(self) -> str:
        return f"{self.value}: {self.group}"


class OidcMembership(models.Model):
    """Marks a membership that a sign-in made, so that it goes when the claim goes."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="oidc_memberships")
    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="oidc_memberships")

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["user", "group"], name="oidc_membership_once")]

    def __str__(self) -> str:
        return f"{self.user} in {self.group}"


class SignInPace(models.Model):
    """How fast passwords are tried under a name, from an address, or both, or in a browser that is known.

    Empty fields stand for any. A row whose moment has passed limits nothing and can be deleted.
    """

    #: A digest of the name: people type passwords into that field.
    name = models.CharField(max_length=64, blank=True)
    #: An IPv4 address, or the /64 network of an IPv6 address.
    address = models.CharField(max_length=64, blank=True)
    browser = models.CharField(max_length=64, blank=True)
    #: When all failed attempts would have come, had they come at the permitted rate (`corecube.sign_in_limits`).
    paced_until = models.DateTimeField(db_index=True)
    #: Until when the audit log needs no further event that attempts are refused.
    noted_until = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["name", "address", "browser"], name="sign_in_pace_once")
        ]

    def __str__(self) -> str:
        return f"sign-in pace until {self.paced_until}"
