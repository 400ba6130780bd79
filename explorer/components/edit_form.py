"""Forms that edit stored values; each detects changes by others, so that they are not overwritten."""

import hashlib
from collections.abc import Iterator
from typing import Any, Final

from django import forms
from django.forms import BoundField

STALE: Final = "Someone else has changed this in the meantime. Saving again overwrites their changes."
_TYPE_AGAIN: Final = "Enter secrets again."
_CONFLICT: Final = 409
_INVALID: Final = 422


class EditForm(forms.BaseForm):
    """A mixin for a form whose initial values are the stored ones; its page submits `made_from` with it.

    A form is invalid if the stored values changed since it was rendered. The page then shows it with the new
    `made_from`, so that it can be submitted again.
    """

    @property
    def made_from(self) -> str:
        """A fingerprint of the stored values: SHA-256, in hexadecimal."""
        stored = [(name, str(_stored(self[name]))) for name in self.fields]
        return hashlib.sha256(repr(stored).encode()).hexdigest()

    @property
    def is_stale(self) -> bool:
        """Whether the stored values changed since the form was rendered; False without `made_from`."""
        return self.is_bound and self.data.get("made_from", self.made_from) != self.made_from

    @property
    def status(self) -> int:
        """The HTTP status of a page that shows the form."""
        if self.is_stale:
            return _CONFLICT
        return _INVALID if self.errors else 200

    def clean(self) -> dict[str, Any]:
        """Refuse a stale form."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if self.is_stale:
            has_secrets = any(_is_secret(self[name]) for name in self.changed_data)
            self.add_error(None, f"{STALE} {_TYPE_AGAIN}" if has_secrets else STALE)
        return values

    def stored_now(self) -> Iterator[tuple[str, str]]:
        """Yield label and stored value of each changed field, except secrets."""
        for name in self.changed_data:
            field = self[name]
            # A checkbox without a stored value is an action, such as removing a secret.
            is_action = isinstance(field.field, forms.BooleanField) and field.initial is None
            if not is_action and not _is_secret(field):
                yield str(field.label), _words(field) or "empty"


def _stored(field: BoundField) -> Any:  # noqa: ANN401 -- a form field's value
    return field.field.prepare_value(field.initial)


def _is_secret(field: BoundField) -> bool:
    return isinstance(field.field.widget, forms.PasswordInput)


def _words(field: BoundField) -> str:
    stored = _stored(field)
    if isinstance(stored, bool):
        return "yes" if stored else "no"
    choices = getattr(field.field, "choices", None)
    if choices is None:
        return "" if stored is None else ", ".join(str(stored).splitlines())
    chosen = {str(it) for it in stored} if isinstance(stored, list) else {str(stored)}
    return ", ".join(str(label) for key, label in choices if str(key) in chosen)
