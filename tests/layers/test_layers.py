"""Layers through the whole way: in order, over the border, from Python, command, URL and batch."""

from __future__ import annotations

import io
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import imgsvc_core as imgsvc
from imgsvc_batch import Batch, run_batch
from imgsvc_cli.app import run
from imgsvc_core.errors import MemoryLimitExceeded, SourceError, SpecError
from imgsvc_core.spec import MOST_LAYERS, Length
from imgsvc_core.spec.density import at_density
from imgsvc_core.spec.options import base64_of, options_of, request_of
from tests.process.pictures import pixels_of
from tests.support import encoded
from tests.support.golden import GoldenCheck
from tests.support.photos import as_vips, camera, coffee, cut_out

PHOTO = coffee()[100:220, 200:380]
ROCKET = bytes(as_vips(cut_out("rocket")[100:160, 200:260]).pngsave_buffer())
BOX = {"shape": {"kind": "rectangle", "color": "FF3300"}, "width": 40, "height": 20}
CARD: list[dict[str, Any]] = [
    {"gradient": {"from": "00000000", "to": "cc000000", "angle": 180}},
    {"picture": {"id": "logo"}, "width": "24%", "gravity": "top-right", "padding": 10, "blend": "screen"},
    {**BOX, "gravity": "bottom-left", "x": 10, "y": "10%"},
    {"shape": {"kind": "ellipse", "color": "8000ff00"}, "width": 60, "height": 30, "x": 20, "y": 15,
     "rotation": 30, "opacity": 0.8},
    {"shape": {"kind": "line", "color": "fff", "thickness": 3}, "width": "30%", "height": "30%",
     "gravity": "right", "blend": "difference"},
    {"gradient": {"kind": "radial", "from": "ffff00", "to": "00ffff00"}, "width": 30, "height": 30,
     "gravity": "bottom", "y": 4, "blend": "luminosity"},
]  # fmt: skip


def png(pixels: Any) -> bytes:
    return bytes(as_vips(pixels).pngsave_buffer())


def made(layers: Any, source: bytes | None = None, **request: Any) -> Any:
    document = {"layers": layers, "output": {"format": "png"}, **request}
    return imgsvc.process(source or png(PHOTO), document, watermarks={"logo": ROCKET})


def test_a_card_looks_as_it_should(check_golden: GoldenCheck) -> None:
    check_golden("layers-card", pixels_of(made(CARD).data), 0.5)


def test_later_layers_cover_earlier_ones() -> None:
    blue = {**BOX, "shape": {"kind": "rectangle", "color": "0033FF"}}
    center = 60, 90
    assert tuple(pixels_of(made([BOX, blue]).data)[center]) == (0, 0x33, 0xFF)
    assert tuple(pixels_of(made([blue, BOX]).data)[center]) == (0xFF, 0x33, 0)


def test_they_lie_over_border_and_watermark_and_fade_with_the_picture() -> None:
    whole = {"shape": {"kind": "rectangle", "color": "00FF00"}}
    found = made([whole], border={"size": 5}, watermark={"id": "logo"}, adjust={"opacity": 0.5})
    pixels = pixels_of(found.data)
    assert pixels.shape == (130, 190, 4)
    assert (pixels == [0, 255, 0, 128]).all()


def test_a_layer_without_more_is_laid_over_as_a_watermark_is() -> None:
    places = {"gravity": "bottom-right", "padding": 7, "width": 33, "opacity": 0.6}
    source = png(PHOTO)
    by_layer = made([{"picture": {"id": "logo"}, **places}], source)
    by_watermark = imgsvc.process(
        source,
        {"watermark": {"id": "logo", **places}, "output": {"format": "png"}},
        watermarks={"logo": ROCKET},
    )
    assert by_layer.data == by_watermark.data


def test_gray_pictures_stay_gray_below_gray_layers() -> None:
    source = png(camera()[:60, :80])
    gray = made([{**BOX, "shape": {"kind": "ellipse", "color": "80888888"}}], source)
    assert gray.output.colorspace == "gray"
    assert made([BOX], source).output.colorspace != "gray"
    shape = {"kind": "ellipse", "color": "888888"}
    red_below = made([{**BOX, "shape": shape, "shadow": {"x": 4, "color": "FF0000"}}], source)
    assert red_below.output.colorspace != "gray"


def test_each_frame_of_an_animation_gets_the_layers() -> None:
    result = imgsvc.process(
        encoded.gif_animated().data,
        {"layers": [{**BOX, "width": 8, "height": 8}, {"picture": {"id": "logo"}}]},
        watermarks={"logo": ROCKET},
    )
    assert result.output.frames == result.input.frames > 1


def test_pictures_are_enlarged_only_if_asked() -> None:
    small = png(np.full((10, 10, 3), 255, np.uint8))
    layer = {"picture": {"id": "small"}, "width": "50%", "x": 0, "y": 0}
    black = png(np.zeros((80, 100, 3), np.uint8))
    for upscale, side in ((False, 10), (True, 50)):
        found = imgsvc.process(
            black, {"layers": [{**layer, "upscale": upscale}]}, watermarks={"small": small}
        )
        assert (pixels_of(found.data)[..., 0] > 128).sum() == side * side


def test_python_takes_pictures_by_path(tmp_path: Path) -> None:
    file = tmp_path / "logo.png"
    file.write_bytes(ROCKET)
    by_path = made([{"picture": {"source": str(file)}}])
    assert by_path.data == made([{"picture": {"id": "logo"}}]).data
    file.write_text("no picture")
    with pytest.raises(SourceError, match=r"^Layer picture '.*logo\.png'"):
        made([{"picture": {"source": str(file)}}])


@pytest.mark.parametrize(
    ("layers", "paths"),
    [
        ([BOX, {}], ["layers[1].picture"]),
        ([{**BOX, "gradient": {"from": "000", "to": "fff"}}], ["layers[0].shape"]),
        ([{"picture": {"id": "other"}}], ["layers[0].picture.id"]),
        ([{"picture": {"id": "logo", "source": "a.png"}}], ["layers[0].picture.id"]),
        ([{**BOX, "width": 0}, {**BOX, "height": 1e6}], ["layers[0].width", "layers[1].height"]),
        ([{**BOX, "width": "0.1%"}], ["layers[0].width"]),
        ([{**BOX, "x": "nan%"}, {**BOX, "y": float("nan")}], ["layers[0].x", "layers[1].y"]),
        ([{**BOX, "blend": "over"}], ["layers[0].blend"]),
        ([{**BOX, "padding": 3}], ["layers[0].padding"]),
        ([{**BOX, "colour": "f00"}, 7], ["layers[0].colour", "layers[1]"]),
        ([BOX] * (MOST_LAYERS + 1), ["layers"]),
        ([{"text": {"text": "a" * 2001, "size": 9}}], ["layers[0].text.text"]),
        ("rectangle", ["layers"]),
    ],
)
def test_mistakes_are_told_with_the_path_of_the_layer(layers: Any, paths: list[str]) -> None:
    with pytest.raises(SpecError) as caught:
        made(layers)
    assert [problem.path for problem in caught.value.problems] == paths


def test_as_many_layers_and_letters_as_are_allowed_are_taken() -> None:
    texts = [{"text": {"text": "a" * 2000, "size": 9}}]
    for layers in ([BOX] * MOST_LAYERS, texts):
        assert imgsvc.parse({"layers": layers}).layers is not None


def test_layers_count_in_the_bound_of_memory() -> None:
    large = {"shape": {"kind": "ellipse", "color": "f00"}, "width": 20_000, "height": 20_000}
    with pytest.raises(MemoryLimitExceeded) as caught:
        imgsvc.process(png(PHOTO), {"layers": [BOX, large]}, limits=imgsvc.Limits(memory_bytes=10**9))
    assert caught.value.path == "layers[1]"


def test_a_limit_of_memory_names_the_layer_without_which_it_is_kept() -> None:
    text = {"text": {"text": "a" * 500, "size": 20}, "width": 400}
    bound = imgsvc.explain({"layers": [BOX]}, png(PHOTO)).memory
    with pytest.raises(MemoryLimitExceeded) as caught:
        imgsvc.process(png(PHOTO), {"layers": [BOX, text]}, limits=imgsvc.Limits(memory_bytes=bound))
    assert caught.value.path == "layers[1].text.size"
    with pytest.raises(MemoryLimitExceeded) as caught:
        imgsvc.process(png(PHOTO), {"layers": [BOX]}, limits=imgsvc.Limits(memory_bytes=10**6))
    assert caught.value.path == ""


LONE = "\ud800"


@pytest.mark.parametrize(
    "asked",
    [
        {"layers": [{"text": {"text": LONE, "size": 9}}]},
        {"layers": [{"text": {"text": "a", "size": 9, "font": LONE}}]},
        {"layers": [{LONE: 1}]},
        {"layers": [{"picture": {"id": LONE}}]},
        {"layers": [{"picture": {"source": LONE}}]},
        {LONE: 1},
        {"output": {"format": LONE}},
        {"background": {"kind": LONE}},
    ],
)
def test_messages_can_be_written_whatever_the_request_holds(asked: dict[str, Any]) -> None:
    with pytest.raises(imgsvc.ImgsvcError) as caught:
        imgsvc.process(png(PHOTO), asked)
    told = caught.value
    paths = [problem.path for problem in told.problems] if isinstance(told, SpecError) else [told.path]
    assert f"{told} {told.message} {paths}".encode()


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.png"
    size = struct.pack(">II", 60_000, 60_000)
    data = bytearray(encoded.png().data)
    data[16:24] = size
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    bomb.write_bytes(data)
    with pytest.raises(imgsvc.ImageTooLarge, match="Layer picture"):
        made([{"picture": {"source": str(bomb)}}])


def test_options_of_urls_hold_the_layers() -> None:
    document = imgsvc.unparse(imgsvc.parse({"layers": CARD, "resize": {"width": 100}}))
    options = options_of(document)
    assert set(options) == {"layers", "resize"}
    assert imgsvc.unparse(imgsvc.parse(request_of(options))) == document


@pytest.mark.parametrize(
    "text", ["", "{", "W10=x", base64_of("a")[:-1] + "!", "gICA", "W3siYSI6MSwiYSI6Mn1d"]
)
def test_what_is_no_base64url_of_json_is_told(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        request_of({"layers": text})
    assert [problem.path for problem in caught.value.problems] == ["layers"]


def test_pixels_of_layers_follow_the_density_and_percent_stay() -> None:
    spec = imgsvc.parse({"layers": [{**BOX, "gravity": "left", "padding": "3%", "x": -3}]})
    [layer] = at_density(spec, 2).layers
    assert (layer.width, layer.height, layer.x) == tuple(map(Length, (80, 40, -6)))
    assert layer.padding == spec.layers[0].padding


def test_no_density_leaves_nothing_of_a_pixel() -> None:
    spec = imgsvc.parse({"layers": [{**BOX, "height": 1, "x": 1, "y": 0}]})
    [layer] = at_density(spec, 0.3).layers
    assert (layer.width, layer.height, layer.x, layer.y) == tuple(map(Length, (12, 1, 1, 0)))


def test_the_command_reads_layers_from_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("photo.png").write_bytes(png(PHOTO))
    Path("logo").write_bytes(ROCKET)
    Path("layers.json").write_text(json.dumps(CARD))
    assert run(["process", "photo.png", "-o", "out.png", "--layers", "layers.json"]) == 0
    assert np.array_equal(pixels_of(Path("out.png").read_bytes()), pixels_of(made(CARD).data))
    Path("layers.json").write_text(json.dumps({"layers": CARD}))
    assert run(["process", "photo.png", "-o", "out.png", "--layers", "layers.json"]) == 2
    Path("layers.json").write_text(json.dumps([{"picture": {"id": "none.png"}}]))
    assert run(["process", "photo.png", "-o", "out.png", "--layers", "layers.json"]) == 2
    Path("layers.json").write_text(json.dumps([BOX, {**BOX, "width": 0}]))
    assert run(["process", "photo.png", "-o", "out.png", "--layers", "layers.json"]) == 2
    assert "imgsvc: layers[1].width: Layer 'width' parameter must be" in capsys.readouterr().err


def test_a_batch_lays_them_over_each_picture(tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    (tmp_path / "logo.png").write_bytes(ROCKET)
    (source / "a.png").write_bytes(png(PHOTO))
    by_path = [layer for layer in CARD if "picture" not in layer]
    by_path.append({"picture": {"source": str(tmp_path / "logo.png")}})
    summary = run_batch(
        Batch(source=str(source), target=str(target), variants={"": {"layers": by_path}}, workers=1)
    )
    assert (summary.done, summary.failed) == (1, 0)
    assert np.array_equal(pixels_of((target / "a.png").read_bytes()), pixels_of(made(by_path).data))
    with pytest.raises(SpecError) as caught:
        Batch(source=str(source), target=str(target), variants={"": {"layers": [{"picture": {"id": "x"}}]}})
    assert [problem.path for problem in caught.value.problems] == ["layers[0].picture.id"]


def test_a_picture_in_python_shows_where_it_is_without_secrets() -> None:
    layer = imgsvc.Layer(
        picture=imgsvc.Picture(source="https://ann:secret@example.org/logo.png?token=secret")
    )
    assert "Picture(source='https://example.org/logo.png')" in repr(layer)
    assert "secret" not in repr(layer)
    assert repr(imgsvc.Picture(source="logo.png")) == "Picture(source='logo.png')"
    assert repr(imgsvc.Picture(id="b7c1")) == "Picture(id='b7c1')"


def test_an_open_file_in_the_place_of_a_picture_is_read_once_for_all_variants() -> None:
    spec = {"layers": [{"picture": {"source": "logo"}}], "output": {"format": "png"}}
    made = imgsvc.process_variants(PHOTO, {"a": spec, "b": spec}, watermarks={"logo": io.BytesIO(ROCKET)})
    assert made["a"].data == made["b"].data
