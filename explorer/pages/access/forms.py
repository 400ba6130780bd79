"""Forms of the access pages: compartments, users, groups and API keys."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from django import forms
from django.contrib.auth.models import Group
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.db.models import Min, Q
from django.utils import timezone

from corecube.grants import Holder
from corecube.keys import KeyTerms, visible_compartments
from corecube.models import Compartment, Connection, User
from corecube.models.access import MAX_REQUESTS_PER_MINUTE, SENSITIVITY_CHOICES
from corecube.reach import visible_with
from corecube.scope import Sensitivity
from explorer.components.forms import ConsoleForm, EditForm
from explorer.wording import level, preset_title
from retrieval.presets.catalog import PRESETS

_LIFETIMES: Final = (("7", "7 days"), ("30", "30 days"), ("90", "90 days"), ("365", "1 year"), ("", "Never expires"))


def _text(*, length: int, required: bool = True) -> forms.CharField:
    return forms.CharField(max_length=length, required=required, widget=forms.TextInput(attrs={"autocomplete": "off"}))


class CompartmentForm(EditForm, ConsoleForm):
    """Name and description of a compartment."""

    name = _text(length=120)
    description = forms.CharField(required=False, max_length=2000, widget=forms.Textarea(attrs={"rows": 3}))


class NamesForm(EditForm, ConsoleForm):
    """Names of a user."""

    first_name = _text(length=150, required=False)
    last_name = _text(length=150, required=False)


class AccessForm(ConsoleForm):
    """Groups to join, and a clearance on compartments."""

    groups = forms.ModelMultipleChoiceField(
        Group.objects.order_by("name"), required=False, widget=forms.CheckboxSelectMultiple
    )
    compartments = forms.ModelMultipleChoiceField(
        Compartment.objects.listed(), required=False, widget=forms.CheckboxSelectMultiple
    )
    clearance = forms.TypedChoiceField(
        choices=SENSITIVITY_CHOICES, coerce=int, initial=Sensitivity.INTERNAL, required=False, empty_value=None
    )

    def visible(self) -> tuple[str, ...]:
        """Return the names of the connections that a new user with this access sees."""
        values = self.cleaned_data
        return visible_with(values["groups"], values["compartments"], self.level)

    def too_low(self) -> list[str]:
        """Return a sentence for each chosen compartment whose connections are all above the clearance."""
        lowest = Min("connections__sensitivity", filter=Q(connections__enabled=True))
        found = self.cleaned_data["compartments"].annotate(lowest=lowest).filter(lowest__gt=self.level)
        return [
            f"{name} has no connection below {level(Sensitivity(lowest))}. "
            f"Select {level(Sensitivity(lowest)).capitalize()} to give access to it."
            for name, lowest in found.values_list("name", "lowest")
        ]

    @property
    def level(self) -> Sensitivity:
        """The clearance; internal if none was sent."""
        value = self.cleaned_data.get("clearance")
        return Sensitivity.INTERNAL if value is None else Sensitivity(value)


class NewUserForm(AccessForm, NamesForm):
    """A new user."""

    username = forms.CharField(
        max_length=150,
        validators=[UnicodeUsernameValidator()],
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "autofocus": True}),
    )
    password = forms.CharField(
        required=False, strip=False, max_length=4096, widget=forms.PasswordInput(attrs={"autocomplete": "new-password"})
    )
    field_order = ("username", "first_name", "last_name", "password", "groups", "compartments", "clearance")

    def clean_username(self) -> str:
        """Reject a name that is already taken, ignoring case."""
        username: str = self.cleaned_data["username"]
        if User.objects.filter(username__iexact=username).exists():
            raise forms.ValidationError("This username is already taken.")
        return username

    def clean(self) -> dict[str, Any]:
        """Check the password by the configured rules, which also compare it with the names."""
        values = super().clean() or self.cleaned_data
        if password := values.get("password"):
            names = {name: values.get(name, "") for name in ("username", "first_name", "last_name")}
            try:
                validate_password(password, User(**names))
            except forms.ValidationError as error:
                self.add_error("password", error)
        return values


class GiveAccessForm(AccessForm):
    """Groups and users to whom a clearance on compartments is given."""

    users = forms.ModelMultipleChoiceField(
        User.objects.filter(is_active=True).order_by("username"), required=False, widget=forms.CheckboxSelectMultiple
    )
    field_order = ("groups", "users", "compartments", "clearance")

    def clean(self) -> dict[str, Any]:
        """Require somebody and something."""
        values = super().clean() or self.cleaned_data
        if not values.get("groups") and not values.get("users"):
            self.add_error("groups", "Select at least one group or user.")
        if not values.get("compartments"):
            self.add_error("compartments", "Select at least one compartment.")
        return values

    @property
    def gift(self) -> dict[str, Any]:
        """What is given to whom: the arguments of `give_clearances`."""
        values = self.cleaned_data
        holders = [Holder.of(it) for it in (*values["groups"], *values["users"])]
        return {"holders": holders, "compartments": list(values["compartments"]), "clearance": self.level}


class GroupsForm(EditForm, ConsoleForm):
    """The groups of a user."""

    groups = forms.ModelMultipleChoiceField(
        Group.objects.order_by("name"), required=False, widget=forms.CheckboxSelectMultiple
    )


class GroupForm(EditForm, ConsoleForm):
    """A group's name."""

    name = _text(length=150)


class ClaimForm(ConsoleForm):
    """A value of the sign-in provider's groups claim."""

    value = _text(length=500)


class KeyForm(ConsoleForm):
    """The settings of a new API key. Only admins select its user, push access and user forwarding."""

    name = _text(length=120)
    lifetime = forms.ChoiceField(choices=_LIFETIMES, required=False, initial="90")
    max_sensitivity = forms.TypedChoiceField(
        choices=[("", "Same as its user"), *SENSITIVITY_CHOICES], coerce=int, empty_value=None, required=False
    )
    requests_per_minute = forms.IntegerField(required=False, min_value=1, max_value=MAX_REQUESTS_PER_MINUTE)
    compartments = forms.ModelMultipleChoiceField(
        Compartment.objects.none(), required=False, widget=forms.CheckboxSelectMultiple
    )
    presets = forms.MultipleChoiceField(
        required=False,
        choices=[(name, f"{preset_title(name)} ({name})") for name in PRESETS],
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, data: Mapping[str, Any] | None = None, *, actor: User, owner: User | None = None) -> None:
        super().__init__(data, initial={"user": owner.username if owner else actor.username})
        self._actor = actor
        # The list must not reveal other compartments to users who are not admins.
        compartments = Compartment.objects.listed()
        if not actor.is_admin:
            compartments = compartments.filter(pk__in=[it.pk for it in visible_compartments(actor)])
        field = self.fields["compartments"]
        assert isinstance(field, forms.ModelMultipleChoiceField)  # noqa: S101 -- declared above
        field.queryset = compartments
        if actor.is_admin:
            self._add_admin_fields()

    @property
    def owner(self) -> User:
        """The user for whom the key acts."""
        user: User = self.cleaned_data.get("user") or self._actor
        return user

    @property
    def terms(self) -> KeyTerms:
        """The settings of the key."""
        values = self.cleaned_data
        lifetime = values["lifetime"]
        return KeyTerms(
            name=values["name"],
            expires_at=timezone.now() + timedelta(days=int(lifetime)) if lifetime else None,
            max_sensitivity=values["max_sensitivity"],
            compartments=tuple(values["compartments"]),
            presets=tuple(values["presets"]),
            push_connections=tuple(values.get("push_connections", ())),
            requests_per_minute=values["requests_per_minute"],
        )

    @property
    def may_forward_users(self) -> bool:
        """Whether the key may act for other users."""
        return bool(self.cleaned_data.get("may_forward_users"))

    def _add_admin_fields(self) -> None:
        self.fields["user"] = forms.ModelChoiceField(
            User.objects.filter(is_active=True).order_by("username"), to_field_name="username", empty_label=None
        )
        self.fields["may_forward_users"] = forms.BooleanField(required=False)
        self.fields["push_connections"] = forms.ModelMultipleChoiceField(
            Connection.objects.listed().filter(kind="push"), required=False, widget=forms.CheckboxSelectMultiple
        )
