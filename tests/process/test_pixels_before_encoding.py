"""A result without a target gives its pixels as they are before encoding, and is encoded when that is asked
for.
"""

from __future__ import annotations

import copy
import io
import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyvips
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core._runtime.deadline import Deadline
from tests.process.pictures import pixels_of
from tests.support import encoded
from tests.support.photos import as_vips, coffee, cut_out, deep, moving_frames

RESIZE = {"resize": {"width": 60}}
LOSSY: list[dict[str, Any]] = [
    {"format": "jpg", "quality": 1},
    {"format": "webp", "quality": 1},
    {"format": "gif", "colors": 4},
    {"format": "png", "colors": 4},
    {"format": "jpg", "max_bytes": 1500},
    {"format": "auto"},
]


@pytest.mark.parametrize("output", LOSSY)
def test_pixels_are_those_before_encoding(output: dict[str, Any]) -> None:
    exact = pixels_of(imgsvc.process(coffee(), {**RESIZE, "output": {"format": "png"}}).data)
    result = imgsvc.process(coffee(), {**RESIZE, "output": output})
    assert np.array_equal(result.to_numpy(), exact)
    assert np.array_equal(np.asarray(result.to_pil()), exact)
    assert np.array_equal(result.to_vips().numpy(), exact)
    assert result.data
    assert np.array_equal(result.to_numpy(), exact)


def test_what_cannot_be_encoded_has_pixels() -> None:
    result = imgsvc.process(coffee(), {**RESIZE, "output": {"format": "jpg", "max_bytes": 100}})
    assert result.to_numpy().shape == (40, 60, 3)
    assert repr(result) == "<Result jpg 60x40, not encoded yet, from raw 600x400>"
    for ask in (
        lambda: result.data,
        lambda: result.output,
        lambda: result.notes,
        result.to_dict,
        lambda: result.save(io.BytesIO()),
    ):
        with pytest.raises(imgsvc.BudgetUnreachable):
            ask()


def test_damage_is_told_at_once() -> None:
    with pytest.raises(imgsvc.CorruptImage):
        imgsvc.process(encoded.jpeg().data[:-600], RESIZE)


def test_facts_that_need_no_encoding_cause_none() -> None:
    result = imgsvc.process(coffee(), RESIZE)
    assert (result.input.width, result.plan.size, result.faces) == (600, (60, 40), None)
    assert result.timing.encode == 0
    assert result.media_type == "image/png"
    assert "not encoded yet" in repr(result)
    assert result.output.bytes == len(result.data)
    assert result.timing.encode > 0
    assert f"{len(result.data):,} bytes" in repr(result)


def test_a_format_that_the_picture_decides_is_known_when_it_is_encoded() -> None:
    result = imgsvc.process(coffee(), {**RESIZE, "output": {"format": "auto"}})
    assert repr(result).startswith("<Result webp or jpg or png 60x40, not encoded yet")
    assert result.media_type == f"image/{result.output.format}"
    assert repr(result).startswith(f"<Result {result.output.format} 60x40, {len(result.data):,} bytes")


def test_pixels_are_not_copied() -> None:
    result = imgsvc.process(coffee())
    pixels = result.to_numpy()
    assert np.shares_memory(pixels, result.to_numpy())
    file = io.BytesIO()
    Image.fromarray(coffee()).save(file, "JPEG", quality=95)
    decoded = imgsvc.process(file.getvalue())
    assert np.shares_memory(decoded.to_numpy(), decoded.to_numpy())
    assert np.array_equal(decoded.to_numpy(), np.asarray(Image.open(file)))


@pytest.mark.parametrize("width", [60, 2000])
def test_pixels_cannot_be_made_writeable(width: int) -> None:
    result = imgsvc.process(coffee(), imgsvc.Resize(width=width))
    for pixels in (result.to_numpy(), imgsvc.process(deep(coffee())).to_numpy()):
        assert not pixels.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            pixels.setflags(write=True)


@pytest.mark.parametrize("shape", [(), (3,)])
def test_deep_pixels_stay_deep_unless_a_depth_is_asked_for(shape: tuple[int, ...]) -> None:
    source = deep(coffee()) if shape else deep(coffee())[..., 0]
    result = imgsvc.process(source, {"output": {"format": "jpg"}})
    assert np.array_equal(result.to_numpy(), source)
    shallow = imgsvc.process(source, imgsvc.Output(format="png", depth=8))
    assert shallow.to_numpy().dtype == np.uint8
    assert np.array_equal(shallow.to_numpy(), pixels_of(shallow.data).squeeze())


def test_animations_have_frames_and_delays_in_all_libraries() -> None:
    frames = [Image.fromarray(frame) for frame in moving_frames(3, 40, 30)]
    file = io.BytesIO()
    frames[0].save(file, "PNG", save_all=True, append_images=frames[1:], duration=[50, 70, 90])
    result = imgsvc.process(file.getvalue(), {"output": {"format": "gif", "colors": 4}})
    pixels = result.to_numpy()
    assert pixels.shape[:3] == (3, 30, 40)
    assert np.array_equal(pixels[2, ..., :3], np.asarray(frames[2]))
    strip = result.to_vips()
    assert (strip.get("page-height"), strip.get("delay")) == (30, [50, 70, 90])
    animation = result.to_pil()
    animation.seek(2)
    assert animation.info["duration"] == 90
    assert np.array_equal(np.asarray(animation.convert("RGB")), np.asarray(frames[2]))


SOURCES = {
    "jpeg with a profile": encoded.profile,
    "turned": lambda: encoded.jpeg_oriented().data,
    "inks": lambda: encoded.jpeg_cmyk().data,
    "deep": lambda: encoded.png_deep().data,
    "gray": lambda: encoded.png_gray().data,
    "alpha": lambda: cut_out("coffee"),
    "animation": lambda: encoded.apng().data,
    "gif": lambda: encoded.gif_disposals().data,
    "tiff": lambda: encoded.tiff_lab().data,
}
SOURCES["jpeg with a profile"] = lambda: (
    as_vips(coffee()).icc_transform("p3", input_profile="srgb").jpegsave_buffer()
)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("output", [{}, {"metadata": "keep"}, {"format": "webp"}, {"format": "png"}])
def test_later_encoding_gives_the_same_bytes(source: str, output: dict[str, Any]) -> None:
    made: Any = SOURCES[source]()
    for request in ({"output": output}, {**RESIZE, "output": output}):
        file = io.BytesIO()
        written = imgsvc.process(made, request, file)
        result = imgsvc.process(made, request)
        assert result.data == file.getvalue()
        assert (result.output, result.notes) == (written.output, written.notes)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("suffix", ["jpg", "webp", "png"])
@pytest.mark.parametrize("output", [{}, {"quality": 30, "metadata": "keep"}])
def test_a_suffix_names_the_format_of_a_saved_file(
    source: str, suffix: str, output: dict[str, Any], tmp_path: Path
) -> None:
    """As it does for a target, if the request names none."""
    made, request = SOURCES[source](), {**RESIZE, "output": output}
    result = imgsvc.process(made, request)
    result.save(tmp_path / f"later.{suffix}")
    at_once = imgsvc.process(made, request, tmp_path / f"at-once.{suffix}").output
    later = imgsvc.inspect(tmp_path / f"later.{suffix}")
    facts = ("format", "width", "height", "frames", "alpha", "depth", "delays", "plays")
    assert [getattr(later, name) for name in facts] == [getattr(at_once, name) for name in facts]
    first, second = (pyvips.Image.new_from_file(f"{tmp_path}/{n}.{suffix}") for n in ("later", "at-once"))
    assert first.get_fields() == second.get_fields()
    assert (first - second).abs().max() == 0
    if suffix != "png":  # which is compressed as suits the format of the source, to the same pixels
        assert (tmp_path / f"later.{suffix}").stat().st_size == at_once.bytes


def test_a_saved_file_in_another_format_leaves_the_result_as_it_is(tmp_path: Path) -> None:
    result = imgsvc.process(encoded.jpeg_oriented().data, RESIZE)
    result.save(tmp_path / "a.webp")
    before = result.data
    result.save(tmp_path / "b.webp")
    assert (tmp_path / "a.webp").read_bytes() == (tmp_path / "b.webp").read_bytes()
    assert (result.output.format, result.data) == ("jpg", before)


def test_a_pickled_result_keeps_its_format(tmp_path: Path) -> None:
    result = pickle.loads(pickle.dumps(imgsvc.process(encoded.jpeg_oriented().data, RESIZE)))
    with pytest.raises(imgsvc.TargetError, match=r"got '\.webp'; ask for that format instead"):
        result.save(tmp_path / "a.webp")


@pytest.mark.parametrize(("policy", "kept"), [("strip", False), ("copyright", True), ("keep", True)])
def test_pixels_have_the_metadata_that_the_file_would_have(policy: str, kept: bool) -> None:
    exif = Image.Exif()
    exif[0x8298] = "A. Author"
    exif.get_ifd(0x8825)[1] = "N"
    file = io.BytesIO()
    Image.fromarray(coffee()).save(file, "PNG", exif=exif)
    image = imgsvc.process(file.getvalue(), {"output": {"metadata": policy}}).to_vips()
    assert ("exif-data" in image.get_fields()) == kept
    blob = image.get("exif-data") if kept else b""
    assert (b"A. Author" in blob, _has_place(blob)) == (kept, policy == "keep")


def _has_place(blob: bytes) -> bool:
    exif = Image.Exif()
    exif.load(blob)
    return bool(exif.get_ifd(0x8825))


def test_a_pickle_holds_the_encoded_picture() -> None:
    result = imgsvc.process(coffee(), RESIZE)
    received = pickle.loads(pickle.dumps(result))
    assert (received.data, received.output, received.plan) == (result.data, result.output, result.plan)
    assert len(pickle.dumps(received)) < 40_000
    with pytest.raises(TypeError, match=r"stayed in the process .* call imgsvc\.to_numpy there"):
        received.to_numpy()


@pytest.mark.parametrize("width", [60, 2000])
def test_copies_keep_the_pixels(width: int) -> None:
    """Also of a result that cannot be encoded."""
    result = imgsvc.process(coffee(), {"resize": {"width": width}, "output": {"max_bytes": 100}})
    for copied in (copy.copy(result), copy.deepcopy(result), copy.deepcopy([result])[0]):
        assert np.array_equal(copied.to_numpy(), result.to_numpy())
        assert "not encoded yet" in repr(copied)


def test_pixels_travel_as_arrays() -> None:
    with imgsvc.WorkerPool(1) as pool:
        pixels = pool.submit(imgsvc.to_numpy, coffee(), RESIZE).result()
    assert np.array_equal(pixels, imgsvc.process(coffee(), RESIZE).to_numpy())


def test_several_threads_encode_once() -> None:
    result = imgsvc.process(coffee())
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: result.data, range(8)))
    assert all(item is found[0] for item in found)


def test_time_rests_between_two_parts_of_the_work() -> None:
    deadline = Deadline(1.5)
    assert deadline.run(int, "5") == 5
    time.sleep(1.7)
    assert deadline.run(int, "7") == 7
    with pytest.raises(imgsvc.TimeLimitExceeded, match=r"the 1\.5 seconds"):
        deadline.run(time.sleep, 30)
    with pytest.raises(imgsvc.TimeLimitExceeded):
        deadline.run(int, "9")


def test_variants_are_written_to_their_targets(tmp_path: Path) -> None:
    sizes: dict[str, imgsvc.Request] = {f"w{width}": imgsvc.Resize(width=width) for width in (30, 60)}
    made = imgsvc.process_variants(coffee(), sizes, f"{tmp_path}/a-{{name}}.webp")
    assert {name: result.output.name for name, result in made.items()} == {
        "w30": "a-w30.webp",
        "w60": "a-w60.webp",
    }
    assert pyvips.Image.new_from_file(str(tmp_path / "a-w60.webp")).width == 60
    files = {name: io.BytesIO() for name in sizes}
    imgsvc.process_variants(coffee(), sizes, files)
    assert all(file.getvalue() for file in files.values())
    with pytest.raises(imgsvc.TargetError, match=r"must hold '\{name\}' for 2 variants"):
        imgsvc.process_variants(coffee(), sizes, str(tmp_path / "a.webp"))
    with pytest.raises(imgsvc.TargetError, match="got none for 'w60'"):
        imgsvc.process_variants(coffee(), sizes, {"w30": io.BytesIO()})
    for target in (tmp_path / "a.webp", io.BytesIO()):
        with pytest.raises(imgsvc.TargetError, match="the same one for 'w30' and 'w60'"):
            imgsvc.process_variants(coffee(), sizes, dict.fromkeys(sizes, target))


def test_later_errors_name_the_variant() -> None:
    wanted: dict[str, imgsvc.Request] = {"fine": RESIZE, "tiny": imgsvc.Output(format="jpg", max_bytes=100)}
    made = imgsvc.process_variants(coffee(), wanted)
    assert made["fine"].data
    with pytest.raises(imgsvc.BudgetUnreachable, match=r"^Variant 'tiny': "):
        _ = made["tiny"].data


def test_pixels_of_variants_count_as_memory_together() -> None:
    big = np.zeros((3000, 3000, 3), np.uint8)
    limits = imgsvc.Limits(memory_bytes=230_000_000)
    some: dict[str, imgsvc.Request] = {str(number): {} for number in range(2)}
    assert len(imgsvc.process_variants(big, some, limits=limits)) == 2
    many: dict[str, imgsvc.Request] = {str(number): {} for number in range(9)}
    with pytest.raises(imgsvc.MemoryLimitExceeded):
        imgsvc.process_variants(big, many, limits=limits)
