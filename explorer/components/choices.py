"""What a filter offers."""

from collections.abc import Iterable


def with_chosen(choices: Iterable[tuple[str, str]], chosen: str) -> list[tuple[str, str]]:
    """Return the choices, value and label, and the chosen value where none of them has it.

    An address can name what is not offered, such as a deleted user. The filter must show it, since it applies.
    """
    listed = list(choices)
    return listed if not chosen or chosen in dict(listed) else [*listed, (chosen, chosen)]
