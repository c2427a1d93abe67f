"""Which HTTP status each error of the library has."""

from __future__ import annotations

import pytest

from imgsvc_core import errors
from imgsvc_http.answering.statuses import status_of


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.SpecError([errors.Problem("resize", "wrong")]), 422),
        (errors.SourceUnreachable("gone"), 422),
        (errors.EmptySource("empty"), 422),
        (errors.UnsupportedFormat("text"), 422),
        (errors.CorruptImage("torn"), 422),
        (errors.SourceTooLarge("heavy"), 413),
        (errors.ImageTooLarge("wide"), 422),
        (errors.OutputTooLarge("wide"), 422),
        (errors.BudgetUnreachable("tight"), 422),
        (errors.UnsupportedOperation("frames"), 422),
        (errors.TargetError("refused"), 424),
        (errors.MissingDependency("no codec"), 500),
        (errors.EncodingFailed("no codec"), 500),
        (errors.WorkerDied("no memory"), 500),
    ],
)
def test_status_of_an_error(error: errors.ImgsvcError, status: int) -> None:
    assert status_of(error) == status
