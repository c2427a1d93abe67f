"""What worker processes of a batch may take."""

from __future__ import annotations

import resource
import sys

import pytest

import imgsvc_core as imgsvc
from imgsvc_batch.executors import open_pool


@pytest.mark.parametrize(
    ("limits", "data"),
    [
        (imgsvc.Limits(), 2 * 1_800_000_000 + 2**29),
        (imgsvc.Limits(memory_bytes=5_000_000_000), 2 * 5_000_000_000 + 2**29),
        (imgsvc.Limits(memory_bytes=1), 2 + 2**29),
        (imgsvc.Limits(memory_bytes=None), None),
    ],
)
def test_workers_may_hold_what_the_limits_allow_a_picture(limits: imgsvc.Limits, data: int | None) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    assert hard == resource.RLIM_INFINITY
    with open_pool(1, limits) as pool:
        found = pool.submit(resource.getrlimit, resource.RLIMIT_DATA, seconds=60).result()
    assert found[0] == (resource.RLIM_INFINITY if data is None else data)


def test_few_pictures_do_not_wait_for_the_code_of_all_formats() -> None:
    """The same function of a pool tells which packages its process has loaded."""
    with open_pool(1, imgsvc.Limits(), few=True) as few, open_pool(1, imgsvc.Limits()) as many:
        assert not few.submit(_has_loaded, "numpy").result()
        assert many.submit(_has_loaded, "numpy").result()


def _has_loaded(package: str) -> bool:
    return package in sys.modules
