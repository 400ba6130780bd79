"""Identities and groups of the sign-in provider (OpenID Connect), and limits of failed sign-ins."""

from typing import ClassVar

from django.contrib.auth.models import Group
from django.db import models

from corecube.models.access import User


class OidcIdentity(models.Model):
    """An account at a provider with its user."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="oidc_identities")
    issuer = models.CharField(max_length=500)
    subject = models.CharField(max_length=255)  #: The permanent id of the account at the provider.
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
    """A value of the groups claim, mapped to a group."""

    value = models.CharField(max_length=500, unique=True)
    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="oidc_values")

    class Meta:
        verbose_name = "OIDC group"
        ordering: ClassVar = ["value"]

    def __str__(self) -> str:
        return f"{self.value}: {self.group}"


class OidcMembership(models.Model):
    """Marks a membership by sign-in, which ends with the claim."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="oidc_memberships")
    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="oidc_memberships")

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["user", "group"], name="oidc_membership_once")]

    def __str__(self) -> str:
        return f"{self.user} in {self.group}"


class SignInPace(models.Model):
    """The rate of failed sign-ins by name, address, both, or known browser.

    Empty fields match anything. A row whose time has passed can be deleted.
    """

    #: A digest of the name, because users may enter a password by mistake.
    name = models.CharField(max_length=64, blank=True)
    address = models.CharField(max_length=64, blank=True)  #: An IPv4 address, or the /64 network of an IPv6 address.
    browser = models.CharField(max_length=64, blank=True)
    #: When all failures would have occurred at the permitted rate (`corecube.sign_in_limits`).
    paced_until = models.DateTimeField(db_index=True)
    noted_until = models.DateTimeField(null=True)  #: Until when refused attempts are not recorded again.

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["name", "address", "browser"], name="sign_in_pace_once")
        ]

    def __str__(self) -> str:
        return f"sign-in pace until {self.paced_until}"
