"""Filters, adjustments and watermarks: the tables of the interface with their ranges."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import numpy as np
import pytest
import pytest_asyncio
from numpy.typing import NDArray

from tests.http.calls import assert_failure, call, upload
from tests.http.interface.tables import ADJUSTMENTS, EDGES, FILTERS
from tests.support import encoded
from tests.support.handmade import pillow

pytestmark = pytest.mark.asyncio(loop_scope="module")

FILTER_RANGES = [
    *((key, "value", 0, 100, 0.001) for key, part in FILTERS.items() if "value" in part),
    ("vignette", "radius", 0, 100, 0.001),
    ("isolate", "threshold", 0, 1, 0.001),
    ("blur", "angle", 0, 360, 1),
]


@pytest_asyncio.fixture(loop_scope="module")
async def watermark(client: aiohttp.ClientSession) -> AsyncIterator[str]:
    """Id of a watermark."""
    made = await upload(client, encoded.png_alpha().data, path="/1.0/watermarks")
    id_ = made.json["watermark"]["id"]
    yield id_
    await call(client, "DELETE", f"/1.0/watermarks/{id_}")


class TestFiltersAdjustmentsWatermarks:
    @pytest.mark.parametrize("key", FILTERS)
    async def test_each_filter_works_and_changes_the_picture(
        self, key: str, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """Every filter works by its name."""
        plain = await upload(client, photo)
        reply = await upload(client, photo, {"filter": {key: FILTERS[key]}})
        assert reply.status == 200, reply.json
        assert reply.json["output"]["sha256"] != plain.json["output"]["sha256"]

    async def test_filters_stack(self, client: aiohttp.ClientSession, photo: bytes) -> None:
        """Several filters may be present."""
        assert (await upload(client, photo, {"filter": FILTERS})).status == 200

    @pytest.mark.parametrize(("key", "name", "low", "high", "step"), FILTER_RANGES)
    async def test_ranges_of_filters(
        self,
        key: str,
        name: str,
        low: float,
        high: float,
        step: float,
        client: aiohttp.ClientSession,
        photo: bytes,
    ) -> None:
        """Both ends of each range are allowed, and nothing just outside."""
        kind, mode = ("integer", {"mode": "motion"}) if name == "angle" else ("float", {})
        for value in (low, high):
            reply = await upload(client, photo, {"filter": {key: {**FILTERS[key], **mode, name: value}}})
            assert reply.status == 200, reply.json
        for wrong in (low - step, high + step):
            reply = await upload(client, photo, {"filter": {key: {**FILTERS[key], **mode, name: wrong}}})
            message = f"{key.capitalize()} '{name}' parameter must be {kind} within {low} to {high} range"
            failure = assert_failure(reply, 422, "invalid_parameter", message)
            assert [error["path"] for error in failure["errors"]] == [f"filter.{key}.{name}"]

    async def test_motion_blur_has_a_direction(self, client: aiohttp.ClientSession, photo: bytes) -> None:
        """The angle is 90 unless told otherwise, a whole number, and for motion alone."""

        async def digest(**part: Any) -> str:
            reply = await upload(client, photo, {"filter": {"blur": {"value": 20, **part}}})
            return str(reply.json["output"]["sha256"])

        default = await digest(mode="motion")
        assert await digest(mode="motion", angle=90) == default
        assert await digest(mode="motion", angle=0) != default
        assert await digest(mode="gaussian", angle=0) == await digest(mode="gaussian")
        request = {"filter": {"blur": {"mode": "motion", "value": 20, "angle": 1.5}}}
        message = "Blur 'angle' parameter must be integer within 0 to 360 range"
        assert_failure(await upload(client, photo, request), 422, "invalid_parameter", message)

    async def test_colors_are_written_in_three_ways(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """RGB, RRGGBB and AARRGGBB, in any case, with or without a hash."""
        digests = set()
        for color in ("fc0", "#FC0", "ffcc00", "#FfCc00", "ffffcc00"):
            reply = await upload(client, photo, {"filter": {"monochrome": {"value": 80, "color": color}}})
            digests.add(reply.json["output"]["sha256"])
        assert len(digests) == 1

    @pytest.mark.parametrize("key", ["sepia", "pixellate", "monochrome", "vignette", "halftone", "blur"])
    @pytest.mark.parametrize("value", ["5", None, True, [5]])
    async def test_filter_values_are_floats(
        self, key: str, value: Any, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """The message names operation, parameter, type and range, and the error its path."""
        reply = await upload(client, photo, {"filter": {key: {**FILTERS[key], "value": value}}})
        title = key.capitalize()
        message = f"{title} 'value' parameter must be float within 0 to 100 range"
        failure = assert_failure(reply, 422, "invalid_parameter", message)
        assert failure["errors"][0]["path"] == f"filter.{key}.value"

    @pytest.mark.parametrize(
        ("key", "name"),
        [("blur", "mode"), ("blur", "value"), ("sepia", "value"), ("pixellate", "value"),
         ("monochrome", "value"), ("monochrome", "color"), ("vignette", "value"),
         ("vignette", "radius"), ("halftone", "value"),
         ("isolate", "color")],
    )  # fmt: skip
    async def test_required_parameters_of_filters(
        self, key: str, name: str, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """What a filter needs must be there."""
        rest = {item: value for item, value in FILTERS[key].items() if item != name}
        reply = await upload(client, photo, {"filter": {key: rest}})
        failure = assert_failure(reply, 422, "invalid_parameter", f"'{name}' parameter must be ")
        assert failure["errors"][0]["message"] == f"{failure['message']}, and is required"
        if name in ("value", "radius"):
            title = key.capitalize()
            assert failure["message"] == f"{title} '{name}' parameter must be float within 0 to 100 range"

    @pytest.mark.parametrize(
        ("key", "part"),
        [("blur", {"mode": "box"}), ("duotone", {"light": "ff00ff00"}), ("duotone", {"dark": "ff00ff00"}),
         ("monochrome", {"color": "red"}), ("isolate", {"color": "ff00"})],
    )  # fmt: skip
    async def test_modes_and_colors_of_filters(
        self, key: str, part: dict[str, Any], client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """Only known modes, and colors in the ways of each filter."""
        reply = await upload(client, photo, {"filter": {key: {**FILTERS[key], **part}}})
        assert_failure(reply, 422, "invalid_parameter", f"'{list(part)[-1]}' parameter must be")

    @pytest.mark.parametrize("key", ADJUSTMENTS)
    async def test_each_adjustment_has_its_range(
        self, key: str, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """Both ends of each range are allowed, and nothing beyond or of another type."""
        low, high = ADJUSTMENTS[key]
        step = 0.001 if key == "opacity" else 1
        for value in (low, high):
            assert (await upload(client, photo, {"adjust": {key: value}})).status == 200
        for wrong in (low - step, high + step, "1", True):
            reply = await upload(client, photo, {"adjust": {key: wrong}})
            failure = assert_failure(reply, 422, "invalid_parameter", f"'{key}' parameter must be")
            assert f"within {low:g} to {high:g} range" in failure["message"]

    async def test_invert_is_a_boolean(self, client: aiohttp.ClientSession, photo: bytes) -> None:
        """The one adjustment that is no number."""
        assert (await upload(client, photo, {"adjust": {"invert": True}})).status == 200
        assert_failure(
            await upload(client, photo, {"adjust": {"invert": 1}}), 422, "invalid_parameter", "boolean"
        )

    async def test_adjustments_combine(self, client: aiohttp.ClientSession, photo: bytes) -> None:
        """All of them may be given at once."""
        adjust = {key: high for key, (_, high) in ADJUSTMENTS.items()} | {"invert": True}
        assert (await upload(client, photo, {"adjust": adjust})).status == 200

    async def test_a_watermark_is_uploaded_and_then_named_by_its_id(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """A watermark belongs to the account before requests refer to it, until it is deleted."""
        made = await upload(client, encoded.png_alpha().data, name="logo.png", path="/1.0/watermarks")
        assert made.status == 201
        watermark = made.json["watermark"]
        listed = (await call(client, "GET", "/1.0/watermarks")).json["watermarks"]
        assert watermark in listed
        assert (await call(client, "GET", f"/1.0/watermarks/{watermark['id']}")).json[
            "watermark"
        ] == watermark
        plain = await upload(client, photo)
        for gravity in EDGES:
            request = {"watermark": {"id": watermark["id"], "gravity": gravity, "padding": 3, "scale": 0.3}}
            marked = await upload(client, photo, request)
            assert marked.status == 200, marked.json
            assert marked.json["output"]["sha256"] != plain.json["output"]["sha256"]
        assert (await call(client, "DELETE", f"/1.0/watermarks/{watermark['id']}")).status == 200
        assert_failure(
            await call(client, "GET", f"/1.0/watermarks/{watermark['id']}"), 404, "not_found", "watermark"
        )
        reply = await upload(client, photo, {"watermark": {"id": watermark["id"]}})
        assert_failure(reply, 422, "invalid_parameter", "Watermark 'id' parameter must be")

    @pytest.mark.parametrize(
        ("part", "box"),
        [({}, (20, 15, 40, 25)),
         *[({"gravity": gravity, "padding": 3}, box) for gravity, box in zip(EDGES, (
             (3, 3, 23, 13), (20, 3, 40, 13), (37, 3, 57, 13), (37, 15, 57, 25), (37, 27, 57, 37),
             (20, 27, 40, 37), (3, 27, 23, 37), (3, 15, 23, 25)), strict=True)],
         ({"gravity": "top-left"}, (0, 0, 20, 10)),
         ({"x": 7, "y": 9}, (7, 9, 27, 19)), ({"x": 50, "y": -4}, (50, 0, 60, 6)),
         ({"scale": 0.5, "x": 0, "y": 0}, (0, 0, 10, 5)), ({"width": 10, "x": 0, "y": 0}, (0, 0, 10, 5)),
         ({"height": 5, "x": 0, "y": 0}, (0, 0, 10, 5)),
         ({"width": 10, "height": 9, "x": 0, "y": 0}, (0, 0, 10, 5)),
         ({"width": 100, "height": 100}, (20, 15, 40, 25)), ({"fit": True}, (20, 15, 40, 25)),
         ({"fit": True, "gravity": "right", "padding": 2}, (38, 15, 58, 25))],
    )  # fmt: skip
    async def test_where_a_watermark_lies_and_how_large(
        self, part: dict[str, Any], box: tuple[int, int, int, int], client: aiohttp.ClientSession
    ) -> None:
        """Centered, by gravity or exactly placed; made smaller when asked for, never larger."""
        assert await self._red_box(client, np.full((10, 20), 255, np.uint8), part) == box

    @pytest.mark.parametrize(
        ("part", "box"),
        [({}, (20, 15, 40, 25)), ({"scale": 1.0}, (20, 15, 40, 25)), ({"fit": True}, (25, 18, 35, 23)),
         ({"x": 0, "y": 0}, (50, 35, 60, 40))],
    )  # fmt: skip
    async def test_watermarks_larger_than_the_picture(
        self, part: dict[str, Any], box: tuple[int, int, int, int], client: aiohttp.ClientSession
    ) -> None:
        """One keeps its size and is cut off, unless it has to fit."""
        middle = np.zeros((80, 120), np.uint8)
        middle[35:45, 50:70] = 255
        left, top, right, bottom = await self._red_box(client, middle, part)
        assert np.abs(np.subtract((left, top, right, bottom), box)).max() <= 1

    async def test_the_opacity_of_a_watermark(self, client: aiohttp.ClientSession) -> None:
        """It is the watermark's own unless it is lowered."""
        half = np.full((10, 20), 128, np.uint8)
        shades = [
            (await self._marked(client, alpha, part))[20, 30, 1]
            for alpha, part in ((half, {}), (half * 0 + 255, {"opacity": 0.5}), (half * 0 + 255, {}))
        ]
        assert np.abs(np.subtract(shades, (64, 64, 0))).max() <= 1

    async def _red_box(
        self, client: aiohttp.ClientSession, alpha: NDArray[np.uint8], part: dict[str, Any]
    ) -> tuple[int, ...]:
        """Left, top, right and bottom of what a red watermark covers."""
        rows, columns = np.nonzero((await self._marked(client, alpha, part))[:, :, 1] < 64)
        return int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1

    async def _marked(
        self, client: aiohttp.ClientSession, alpha: NDArray[np.uint8], part: dict[str, Any]
    ) -> NDArray[np.uint8]:
        """A gray picture of 60 x 40 with a red watermark on it."""
        red = np.zeros((*alpha.shape, 4), np.uint8)
        red[:, :, 0], red[:, :, 3] = 255, alpha
        made = await upload(client, pillow(red, "PNG"), path="/1.0/watermarks")
        id_ = made.json["watermark"]["id"]
        gray = pillow(np.full((40, 60, 3), 128, np.uint8), "PNG")
        request = {"watermark": {"id": id_, **part}, "response": {"mode": "binary"}}
        reply = await upload(client, gray, request)
        assert reply.status == 200, reply.metadata
        await call(client, "DELETE", f"/1.0/watermarks/{id_}")
        return np.asarray(reply.picture.convert("RGB"))

    @pytest.mark.parametrize("name", ["opacity", "scale"])
    async def test_opacity_and_scale_of_a_watermark_are_within_0_01_to_1(
        self, name: str, watermark: str, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """Both ends are allowed, and nothing just outside."""
        for value in (0.01, 1.00):
            reply = await upload(client, photo, {"watermark": {"id": watermark, name: value}})
            assert reply.status == 200, reply.json
        for wrong in (0.009, 1.001):
            reply = await upload(client, photo, {"watermark": {"id": watermark, name: wrong}})
            message = f"Watermark '{name}' parameter must be float within 0.01 to 1 range"
            assert_failure(reply, 422, "invalid_parameter", message)

    @pytest.mark.parametrize("name", ["padding", "width", "height"])
    async def test_padding_and_size_of_a_watermark_are_positive(
        self, name: str, watermark: str, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """They begin with 1 pixel."""
        request = {"watermark": {"id": watermark, "gravity": "top", name: 1}}
        reply = await upload(client, photo, request)
        assert reply.status == 200, reply.json
        for wrong in (0, -1):
            reply = await upload(client, photo, {"watermark": {**request["watermark"], name: wrong}})
            message = f"Watermark '{name}' parameter must be integer within 1 to"
            assert_failure(reply, 422, "invalid_parameter", message)

    @pytest.mark.parametrize(
        ("part", "name"),
        [({"gravity": "middle"}, "gravity"), ({"gravity": "top", "padding": 1.5}, "padding"),
         ({"x": 1.5}, "x"), ({"y": "1"}, "y"), ({"opacity": "1"}, "opacity"), ({"scale": True}, "scale"),
         ({"width": 1.5}, "width"), ({"height": "1"}, "height"), ({"fit": 1}, "fit")],
    )  # fmt: skip
    async def test_watermark_types(
        self, part: dict[str, Any], name: str, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """Each parameter of a watermark has its type."""
        reply = await upload(client, photo, {"watermark": {"id": "x", **part}})
        assert_failure(reply, 422, "invalid_parameter", f"Watermark '{name}' parameter must be")

    async def test_a_watermark_needs_its_id(self, client: aiohttp.ClientSession, photo: bytes) -> None:
        """The one parameter that is required."""
        reply = await upload(client, photo, {"watermark": {"gravity": "top"}})
        assert_failure(reply, 422, "invalid_parameter", "Watermark 'id' parameter must be string")
