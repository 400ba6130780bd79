"""The ASGI entry point: `uvicorn corecube.asgi:application`."""

import os

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.urls import get_resolver
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from corecube import garbage
from corecube.arrivals import arrivals
from corecube.door import door
from corecube.serving import serving
from corecube.startup import look_at_database

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "corecube.settings")

_django = door.before(get_asgi_application(), connections=settings.CORECUBE_POOL_CONNECTIONS)
application = ProxyHeadersMiddleware(
    arrivals.counted(_django),  # type: ignore[arg-type]  # uvicorn has a type for each message
    trusted_hosts=settings.CORECUBE_TRUSTED_PROXIES,
)
look_at_database()
# Load all code now, not with the first request.
_ = get_resolver().url_patterns
garbage.settle()
serving.send(sender=None)
