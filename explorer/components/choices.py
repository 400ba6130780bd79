"""The choices of a filter."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Choice:
    """An option of a menu."""

    #: Its value in an address.
    value: str
    label: str


@dataclass(frozen=True, slots=True)
class ChoiceGroup:
    """Options with one heading."""

    heading: str
    choices: tuple[Choice, ...]


def with_chosen(choices: Iterable[tuple[str, str]], chosen: str) -> list[tuple[str, str]]:
    """Return the choices, value and label, and the chosen value if it is not among them.

    An address can contain a value that is not offered, such as a deleted user. It still applies and must be shown.
    """
    listed = list(choices)
    return listed if not chosen or chosen in dict(listed) else [*listed, (chosen, chosen)]
