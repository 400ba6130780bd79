"""The ASGI entry point: `uvicorn corecube.asgi:application`."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "corecube.settings")

application = get_asgi_application()
