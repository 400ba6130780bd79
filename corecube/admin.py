"""Django admin for users, groups, access, connections and keys: what the console does not cover."""

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from oauth2_provider import models as oauth

from corecube import audit
from corecube.connections import secrets_destination, secrets_with
from corecube.connectors import checked_config
from corecube.connectors.kinds import KINDS
from corecube.errors import ConfigError
from corecube.models import ApiKey, AuditEvent, Compartment, Connection, Grant, User
from corecube.oauth.registration import is_loopback

admin.site.site_header = admin.site.site_title = "CoreCube administration"
admin.site.unregister(Group)
# Users see and end their tokens in the console.
admin.site.unregister([oauth.AccessToken, oauth.Application, oauth.Grant, oauth.IDToken, oauth.RefreshToken])


_LISTED: Final = (Compartment, Connection)


def _never(self: admin.ModelAdmin, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ANN401, ARG001 -- Django's signature
    return False


class Audited(admin.ModelAdmin):
    """Also records changes in the audit log: the names of fields, without values.

    It shows and offers no compartments and connections of files attached to conversations.
    """

    noun: ClassVar[str]  #: The prefix of its events.

    def get_queryset(self, request: HttpRequest) -> Any:  # noqa: ANN401 -- Django's signature
        """Return the rows."""
        rows: Any = super().get_queryset(request)
        return rows.listed() if self.model in _LISTED else rows

    def get_field_queryset(self, db: str | None, db_field: Any, request: HttpRequest) -> Any:  # noqa: ANN401 -- Django's signature
        """Return what a field offers."""
        related = db_field.remote_field.model
        return related.objects.listed() if related in _LISTED else super().get_field_queryset(db, db_field, request)

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:  # noqa: ANN401 -- Django's signature
        """Log that a row was added."""
        self._audit("created", request, obj)
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:  # noqa: ANN401 -- Django's signature
        """Log that a row was changed."""
        if message:
            self._audit("changed", request, obj, changed=list(_changes(message)))
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:  # noqa: ANN401 -- Django's signature
        """Log that rows are about to be deleted."""
        for obj in queryset:
            self._audit("deleted", request, obj)
        return super().log_deletions(request, queryset)

    def _audit(self, verb: str, request: HttpRequest, obj: object, **details: object) -> None:
        actor = request.user if isinstance(request.user, User) else None
        subject = getattr(obj, "slug", "") or str(obj)
        audit.record(f"{self.noun}.{verb}", actor=actor, subject=subject, **details)


def _changes(message: list[dict[str, dict[str, Any]]]) -> Iterator[str]:
    """Yield the changes without values: "name", "added grant group finance on ledger"."""
    for part in message:
        for verb, change in part.items():
            row = f"{verb} {change['name']} {change['object']}" if "name" in change else ""
            fields = ", ".join(field.lower() for field in change.get("fields", ()))
            yield from [": ".join(filter(None, (row, fields)))] if row else fields.split(", ")


@admin.register(User)
class AuditedUserAdmin(Audited, UserAdmin):
    """Users with their permissions in the Django admin.

    Only the console changes admin rights and activation: it protects the last admin, and ends sessions.
    """

    noun = "user"
    readonly_fields = (*UserAdmin.readonly_fields, "is_active", "is_staff", "is_superuser", "last_login", "date_joined")

    has_delete_permission = _never


@admin.register(Group)
class AuditedGroupAdmin(Audited, GroupAdmin):
    """Groups with their permissions in the Django admin."""

    noun = "group"


class CompartmentFilter(admin.RelatedFieldListFilter):
    """The compartments to filter a list by."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> Any:  # noqa: ANN401, ARG002 -- Django's signature
        """Return the compartments that lists show."""
        return [(it.pk, it.name) for it in Compartment.objects.listed()]


class GrantInline(admin.TabularInline):
    """A compartment's grants, edited on its page."""

    model = Grant
    extra = 0


@admin.register(Compartment)
class CompartmentAdmin(Audited):
    """Compartments with their grants."""

    noun = "compartment"
    list_display = ("name", "slug", "description")
    search_fields = ("name", "slug")
    prepopulated_fields = {"slug": ("name",)}
    inlines = (GrantInline,)


@admin.register(Grant)
class GrantAdmin(Audited):
    """Grants of users and groups on compartments."""

    noun = "grant"
    list_display = ("holder", "compartment", "clearance")
    list_filter = (("compartment", CompartmentFilter), "clearance", "group")
    list_select_related = ("user", "group", "compartment")

    def get_queryset(self, request: HttpRequest) -> Any:  # noqa: ANN401 -- Django's signature
        """Return the grants on compartments that lists show."""
        return super().get_queryset(request).filter(compartment__in=Compartment.objects.listed())


class ConnectionForm(forms.ModelForm):
    """Validates a connection with its connector."""

    def clean(self) -> dict[str, Any]:
        """Check kind and config together."""
        cleaned = super().clean() or self.cleaned_data
        kind: str = cleaned.get("kind", "")
        after = Connection(kind=kind, config=cleaned.get("config", self.instance.config))
        if self.instance.sealed_secrets and secrets_destination(self.instance) != secrets_destination(after):
            message = (
                "The connection has secrets for its current host. Change the host in the console and enter them again."
            )
            raise ValidationError({"config": message})
        if kind in KINDS and "config" in cleaned and {"kind", "config"} & set(self.changed_data):
            try:
                secrets, path = secrets_with(self.instance, {}), self.instance.command_path
                checked_config(kind, cleaned["config"], secrets, command_path=path)
            except ConfigError as error:
                raise ValidationError({"config": str(error)}) from error
        return cleaned

    def clean_config(self) -> dict[str, Any]:
        """Reject JSON that is not an object."""
        config = self.cleaned_data["config"]
        if config is None:
            return {}
        if not isinstance(config, dict):
            raise ValidationError('The config must be a JSON object, such as {"path": "/srv/documents"}.')
        return config

    def clean_kind(self) -> str:
        """Reject an unknown kind, unless the connection already has it."""
        kind: str = self.cleaned_data["kind"]
        if kind not in KINDS and "kind" in self.changed_data:
            raise ValidationError(f"Unknown kind. Available kinds: {', '.join(KINDS)}.")
        return kind


@admin.register(Connection)
class ConnectionAdmin(Audited):
    """Connections with their state."""

    noun = "connection"
    form = ConnectionForm
    list_display = ("name", "kind", "compartment", "sensitivity", "trust", "enabled", "last_synced_at")
    list_filter = ("kind", ("compartment", CompartmentFilter), "sensitivity", "enabled")
    search_fields = ("name", "slug")
    prepopulated_fields = {"slug": ("name",)}
    readonly_fields = ("last_synced_at",)


@admin.register(ApiKey)
class ApiKeyAdmin(Audited):
    """API keys. The console creates them, because it shows the secret once without storing it in a cookie."""

    noun = "key"
    list_display = ("name", "prefix", "user", "created_at", "expires_at", "revoked_at", "last_used_at")
    list_select_related = ("user",)
    readonly_fields = ("user", "prefix", "created_at", "last_used_at")
    filter_horizontal = ("compartments", "push_connections")

    has_add_permission = _never

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:  # noqa: ANN401, FBT001 -- Django's signature
        """Save the key and log when it is revoked."""
        super().save_model(request, obj, form, change)
        if obj.revoked_at and "revoked_at" in form.changed_data:
            actor = request.user if isinstance(request.user, User) else None
            audit.record("key.revoked", actor=actor, subject=str(obj), user=obj.user.username)


class OAuthClientForm(forms.ModelForm):
    """A client added by an admin: as one that registers itself, but with any https redirect."""

    def clean_redirect_uris(self) -> str:
        """Refuse http to another computer."""
        uris: list[str] = self.cleaned_data["redirect_uris"].split()
        if not uris or not all(uri.startswith("https://") or is_loopback(uri) for uri in uris):
            raise ValidationError("Enter https addresses, or http addresses of the user's own computer.")
        return " ".join(uris)

    def clean(self) -> dict[str, Any] | None:
        """Make the client public: it has no secret, and its codes need PKCE."""
        self.instance.client_type = oauth.Application.CLIENT_PUBLIC
        self.instance.authorization_grant_type = oauth.Application.GRANT_AUTHORIZATION_CODE
        self.instance.client_secret, self.instance.hash_client_secret = "", False
        return super().clean()


@admin.register(oauth.Application)
class OAuthClientAdmin(Audited):
    """OAuth clients of `/mcp`. Deleting one ends the access that it has for its users."""

    noun = "client"
    form = OAuthClientForm
    list_display = ("name", "client_id", "redirect_uris", "registration_source", "created")
    search_fields = ("name", "client_id")
    fields = ("name", "redirect_uris", "client_id", "registration_source", "created")
    readonly_fields = ("client_id", "registration_source", "created")


@admin.register(AuditEvent)
class AuditEventAdmin(admin.ModelAdmin):
    """The audit log, read-only."""

    list_display = ("at", "actor", "action", "subject")
    list_filter = ("action",)
    list_select_related = ("actor",)

    has_add_permission = has_change_permission = has_delete_permission = _never
