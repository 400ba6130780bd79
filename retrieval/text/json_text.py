"""Finding the JSON in what a language model wrote around it. Pure."""

from typing import Final

_FENCE: Final = "```"


def unfenced(answer: str) -> str:
    """Return what stands between code fences around the whole answer; an answer without them as it is."""
    bare = answer.strip()
    if len(bare) < 2 * len(_FENCE) or not (bare.startswith(_FENCE) and bare.endswith(_FENCE)):
        return answer
    return bare[len(_FENCE) : -len(_FENCE)].removeprefix("json").strip()


def object_in(answer: str) -> str:
    """Return the text from the first opening brace to the last closing one; empty where there is none."""
    start, end = answer.find("{"), answer.rfind("}")
    return answer[start : end + 1] if 0 <= start < end else ""
