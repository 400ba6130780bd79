"""The version of CoreCube, as the servers of its sources see it."""

from typing import Final

VERSION: Final = "0.2.0"
