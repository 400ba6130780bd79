"""Database choices made from the levels that the access rule compares."""

from corecube.scope import FreshnessBasis, Sensitivity, TrustLevel

SENSITIVITY_CHOICES = [(level.value, level.name.capitalize()) for level in Sensitivity]
TRUST_CHOICES = [(level.value, level.name.capitalize()) for level in TrustLevel]
FRESHNESS_CHOICES = [(basis.value, f"last {basis.value}") for basis in FreshnessBasis]
