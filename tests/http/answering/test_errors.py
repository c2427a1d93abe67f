"""Errors as answers: one table of the service's own, a status for each of the library's, and their docs."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

import imgsvc_http
from imgsvc_core import errors
from imgsvc_core.errors import ImgsvcError
from imgsvc_http.answering.errors import KINDS, as_refusal, refusal, status_of
from imgsvc_http.state.vault import MissingMasterKey

_SOURCE = Path(imgsvc_http.__file__).parent


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (errors.SpecError, 422),
        (errors.SourceUnreachable, 422),
        (errors.EmptySource, 422),
        (errors.UnsupportedFormat, 422),
        (errors.CorruptImage, 422),
        (errors.SourceTooLarge, 413),
        (errors.ImageTooLarge, 422),
        (errors.OutputTooLarge, 422),
        (errors.BudgetUnreachable, 422),
        (errors.UnsupportedOperation, 422),
        (errors.TargetError, 424),
        (errors.MissingDependency, 500),
        (errors.EncodingFailed, 500),
        (errors.WorkerDied, 500),
    ],
)
def test_status_of_an_error(kind: type[ImgsvcError], status: int) -> None:
    assert status_of(kind) == status


def raised() -> Iterator[tuple[str, str, set[str]]]:
    """The refusals of the service's code: where, the slug, and the names of the values."""
    for path in _SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "refusal":
                (slug,) = node.args
                assert isinstance(slug, ast.Constant), f"a slug in {path} is no literal"
                yield path.name, slug.value, {keyword.arg or "" for keyword in node.keywords}


def test_every_refusal_is_in_the_table_with_its_values() -> None:
    for place, slug, values in raised():
        kind = KINDS[slug]
        texts = (kind.sentence, *kind.headers.values())
        expected = {name for text in texts for _, name, _, _ in string.Formatter().parse(text) if name}
        assert values == expected, f"{slug} in {place}"


def test_every_kind_in_the_table_is_used() -> None:
    assert {slug for _, slug, _ in raised()} == set(KINDS)


def test_slugs_are_unique() -> None:
    own = list(KINDS)
    library = [kind.slug for kind in kinds(ImgsvcError) if kind.__module__ == errors.__name__]
    assert len({*own, *library}) == len(own) + len(library)


def kinds(root: type[ImgsvcError]) -> Iterator[type[ImgsvcError]]:
    yield root
    for kind in root.__subclasses__():
        yield from kinds(kind)


@pytest.mark.parametrize(
    ("error", "slug"),
    [
        (errors.CorruptImage("torn"), "corrupt_image"),
        (errors.WorkerDied("no memory"), "worker_died"),
        (refusal("not_found", what="image"), "not_found"),
        (KeyError("a mistake of ours"), "internal_error"),
        (MissingMasterKey("a message for the operator"), "internal_error"),
        (ImgsvcError("a message for the operator"), "internal_error"),
    ],
)
def test_every_failure_is_answered_as_one_of_them(error: Exception, slug: str) -> None:
    refused = as_refusal(error, "some-id")
    assert refused.slug == slug
    assert "operator" not in refused.message
    if slug == "internal_error":
        assert "some-id" in refused.message
