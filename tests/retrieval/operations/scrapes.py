"""Metrics as Prometheus reads them."""

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector


class Fixed(Collector):
    def __init__(self, metrics):
        self._metrics = list(metrics)

    def collect(self):
        return self._metrics


def exposition(metrics):
    """Return the text of metrics."""
    registry = CollectorRegistry()
    registry.register(Fixed(metrics))
    return generate_latest(registry).decode()


def samples(text):
    """Return the values of a text by name, without its labels, and by name and labels."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found
