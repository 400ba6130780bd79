"""Choices of model fields: languages, and the levels that the access rule compares."""

from typing import Final

from corecube.scope import FreshnessBasis, Sensitivity, TrustLevel

_LANGUAGES: Final = (
    "arabic armenian basque catalan danish dutch english finnish french german greek hindi hungarian indonesian irish "
    "italian lithuanian nepali norwegian portuguese romanian russian serbian spanish swedish tamil turkish yiddish"
)
#: Text search configurations of every server from PostgreSQL 14, with labels.
LANGUAGE_CHOICES: Final = (
    ("", "Installation default"),
    ("simple", "Any (no stemming)"),
    *((language, language.capitalize()) for language in _LANGUAGES.split()),
)

SENSITIVITY_CHOICES = [(level.value, level.name.capitalize()) for level in Sensitivity]
TRUST_CHOICES = [(level.value, level.name.capitalize()) for level in TrustLevel]
FRESHNESS_CHOICES = [(basis.value, f"last {basis.value}") for basis in FreshnessBasis]
