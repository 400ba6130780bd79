"""The version of CoreCube."""

from typing import Final

VERSION: Final = "0.2.0"
