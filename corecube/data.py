"""Data files that belong to the code."""

import tomllib
from importlib.resources import files
from typing import Any


def read_toml(package: str, name: str) -> dict[str, Any]:
    """Return the tables of a TOML file in the folder of a package."""
    return tomllib.loads((files(package) / name).read_text(encoding="utf-8"))
