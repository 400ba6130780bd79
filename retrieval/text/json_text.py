"""Finding the JSON in a language model's answer. Pure."""

from typing import Final

_FENCE: Final = "```"


def unfenced(answer: str) -> str:
    """Return the text between code fences around the entire answer, or the answer if it has none."""
    bare = answer.strip()
    if len(bare) < 2 * len(_FENCE) or not (bare.startswith(_FENCE) and bare.endswith(_FENCE)):
        return answer
    return bare[len(_FENCE) : -len(_FENCE)].removeprefix("json").strip()
