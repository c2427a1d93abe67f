"""What only code can ask for."""

from __future__ import annotations

import json
import pickle
from typing import Any, ClassVar

import pytest

import imgsvc_core as imgsvc
from imgsvc_core.spec import FILTERS, Filter, Operation, restore
from imgsvc_core.spec.declare import declared, operation_schema, param
from imgsvc_core.spec.internal import INTERNAL_FILTERS, GaussianBlur, LightnessSharpen, Mosaic
from imgsvc_core.spec.kinds import Integer, Several, Text
from imgsvc_core.spec.parsing import parse_operation, unparse_operation


@declared
class Sample(Operation):
    """An operation."""

    shown: int = param("Known to all.", Integer(0, 9))
    hidden: int | None = param("Known to code.", Integer(0, 9), default=None, internal=True)


ASKED = (GaussianBlur(sigma=2.5), LightnessSharpen(sigma=1), Mosaic(cell=9))


@pytest.mark.parametrize("item", ASKED, ids=lambda item: str(item.key))
def test_json_does_not_know_them(item: Filter) -> None:
    document = imgsvc.unparse(imgsvc.Spec(filter=item))
    with pytest.raises(imgsvc.SpecError, match=f"no '{item.key}' parameter"):
        imgsvc.parse(document)
    with pytest.raises(imgsvc.SpecError, match=f"no '{item.key}' parameter"):
        imgsvc.parse({"filter": document["filter"][0]})


def test_schemas_do_not_know_them() -> None:
    schema = json.dumps(imgsvc.request_schema())
    assert not [item.key for item in INTERNAL_FILTERS if f'"{item.key}"' in schema]
    assert not set(INTERNAL_FILTERS) & set(FILTERS)


def test_they_travel_between_processes() -> None:
    spec = imgsvc.Spec(
        resize={"width": 80, "background": "f00", "mode": "fill", "height": 40},
        filter=[*ASKED, {"duotone": {"light": "fff", "dark": "102030"}}],
        output={"format": "webp"},
    )
    assert restore(json.loads(json.dumps(imgsvc.unparse(spec)))) == spec
    assert pickle.loads(pickle.dumps(spec)) == spec


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (GaussianBlur(sigma=2), GaussianBlur(sigma=3)),
        (Mosaic(cell=4), Mosaic(cell=5)),
        (LightnessSharpen(sigma=1), GaussianBlur(sigma=1)),
    ],
)
def test_digests_see_them(first: Filter, second: Filter) -> None:
    digests = {imgsvc.Spec(filter=item).digest for item in (first, second, ())}
    assert len(digests) == 3


@pytest.mark.parametrize(
    ("item", "values", "message"),
    [
        (
            GaussianBlur,
            {"sigma": -1},
            "Gaussian blur 'sigma' parameter must be float within 0 to 65535 range",
        ),
        (Mosaic, {"cell": 0}, "Mosaic 'cell' parameter must be integer within 1 to 65535 range"),
    ],
)
def test_their_values_are_checked(item: type[Filter], values: dict[str, Any], message: str) -> None:
    with pytest.raises(imgsvc.SpecError, match=message):
        item(**values)


@pytest.mark.parametrize(("count", "holds"), [(0, False), (1, True), (1024, True), (1025, False)])
def test_lists_have_at_least_one_value_and_a_bound(count: int, holds: bool) -> None:
    kind = Several(None, Integer(1, 100))
    values = [1] * count
    assert (kind.schema()["minItems"] <= count <= kind.schema()["maxItems"]) is holds
    if holds:
        assert kind.parse(values) == tuple(values)
    else:
        with pytest.raises(ValueError, match=r"^\["):
            kind.parse(values)


def test_neutral_values_change_nothing() -> None:
    spec = imgsvc.Spec(filter=[GaussianBlur(sigma=0), LightnessSharpen(sigma=0), Mosaic(cell=1)])
    assert spec.simplified() == imgsvc.Spec()


def test_parameters_can_be_internal_as_well() -> None:
    document = {"shown": 1, "hidden": 2}
    with pytest.raises(imgsvc.SpecError, match="Sample has no 'hidden' parameter"):
        parse_operation(Sample, document)
    assert Sample(shown=1, hidden=2) != Sample(shown=1)
    assert unparse_operation(Sample(shown=1, hidden=2)) == document
    assert list(operation_schema(Sample)["properties"]) == ["shown"]
    assert "hidden" not in (Sample.__doc__ or "")


@declared
class Address(Operation):
    """An operation whose texts may hold passwords."""

    confidential: ClassVar[bool] = True

    host_name: str = param("Name of a host.", Text(5))


_EXPECTED = "'host_name' parameter must be string of 1 to 5 characters"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"host_name": "a:canary"}, f"{_EXPECTED}, got something else"),
        ({"host_name": 5}, f"{_EXPECTED}, got 5"),
        ({"host_name": None}, f"{_EXPECTED}, got null"),
        ({"host_name": "a", "canary@host": 1}, "has no 'something else' parameter; known are host_name"),
        ({"host_name": "a", "host": "canary"}, "has no 'host' parameter; did you mean 'host_name'?"),
        ("canary", "must be an object of parameters, got something else"),
    ],
)  # fmt: skip
def test_messages_show_no_text_that_may_be_a_secret(document: Any, message: str) -> None:
    with pytest.raises(imgsvc.SpecError) as caught:
        parse_operation(Address, document)
    assert caught.value.message == f"Address {message}"
    assert "canary" not in repr(caught.value.problems)


def test_keys_and_titles_are_the_words_of_the_class() -> None:
    assert (LightnessSharpen.key, LightnessSharpen.title) == ("lightness_sharpen", "Lightness sharpen")
    assert (Address.key, Address.title) == ("address", "Address")
