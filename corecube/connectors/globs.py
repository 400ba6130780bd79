"""Include and exclude patterns for the items of a source, with the syntax of `.gitignore`.

pathspec parses the patterns. RE2 matches them, in linear time for every pattern.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import re2

from corecube.errors import ConfigError

_MAX_PATTERNS: Final = 200
_MAX_CHARACTERS: Final = 500
_SLASHES: Final = re.compile("//+")
_OPTIONS: Final = re2.Options()
_OPTIONS.dot_nl = True
_OPTIONS.log_errors = False
_OPTIONS.never_capture = True


@dataclass(frozen=True, slots=True)
class Globs:
    """Include and exclude patterns for paths.

    An item is included if an include pattern matches, or if there is no include pattern, unless an exclude pattern
    matches. `*.md` matches in every folder, `/docs/**` and `docs/` match everything below that folder, and a later
    `!docs/old.md` removes one path from its list. Paths are relative, with `/` between their parts. Raises ConfigError
    for an invalid pattern.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    _included: "tuple[_Pattern, ...]" = field(init=False, repr=False, compare=False)
    _excluded: "tuple[_Pattern, ...]" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_included", _compiled(self.include))
        object.__setattr__(self, "_excluded", _compiled(self.exclude))

    def includes(self, path: str) -> bool:
        """Return whether the item at a path is included."""
        return (not self.include or _matches(self._included, path)) and not self.excludes(path)

    def excludes(self, path: str) -> bool:
        """Return whether an exclude pattern matches a path."""
        return _matches(self._excluded, path)


@dataclass(frozen=True, slots=True)
class _Pattern:
    regex: Any  # re2's compiled pattern, which has no types
    is_negated: bool


def _matches(patterns: Iterable[_Pattern], path: str) -> bool:
    text = "/".join(part for part in path.split("/") if part).encode(errors="replace")
    matching = False
    for pattern in patterns:
        if pattern.is_negated == matching and pattern.regex.search(text):
            matching = not pattern.is_negated
    return matching


def _compiled(patterns: Sequence[str]) -> tuple[_Pattern, ...]:
    if len(patterns) > _MAX_PATTERNS:
        raise ConfigError(f"There are {len(patterns)} patterns; the maximum is {_MAX_PATTERNS}.")
    return tuple(_pattern(pattern) for pattern in patterns)


def _pattern(text: str) -> _Pattern:
    if not text.removeprefix("!").strip("/") or len(text) > _MAX_CHARACTERS or "\0" in text:
        raise _invalid(text)
    plain = _SLASHES.sub("/", text)
    if plain.startswith("#"):
        # Each line is a pattern here, never a comment.
        plain = rf"\{plain}"
    from pathspec.patterns.gitignore import GitIgnorePatternError  # noqa: PLC0415 -- most connections have no patterns
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern  # noqa: PLC0415

    to_regex = GitIgnoreSpecPattern.pattern_to_regex
    try:
        # git drops a pattern whose bracket stays open; here that bracket matches itself.
        regex = to_regex(plain)[0] or to_regex(plain.replace("[", r"\["))[0]
        if regex is None:
            raise _invalid(text)
        # A negated bracket does not match a slash either.
        compiled = re2.compile(regex.replace("[^]", r"[^\]").replace("[^", "[^/"), _OPTIONS)
    except (GitIgnorePatternError, re2.error) as error:
        raise _invalid(text) from error
    return _Pattern(compiled, is_negated=text.startswith("!"))


def _invalid(text: str) -> ConfigError:
    return ConfigError(f"This is not a valid path pattern: {text[:_MAX_CHARACTERS]!r}.")


EVERYTHING: Final = Globs()  #: Patterns that match everything.
