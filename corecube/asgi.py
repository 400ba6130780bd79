"""The ASGI entry point: `uvicorn corecube.asgi:application`."""

import os

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.urls import get_resolver

from corecube import garbage
from corecube.arrivals import arrivals
from corecube.door import door
from corecube.serving import serving
from corecube.startup import look_at_database

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "corecube.settings")

application = arrivals.counted(door.before(get_asgi_application(), connections=settings.CORECUBE_POOL_CONNECTIONS))
look_at_database()
# Load all code now, not with the first request.
_ = get_resolver().url_patterns
garbage.settle()
serving.send(sender=None)
