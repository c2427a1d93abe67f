"""The metrics of a node from those of its processes."""

from __future__ import annotations

from imgsvc_http.monitoring import metrics
from imgsvc_http.monitoring.metrics import Metrics, Snapshot, exposition, merged


def _counted(endpoint: str, seconds: float, waited: float) -> metrics.Values:
    counts = Metrics()
    counts.count_request("/healthz", 200, 0.002, 10, 20)
    counts.count_request(endpoint, 200, seconds, 10, 20)
    snapshot: Snapshot = {metrics.QUEUE_OLDEST: {("call",): waited}, metrics.DISK: {(): 100}}
    return counts.values(snapshot)


def test_values_of_processes_are_added_or_the_largest_or_any() -> None:
    text = exposition(merged([_counted("/a", 0.02, 3), _counted("/b", 0.3, 5)])).decode().splitlines()
    for line in (
        'imgsvc_requests_total{endpoint="/healthz",status="200"} 2.0',
        'imgsvc_requests_total{endpoint="/a",status="200"} 1.0',
        'imgsvc_requests_total{endpoint="/b",status="200"} 1.0',
        'imgsvc_request_seconds_bucket{endpoint="/healthz",le="0.0025"} 2.0',
        'imgsvc_request_seconds_sum{endpoint="/healthz"} 0.004',
        'imgsvc_request_seconds_count{endpoint="/b"} 1.0',
        "imgsvc_sent_bytes_total 80.0",
        'imgsvc_queue_oldest_seconds{class="call"} 5.0',
        "imgsvc_state_disk_bytes 100.0",
    ):
        assert line in text
