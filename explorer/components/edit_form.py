"""Forms that change something stored: each says what it was made from, so that nobody overwrites another's change."""

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
    """Mixed into a form whose initial values are the stored ones; its page sends `made_from` back with it.

    A form that was made from other values than are stored by now is not valid. The page with it has the new
    `made_from`, so that it can be sent again.
    """

    @property
    def made_from(self) -> str:
        """What is another when one of the stored values is: SHA-256, in hexadecimal."""
        stored = [(name, str(_stored(self[name]))) for name in self.fields]
        return hashlib.sha256(repr(stored).encode()).hexdigest()

    @property
    def is_stale(self) -> bool:
        """Whether the form that was sent was made from other values; one that does not say counts as fresh."""
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
        """Yield label and stored value of each field in which something else was sent; no secret."""
        for name in self.changed_data:
            field = self[name]
            # A tick without a stored value is something to do, such as removing a secret.
            is_deed = isinstance(field.field, forms.BooleanField) and field.initial is None
            if not is_deed and not _is_secret(field):
                yield str(field.label), _words(field) or "empty"


def _stored(field: BoundField) -> Any:  # noqa: ANN401 -- a form field's value
    return field.field.prepare_value(field.initial)


def _is_secret(field: BoundField) -> bool:
    return isinstance(field.field.widget, forms.PasswordInput)


def _words(field: BoundField) -> str:
    """Return what is stored for a field as people read it."""
    stored = _stored(field)
    if isinstance(stored, bool):
        return "yes" if stored else "no"
    choices = getattr(field.field, "choices", None)
    if choices is None:
        return "" if stored is None else ", ".join(str(stored).splitlines())
    chosen = {str(it) for it in stored} if isinstance(stored, list) else {str(stored)}
    return ", ".join(str(label) for key, label in choices if str(key) in chosen)
