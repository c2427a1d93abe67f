"""Counts that the processes of a node share, in memory of a fixed size."""

from __future__ import annotations

import pytest

from imgsvc_http.gate import interprocess_counts
from imgsvc_http.gate.interprocess_counts import InterprocessCounts
from tests.support import forked_python

TOGETHER = """
import os, time
from imgsvc_http.gate import interprocess_counts

class Slow:
    entry = interprocess_counts._ENTRY
    size, pack_into = entry.size, entry.pack_into

    def unpack_from(self, *place):
        found = self.entry.unpack_from(*place)
        time.sleep(0.0005)  # while another process counts
        return found

interprocess_counts._ENTRY = Slow()
counts, pids = interprocess_counts.InterprocessCounts(), []
for _ in range(2):
    pids.append(os.fork())
    if not pids[-1]:
        for _ in range(100):
            counts.add("key", 7)
        os._exit(0)
for pid in pids:
    os.waitpid(pid, 0)
print(counts.add("key", 7))
"""


def test_processes_that_count_at_the_same_time_lose_nothing() -> None:
    assert forked_python.run("-c", TOGETHER).stdout == "201\n"


def test_a_flood_of_keys_pushes_out_none_that_is_used_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interprocess_counts, "_BUCKETS", 1)
    counts = InterprocessCounts()
    for window in (1, 2):  # what was counted in the window before takes no room
        often = [counts.add("often", window) for _ in range(3)]
        assert often == [1, 2, 3]
        assert [counts.add(f"flood {number}", window) for number in range(100)] == [1] * 100
        assert counts.add("often", window) == 4
        assert [counts.add(f"busy {number}", window) for number in range(15) for _ in "abc"] == [1, 2, 3] * 15
        assert counts.add("often", window) == 5
