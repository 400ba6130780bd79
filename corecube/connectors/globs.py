"""Which items of a source are wanted: include and exclude patterns, written much as in a `.gitignore`."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from typing import Final

from corecube.errors import ConfigError

_MAX_PATTERNS: Final = 200
_MAX_CHARACTERS: Final = 500
_ANY_FOLDERS: Final = "**"


@dataclass(frozen=True, slots=True)
class Globs:
    """Decides by its path whether an item is wanted.

    Wanted is what an include pattern fits, or everything without one, unless an exclude pattern fits. `*.md` fits
    in every folder, `/docs/**` and `docs/` fit all below that folder, and a later `!docs/old.md` takes one out of
    its list again. Paths are relative, with `/` between their parts. Raises ConfigError for a pattern that is none.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    _included: "tuple[_Pattern, ...]" = field(init=False, repr=False, compare=False)
    _excluded: "tuple[_Pattern, ...]" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Read the patterns."""
        object.__setattr__(self, "_included", _read(self.include))
        object.__setattr__(self, "_excluded", _read(self.exclude))

    def want(self, path: str) -> bool:
        """Return whether the item at a path is wanted."""
        return (not self.include or _fits(self._included, path)) and not self.excludes(path)

    def excludes(self, path: str) -> bool:
        """Return whether an exclude pattern fits a path."""
        return _fits(self._excluded, path)


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One pattern, part by part; None stands for any number of folders."""

    parts: tuple[re.Pattern[str] | None, ...]
    folders_only: bool
    takes_back: bool

    def fits(self, segments: Sequence[str]) -> bool:
        """Return whether the pattern fits a path or a folder above it.

        The parts that the path so far may have come to are kept as a set, so that no pattern takes long.
        """
        reached = self._skipping({0})
        for number, segment in enumerate(segments, start=1):
            steps = ((at, self.parts[at]) for at in reached if at < len(self.parts))
            reached = self._skipping({at if part is None else at + 1 for at, part in steps if _matches(part, segment)})
            is_folder = number < len(segments)
            if len(self.parts) in reached and (is_folder or not self.folders_only):
                return True
        return False

    def _skipping(self, reached: set[int]) -> set[int]:
        """Return the parts reached, with those behind any number of folders, which may be none."""
        for at in sorted(reached):
            while at < len(self.parts) and self.parts[at] is None:
                at += 1  # noqa: PLW2901 -- walks on from the part
                reached.add(at)
        return reached


def _matches(part: re.Pattern[str] | None, segment: str) -> bool:
    return part is None or part.match(segment) is not None


def _fits(patterns: Iterable[_Pattern], path: str) -> bool:
    """Return what the last pattern that fits a path says of it."""
    segments = [segment for segment in path.split("/") if segment]
    fitting = False
    for pattern in patterns:
        if pattern.takes_back == fitting and pattern.fits(segments):
            fitting = not pattern.takes_back
    return fitting


def _read(patterns: Sequence[str]) -> tuple[_Pattern, ...]:
    if len(patterns) > _MAX_PATTERNS:
        raise ConfigError(f"There are {len(patterns)} patterns; the most is {_MAX_PATTERNS}.")
    return tuple(_pattern(pattern) for pattern in patterns)


def _pattern(text: str) -> _Pattern:
    bare = text.removeprefix("!")
    segments = [segment for segment in bare.split("/") if segment]
    if not segments or len(text) > _MAX_CHARACTERS or "\0" in text:
        raise ConfigError(f"This is no pattern for paths: {text[:_MAX_CHARACTERS]!r}.")
    if "/" not in bare.rstrip("/"):
        segments.insert(0, _ANY_FOLDERS)
    if segments[-1] == _ANY_FOLDERS:
        # All that lies below: one part of any name, and what fits a folder fits all in it.
        segments[-1] = "*"
    parts = tuple(None if segment == _ANY_FOLDERS else re.compile(translate(segment)) for segment in segments)
    return _Pattern(parts, folders_only=bare.endswith("/"), takes_back=text.startswith("!"))


#: Patterns that take everything in.
EVERYTHING: Final = Globs()
