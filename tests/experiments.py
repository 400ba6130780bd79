"""An experiment between the live version and one that orders hits by their age alone."""

from datetime import timedelta

from django.utils import timezone

from retrieval.evaluation.experiments import ExperimentRequest, start
from retrieval.models import PresetVersion

BY_AGE = {"blend.dense": 0.0, "blend.fulltext": 0.0, "blend.freshness": 1.0}


def begun(world, **changes):
    """Start an experiment of Alice in which every question takes part."""
    live = PresetVersion.objects.get(preset="corecube", number=1)
    PresetVersion.objects.get_or_create(preset="corecube", number=2, defaults={"values": live.values | BY_AGE})
    asked = {
        "name": "Age or blend",
        "first": ("corecube", None),
        "second": ("corecube", 2),
        "share": 100,
        "ends_at": timezone.now() + timedelta(days=1),
    }
    return start(ExperimentRequest(**asked | changes), actor=world.principal("alice"))
