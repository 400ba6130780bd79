"""Every stage there is: the classes in the stages' folders that have a stage's name."""

from importlib import import_module
from inspect import getmembers, isclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


def _modules():
    for path in sorted((*ROOT.glob("retrieval/stages/*.py"), *ROOT.glob("retrieval/presets/*/stages/*.py"))):
        if path.stem != "__init__":
            yield import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


STAGES = tuple(
    member
    for module in _modules()
    for _, member in getmembers(module, isclass)
    if member.__module__ == module.__name__ and hasattr(member, "needs") and hasattr(member, "gives")
)
