"""The metrics of the service: `METRICS` declares each, `Metrics` counts them for one process.

Each process counts in a registry of its own, under no global name. `merged` adds those of a node up.
"""

from __future__ import annotations

import functools
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

import attrs
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from imgsvc_http.monitoring.phases import PHASES, Phases

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# From a cached answer to the time limit of a picture, in steps of about two.
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


@attrs.frozen
class Metric:
    """The declaration of a metric.

    ``together`` tells the value of a node whose processes have one each: their sum, the largest, or that of
    any of them, as all have the same.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    doc: str
    labels: tuple[str, ...] = ()
    together: Literal["sum", "largest", "any"] = "sum"


REQUESTS = Metric(
    "imgsvc_requests_total",
    "counter",
    "Requests that were answered, or whose client left before (status 499).",
    ("endpoint", "status"),
)
ERRORS = Metric(
    "imgsvc_errors_total",
    "counter",
    "Errors that were answered, such as rate_limit_exceeded, quota_exceeded and overloaded.",
    ("error",),
)
SECONDS = Metric("imgsvc_request_seconds", "histogram", "Time from a request to its answer.", ("endpoint",))
PHASE_SECONDS = Metric(
    "imgsvc_phase_seconds", "histogram", f"Time in each phase of a picture: {', '.join(PHASES)}.", ("phase",)
)
RECEIVED = Metric("imgsvc_received_bytes_total", "counter", "Bytes of the bodies of requests.")
SENT = Metric("imgsvc_sent_bytes_total", "counter", "Bytes of answers, with their headers.")
QUEUE = Metric(
    "imgsvc_queue_requests",
    "gauge",
    "Requests that wait for a worker, by class: calls whose client waits, and webhooks.",
    ("class",),
)
QUEUE_OLDEST = Metric(
    "imgsvc_queue_oldest_seconds",
    "gauge",
    "How long the oldest of them has waited.",
    ("class",),
    together="largest",
)
RUNNING = Metric("imgsvc_workers_busy", "gauge", "Workers that work on a picture.")
WORKER_ENDS = Metric(
    "imgsvc_worker_ends_total",
    "counter",
    "Worker processes that ended, by reason: crashed, timeout, cancelled, replaced.",
    ("reason",),
)
WEBHOOKS = Metric(
    "imgsvc_webhooks", "gauge", "Webhooks in the database, by status.", ("status",), together="any"
)
WEBHOOK_OLDEST = Metric(
    "imgsvc_webhook_oldest_seconds",
    "gauge",
    "How long ago the oldest webhook that is not settled was accepted, by status.",
    ("status",),
    together="any",
)
DISK_FREE = Metric("imgsvc_state_disk_free_bytes", "gauge", "Free disk of the state folder.", together="any")
DISK = Metric("imgsvc_state_disk_bytes", "gauge", "Size of the disk of the state folder.", together="any")
CACHE_ANSWERS = Metric(
    "imgsvc_cache_answers_total",
    "counter",
    "Pictures of URLs by how the cache came by them: hit, miss, stale, revalidated.",
    ("state",),
)
CACHE_EVICTIONS = Metric(
    "imgsvc_cache_evictions_total",
    "counter",
    "Entries that made room for others in the cache, by tier: memory, place.",
    ("tier",),
)
CACHE_ERRORS = Metric(
    "imgsvc_cache_errors_total", "counter", "Failures of the folder or bucket of the cache, or of its index."
)
CACHE_MEMORY = Metric("imgsvc_cache_memory_bytes", "gauge", "Memory of cached pictures.")
CACHE_MEMORY_ENTRIES = Metric("imgsvc_cache_memory_entries", "gauge", "Cached pictures in memory.")
CACHE_PLACE = Metric(
    "imgsvc_cache_place_bytes", "gauge", "Bytes of cached pictures in the folder or bucket.", together="any"
)
CACHE_PLACE_ENTRIES = Metric(
    "imgsvc_cache_place_entries", "gauge", "Cached pictures in the folder or bucket.", together="any"
)

METRICS = (
    REQUESTS, ERRORS, SECONDS, PHASE_SECONDS, RECEIVED, SENT, QUEUE, QUEUE_OLDEST, RUNNING, WORKER_ENDS,
    WEBHOOKS, WEBHOOK_OLDEST, DISK_FREE, DISK, CACHE_ANSWERS, CACHE_EVICTIONS, CACHE_ERRORS, CACHE_MEMORY,
    CACHE_MEMORY_ENTRIES, CACHE_PLACE, CACHE_PLACE_ENTRIES,
)  # fmt: skip
"""All metrics, in the order of documentation."""

_TOGETHER = {declared.name.removesuffix("_total"): declared.together for declared in METRICS}
_COMBINED: Mapping[str, Callable[[float, float], float]] = {
    "sum": operator.add,
    "largest": max,
    "any": lambda first, _: first,
}

Snapshot = Mapping[Metric, Mapping[tuple[str, ...], float]]
"""Values that are read when they are asked for, by the values of the labels."""

_Instrument = TypeVar("_Instrument", bound=MetricWrapperBase)


class Metrics:
    """What one process has counted."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        # The client looks up labels slowly, with a lock.
        self._requests = functools.cache(self._made(Counter, REQUESTS).labels)
        self._errors = functools.cache(self._made(Counter, ERRORS).labels)
        self._seconds = functools.cache(self._made(Histogram, SECONDS, buckets=_BUCKETS).labels)
        self._phases = functools.cache(self._made(Histogram, PHASE_SECONDS, buckets=_BUCKETS).labels)
        self._received = self._made(Counter, RECEIVED)
        self._sent = self._made(Counter, SENT)

    def count_request(self, endpoint: str, status: int, seconds: float, received: int, sent: int) -> None:
        """Count a request that has ended."""
        self._requests(endpoint, status).inc()
        self._seconds(endpoint).observe(seconds)
        self._received.inc(received)
        self._sent.inc(sent)

    def count_error(self, slug: str) -> None:
        """Count an error, of a request or of a webhook."""
        self._errors(slug).inc()

    def count_phases(self, phases: Phases) -> None:
        """Count the time in the phases of a picture."""
        for name, seconds in phases.items():
            self._phases(name).observe(seconds)

    def exposition(self, snapshot: Snapshot) -> bytes:
        """Return everything in the text format of Prometheus."""
        return _text([*self._registry.collect(), *_families(snapshot)])

    def _made(self, kind: type[_Instrument], declared: Metric, **more: Any) -> _Instrument:
        return kind(declared.name, declared.doc, declared.labels, registry=self._registry, **more)


def merged(expositions: Sequence[bytes]) -> bytes:
    """Return the metrics of a node from those of its processes, all in the text format of Prometheus."""
    families: dict[str, Family] = {}
    values: dict[str, dict[tuple[str, frozenset[tuple[str, str]]], Sample]] = defaultdict(dict)
    for text in expositions:
        for family in text_string_to_metric_families(text.decode()):
            families.setdefault(family.name, family)
            known, combined = values[family.name], _COMBINED[_TOGETHER.get(family.name, "any")]
            for sample in family.samples:
                key = sample.name, frozenset(sample.labels.items())
                value = combined(known[key].value, sample.value) if key in known else sample.value
                known[key] = sample._replace(value=value)
    for name, family in families.items():
        family.samples = list(values[name].values())
    return _text(families.values())


def _text(families: Iterable[Family]) -> bytes:
    collected: Any = _Collected(list(families))
    return generate_latest(collected)


@attrs.frozen
class _Collected:
    """Families in the shape of a registry."""

    families: list[Family]

    def collect(self) -> list[Family]:
        return self.families


def _families(snapshot: Snapshot) -> Iterator[Family]:
    for declared, values in snapshot.items():
        kind = CounterMetricFamily if declared.kind == "counter" else GaugeMetricFamily
        family = kind(declared.name, declared.doc, labels=declared.labels)
        for labels, value in values.items():
            family.add_metric(labels, value)
        yield family
