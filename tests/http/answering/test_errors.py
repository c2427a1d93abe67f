"""Errors as answers: one table of the service's own, a status for each of the library's, and their docs."""

from __future__ import annotations

import ast
import errno
import string
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.exc import DBAPIError

import imgsvc_http
from imgsvc_core import Adjust, Limits, errors
from imgsvc_core.errors import ImgsvcError
from imgsvc_core.spec.declaring import Integer, Number, Operation, params, parse_operation
from imgsvc_core.spec.filters import FILTERS
from imgsvc_core.spec.request import OPERATIONS
from imgsvc_http.answering.errors import KINDS, as_refusal, refusal, refusal_of, status_of
from imgsvc_http.answering.responses import failure_body
from imgsvc_http.receiving.processing_request import parse_request
from imgsvc_http.receiving.request_options import WebhookOptions
from imgsvc_http.state.vault import MissingMasterKey
from imgsvc_http.storage.source_files import NoRoom

_SOURCE = Path(imgsvc_http.__file__).parent


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (errors.SpecError, 422),
        (errors.SourceUnreachable, 422),
        (errors.EmptySource, 422),
        (errors.InvalidPixels, 422),
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
        (errors.MachineFailed("a message for the operator"), errors.MachineFailed.slug),
        (NoRoom(), "no_room"),
        (OSError(errno.ENOSPC, "full"), "disk_full"),
        (OSError(errno.EMFILE, "too many"), "overloaded"),
        (DBAPIError("", {}, Exception(), connection_invalidated=True), "not_ready"),
    ],
)
def test_every_failure_is_answered_as_one_of_them(
    error: Exception, slug: str, caplog: pytest.LogCaptureFixture
) -> None:
    refused = as_refusal(error, "some-id")
    assert refused.slug == slug
    is_of_machine = refused.status >= 500 and slug != "no_room"
    assert ("some-id failed" in caplog.text) == is_of_machine
    assert "operator" not in refused.message
    if slug == "internal_error":
        assert "some-id" in refused.message


def ranged() -> Iterator[tuple[type[Operation], str, Integer | Number]]:
    """Every parameter of a processing request that is a number in a range."""
    for operation in (*OPERATIONS.values(), *FILTERS, WebhookOptions):
        for name, parameter in params(operation).items():
            if isinstance(parameter.kind, Integer | Number):
                yield operation, name, parameter.kind


@pytest.mark.parametrize(("operation", "name", "kind"), list(ranged()))
@pytest.mark.parametrize("wrong", ["-1e9", 1e18, True], ids=str)
def test_the_message_of_a_ranged_parameter_has_the_form_of_the_interface(
    operation: type[Operation], name: str, kind: Integer | Number, wrong: object
) -> None:
    with pytest.raises(errors.SpecError) as caught:
        parse_operation(operation, {name: wrong}, path="")
    problem = next(problem for problem in caught.value.problems if problem.path == name)
    of_one = refusal_of(errors.SpecError([problem, *caught.value.problems]))
    word = "integer" if isinstance(kind, Integer) else "float"
    ends = (
        f"{kind.minimum} to {kind.maximum}" if word == "integer" else f"{kind.minimum:g} to {kind.maximum:g}"
    )
    assert of_one.message == f"{operation.title} '{name}' parameter must be {word} within {ends} range"
    assert of_one.problems[0].message.startswith(f"{of_one.message}, got ")


def test_what_came_is_told_to_python_and_in_the_list_of_errors() -> None:
    with pytest.raises(errors.SpecError) as caught:
        parse_operation(Adjust, {"contrast": 130}, path="adjust")
    sentence = "Adjust 'contrast' parameter must be integer within -100 to 100 range"
    assert str(caught.value) == f"{sentence}, got 130"
    told = failure_body(refusal_of(caught.value), "1")
    assert told["message"] == sentence
    assert told["errors"] == [{"path": "adjust.contrast", "message": f"{sentence}, got 130"}]


def test_limits_over_http_are_ranges_up_to_those_of_the_service() -> None:
    document = {"limits": {"frames": 501, "seconds": 0}}
    with pytest.raises(errors.SpecError) as caught:
        parse_request(document, Limits(), fetching=False)
    assert [problem.expected for problem in caught.value.problems] == [
        "Limits 'frames' parameter must be integer within 1 to 500 range",
        "Limits 'seconds' parameter must be float within 0.001 to 30 range",
    ]
