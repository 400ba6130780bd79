"""The moment when a web process has loaded its code and begins to serve."""

from typing import Final

from django.dispatch import Signal

#: Sent once by each web process. Whoever receives it must not keep it waiting.
serving: Final = Signal()
