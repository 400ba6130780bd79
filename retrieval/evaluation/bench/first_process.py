"""`python -m retrieval.evaluation.bench.first_process JSON`: run a first search, print its duration as JSON."""

import json
import os
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import django


def main(arguments: dict[str, Any]) -> None:
    """Warm up if requested, search once, and print the figures."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "corecube.settings")
    django.setup()
    # These imports need Django's settings; they belong to the start of the process, not to its first search.
    from django.conf import settings  # noqa: PLC0415

    from corecube import process  # noqa: PLC0415
    from retrieval.evaluation.bench.corpus import bench_principal  # noqa: PLC0415
    from retrieval.evaluation.bench.plan import Plan  # noqa: PLC0415
    from retrieval.evaluation.bench.workload import KnownQueries, first_query, installed_model, request_for  # noqa: PLC0415
    from retrieval.search import runtime, warm_up  # noqa: PLC0415
    from retrieval.search.service import search  # noqa: PLC0415

    for name, folder in arguments["read_models"].items():
        setattr(settings, name, Path(folder))
    plan = Plan.of(arguments["plan"])
    query, principal = first_query(plan, arguments["percent"]), bench_principal()
    started = perf_counter()
    if arguments["is_warmed"]:
        warm_up.warm_up(tools=runtime.resources(KnownQueries({}, installed_model())))
        # As the web server does.
        process.exclude_loaded_from_collection()
    warmed = perf_counter()
    encoder = KnownQueries({query.text: query.vector}, installed_model())
    request = request_for(query, plan, arguments["percent"])
    search(request, principal=principal, resources=runtime.resources(encoder))
    figures = {
        "is_warmed": arguments["is_warmed"],
        "milliseconds": (perf_counter() - warmed) * 1000,
        "warm_up_seconds": warmed - started if arguments["is_warmed"] else 0.0,
    }
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()
    # A router that is still being trained in a thread would abort the interpreter's exit.
    os._exit(0)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
