"""JSON is read strictly, and long JSON is refused before it is read."""

from __future__ import annotations

import contextlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imgsvc_core import Limits, SpecError
from imgsvc_http.receiving.body import check_values
from imgsvc_http.receiving.processing_request import parse_request

_TEXTS = st.text(st.sampled_from('ab,:[]{}"\\\u00e4\n'), max_size=8)
_DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(_TEXTS, inner, max_size=5),
    max_leaves=30,
)


@given(_DOCUMENTS, st.booleans(), st.sampled_from([None, 2]))
def test_documents_with_more_keys_and_values_are_refused(document: object, ascii_: bool, indent: int) -> None:
    text = json.dumps(document, ensure_ascii=ascii_, indent=indent)
    number = _keys_and_values(document)
    check_values(text, number)
    if number:
        with pytest.raises(ValueError, match=f"more than {number - 1:,} keys and values"):
            check_values(text, number - 1)


@pytest.mark.parametrize(
    "text",
    [
        '["' + '\\"' * 400_000 + "," * 20_000,
        '["' + '\\"' * 400_000 + "," * 20_000 + '"]',
        '"\\' + '\n"\\' * 200_000 + "," * 20_000,
        "[" + '"a"' * 300_000 + "," * 20_000,
        "[" + '"a",' * 200_000,
        "[" * 900_000,
        "[" + "1," * 400_000,
    ],
)
def test_whatever_it_is_it_is_found_out_soon(text: str) -> None:
    began = time.thread_time()
    with contextlib.suppress(ValueError):
        check_values(text, 10_000)
    assert time.thread_time() - began < 0.5  # milliseconds; minutes if an end were sought from each quote


def test_layers_with_as_many_values_as_a_request_may_have() -> None:
    layers = [{"text": {"size": 20, "spans": [{"text": "a"}] * 8}}] * 100  # 20 each, with their own
    assert len(parse_request({"layers": layers}, Limits(), fetching=False).spec.layers) == 100
    more = [*layers[:-1], {**layers[-1], "x": 0}]
    with pytest.raises(SpecError, match="must hold at most 2000 values"):
        parse_request({"layers": more}, Limits(), fetching=False)


def _keys_and_values(document: object) -> int:
    """Those within a document; what is empty counts once more."""
    if isinstance(document, dict):
        return 2 * len(document) + sum(map(_keys_and_values, document.values())) + (not document)
    if isinstance(document, list):
        return len(document) + sum(map(_keys_and_values, document)) + (not document)
    return 0
