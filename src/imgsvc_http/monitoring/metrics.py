"""The metrics of the service: `METRICS` declares each, `Metrics` counts them for one process.

Each process counts for itself. `merged` adds the counts of a node up.
"""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from types import SimpleNamespace
from typing import Any, Literal

import attrs
from prometheus_client import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family

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
    "How long the oldest request that waits for a worker has waited, by class.",
    ("class",),
    together="largest",
)
RUNNING = Metric("imgsvc_workers_busy", "gauge", "Workers that work on a picture.")
WORKER_ENDS = Metric(
    "imgsvc_worker_ends_total",
    "counter",
    "Worker processes that ended, by reason: crashed, killed, timeout, cancelled, replaced.",
    ("reason",),
)
LOST_LINES = Metric(
    "imgsvc_log_lines_lost_total", "counter", "Lines of the log that were lost, as nobody read it."
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

METRICS = tuple(item for item in globals().values() if isinstance(item, Metric))
"""All metrics, in the order of documentation."""

_DECLARED = {declared.name: declared for declared in METRICS}
_COMBINED: Mapping[str, Callable[[Any, Any], Any]] = {
    "sum": operator.add,
    "largest": max,
    "any": lambda first, _: first,
}

Snapshot = Mapping[Metric, Mapping[tuple[str, ...], float]]
"""Values that are read when they are asked for, by the values of the labels."""

Values = dict[str, dict[tuple[str, ...], Any]]
"""The values of metrics by name and labels. A histogram has the counts of its buckets, and then the sum."""


@attrs.define
class _Histogram:
    """How many times lie in each bucket, and in none, and their sum."""

    counts: list[int] = attrs.field(factory=lambda: [0] * (len(_BUCKETS) + 1))
    sum: float = 0.0


class Metrics:
    """What one process has counted, in plain numbers: the instruments of the client take locks each time."""

    def __init__(self, errors: Iterable[str] = ()) -> None:
        """Begin to count, errors of these names at 0: Prometheus sees no increase in what was not there."""
        self._requests: Counter[tuple[str, ...]] = Counter()
        self._errors: Counter[tuple[str, ...]] = Counter({(name,): 0 for name in errors})
        self._seconds: defaultdict[str, _Histogram] = defaultdict(_Histogram)
        self._phases: defaultdict[str, _Histogram] = defaultdict(_Histogram)
        self._received = self._sent = 0

    def count_request(self, endpoint: str, status: int, seconds: float, received: int, sent: int) -> None:
        """Count a request that has ended."""
        self._requests[endpoint, str(int(status))] += 1
        histogram = self._seconds[endpoint]
        histogram.counts[bisect_left(_BUCKETS, seconds)] += 1
        histogram.sum += seconds
        self._received += received
        self._sent += sent

    def count_error(self, slug: str) -> None:
        """Count an error, of a request or of a webhook."""
        self._errors[slug,] += 1

    def count_phases(self, phases: Phases) -> None:
        """Count the time in the phases of a picture."""
        for name, seconds in phases.items():
            histogram = self._phases[name]
            histogram.counts[bisect_left(_BUCKETS, seconds)] += 1
            histogram.sum += seconds

    def values(self, snapshot: Snapshot) -> Values:
        """Return the values of this process."""
        counted: Snapshot = {
            REQUESTS: self._requests,
            ERRORS: self._errors,
            RECEIVED: {(): self._received},
            SENT: {(): self._sent},
        }
        found: Values = {declared.name: dict(values) for declared, values in {**counted, **snapshot}.items()}
        for declared, histograms in ((SECONDS, self._seconds), (PHASE_SECONDS, self._phases)):
            found[declared.name] = {(label,): [*item.counts, item.sum] for label, item in histograms.items()}
        return found


def merged(processes: Iterable[Values]) -> Values:
    """Return the values of a node from those of its processes."""
    node: Values = {}
    for values in processes:
        for name, found in values.items():
            known, combined = node.setdefault(name, {}), _COMBINED[_DECLARED[name].together]
            for labels, value in found.items():
                if labels not in known:
                    known[labels] = value
                elif isinstance(value, list):
                    known[labels] = list(map(combined, known[labels], value))
                else:
                    known[labels] = combined(known[labels], value)
    return node


def exposition(values: Values) -> bytes:
    """Return values in the text format of Prometheus."""
    families = [_family(_DECLARED[name], found) for name, found in values.items()]
    registry: Any = SimpleNamespace(collect=lambda: families)
    return generate_latest(registry)


def _family(declared: Metric, found: Mapping[tuple[str, ...], Any]) -> Family:
    if declared.kind == "histogram":
        histogram = HistogramMetricFamily(declared.name, declared.doc, labels=declared.labels)
        bounds = [*map(str, _BUCKETS), "+Inf"]
        for labels, (*counts, total) in found.items():
            histogram.add_metric(labels, list(zip(bounds, accumulate(counts), strict=True)), total)
        return histogram
    kind = CounterMetricFamily if declared.kind == "counter" else GaugeMetricFamily
    family = kind(declared.name, declared.doc, labels=declared.labels)
    for labels, value in found.items():
        family.add_metric(labels, value)
    return family
