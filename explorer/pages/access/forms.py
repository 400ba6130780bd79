"""Forms of the access pages: compartments, users, groups and API keys."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django import forms
from django.contrib.auth.models import Group
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.utils import timezone

from corecube.keys import KeyTerms, seen_compartments
from corecube.models import Compartment, Connection, User
from corecube.models.access import MAX_REQUESTS_PER_MINUTE
from corecube.models.levels import SENSITIVITY_CHOICES
from explorer.components.edit_form import EditForm
from retrieval.presets.catalog import PRESETS

_INPUT: Final = {"class": "input"}
#: Days that a key can be given, and what they are called.
_LIFETIMES: Final = (("7", "7 days"), ("30", "30 days"), ("90", "90 days"), ("365", "A year"), ("", "For ever"))


def _text(label: str, *, length: int, help_text: str = "", required: bool = True) -> forms.CharField:
    widget = forms.TextInput(attrs={**_INPUT, "autocomplete": "off"})
    return forms.CharField(label=label, max_length=length, help_text=help_text, required=required, widget=widget)


class CompartmentForm(EditForm, forms.Form):
    """A compartment's name and what it is for."""

    name = _text("Name", length=120)
    description = forms.CharField(
        label="Description",
        required=False,
        max_length=2000,
        help_text="What belongs in it, for those who give grants.",
        widget=forms.Textarea(attrs={**_INPUT, "rows": 3}),
    )


class NamesForm(EditForm, forms.Form):
    """What a user goes by."""

    first_name = _text("First name", length=150, required=False)
    last_name = _text("Last name", length=150, required=False)


class NewUserForm(NamesForm):
    """A user who does not exist yet."""

    username = forms.CharField(
        label="Username",
        max_length=150,
        validators=[UnicodeUsernameValidator()],
        help_text="What they sign in with. It cannot be changed later.",
        widget=forms.TextInput(attrs={**_INPUT, "autocomplete": "off", "autocapitalize": "none"}),
    )
    password = forms.CharField(
        label="Password",
        required=False,
        strip=False,
        max_length=4096,
        help_text="Leave it empty to get a link with which they set one themselves.",
        widget=forms.PasswordInput(attrs={**_INPUT, "autocomplete": "new-password"}),
    )
    field_order = ("username", "first_name", "last_name", "password")

    def clean_username(self) -> str:
        """Refuse a name that somebody has, in whatever case."""
        username: str = self.cleaned_data["username"]
        if User.objects.filter(username__iexact=username).exists():
            raise forms.ValidationError("Somebody has this username already.")
        return username

    def clean(self) -> dict[str, Any]:
        """Hold the password to the installation's rules, which know the names too."""
        values = super().clean() or self.cleaned_data
        if password := values.get("password"):
            names = {name: values.get(name, "") for name in ("username", "first_name", "last_name")}
            try:
                validate_password(password, User(**names))
            except forms.ValidationError as error:
                self.add_error("password", error)
        return values


class GroupsForm(EditForm, forms.Form):
    """The groups that a user is in."""

    groups = forms.ModelMultipleChoiceField(
        Group.objects.order_by("name"), required=False, widget=forms.CheckboxSelectMultiple
    )


class GroupForm(EditForm, forms.Form):
    """A group's name."""

    name = _text("Name", length=150)


class ClaimForm(forms.Form):
    """A value of the sign-in provider's groups claim."""

    value = _text("Value of the groups claim", length=500)


class KeyForm(forms.Form):
    """What a new API key may do. Only an admin names its user and the connections that it may push to."""

    name = _text("Name", length=120, help_text="What uses it, so that you know later what stops when it is revoked.")
    lifetime = forms.ChoiceField(
        label="Valid for", choices=_LIFETIMES, required=False, initial="90", widget=forms.Select(attrs=_INPUT)
    )
    max_sensitivity = forms.TypedChoiceField(
        label="Up to sensitivity",
        choices=[("", "Its user's clearances"), *SENSITIVITY_CHOICES],
        coerce=int,
        empty_value=None,
        required=False,
        widget=forms.Select(attrs=_INPUT),
    )
    requests_per_minute = forms.IntegerField(
        label="Requests a minute",
        required=False,
        min_value=1,
        max_value=MAX_REQUESTS_PER_MINUTE,
        help_text="Empty for any number.",
        widget=forms.NumberInput(attrs=_INPUT),
    )
    compartments = forms.ModelMultipleChoiceField(
        Compartment.objects.none(),
        label="Only these compartments",
        required=False,
        help_text="None chosen leaves all that its user sees.",
        widget=forms.CheckboxSelectMultiple,
    )
    presets = forms.MultipleChoiceField(
        label="Only these presets",
        required=False,
        choices=[(name, name) for name in PRESETS],
        help_text="None chosen allows all.",
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, data: Mapping[str, Any] | None = None, *, actor: User, owner: User | None = None) -> None:
        super().__init__(data, initial={"user": owner.username if owner else actor.username})
        self._actor = actor
        # For anyone but an admin the list itself would tell which compartments there are.
        seen = [it.pk for it in seen_compartments(actor)] if not actor.is_admin else None
        compartments = Compartment.objects.all() if seen is None else Compartment.objects.filter(pk__in=seen)
        self._field("compartments").queryset = compartments
        if actor.is_admin:
            self._add_admins_fields()

    @property
    def owner(self) -> User:
        """Whom the key acts for."""
        user: User = self.cleaned_data.get("user") or self._actor
        return user

    @property
    def terms(self) -> KeyTerms:
        """What the key may do."""
        values = self.cleaned_data
        return KeyTerms(
            name=values["name"],
            expires_at=_end(values["lifetime"]),
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

    def _add_admins_fields(self) -> None:
        self.fields["user"] = forms.ModelChoiceField(
            User.objects.filter(is_active=True).order_by("username"),
            label="Acts for",
            to_field_name="username",
            empty_label=None,
            widget=forms.Select(attrs=_INPUT),
        )
        self.fields["may_forward_users"] = forms.BooleanField(
            label="Let it act for the users of a front end",
            required=False,
            help_text="It gets a second secret, with which the front end signs whom it asks for.",
        )
        self.fields["push_connections"] = forms.ModelMultipleChoiceField(
            Connection.objects.filter(kind="push"),
            label="May push documents to",
            required=False,
            help_text="None chosen lets it push nothing, unless its user is an admin.",
            widget=forms.CheckboxSelectMultiple,
        )

    def _field(self, name: str) -> Any:  # noqa: ANN401 -- a field's own attributes depend on its class
        return self.fields[name]


def _end(lifetime: str) -> datetime | None:
    """Return when a key of this many days ends; None for one that does not."""
    return timezone.now() + timedelta(days=int(lifetime)) if lifetime else None
