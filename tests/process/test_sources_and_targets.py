"""Where pictures come from and go to."""

from __future__ import annotations

import http.server
import io
import os
import stat
import threading
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
import pyvips
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.spec import Resize, Spec
from imgsvc_core.targets import open_target
from tests.process.pictures import pixels_of
from tests.support.photos import as_vips, coffee, cut_out, deep

PNG = {"output": {"format": "png"}}


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "photo.png"
    as_vips(coffee()).pngsave(str(path))
    return path


def test_every_kind_of_source_gives_the_same_picture(photo: Path) -> None:
    data = photo.read_bytes()
    with fsspec.open("memory://sources/photo.png", "wb") as file:
        file.write(data)
    sources: list[Any] = [
        photo,
        str(photo),
        data,
        bytearray(data),
        memoryview(data),
        io.BytesIO(data),
        "memory://sources/photo.png",
        coffee(),
        as_vips(coffee()),
        imgsvc.process(photo, PNG),
    ]
    for source in sources:
        assert np.array_equal(pixels_of(imgsvc.process(source, PNG).data or b""), coffee()), type(source)
    with photo.open("rb") as file:
        assert imgsvc.process(file, PNG).input.name == "photo.png"


@pytest.mark.parametrize(
    "array",
    [
        coffee(),
        coffee()[..., 0],
        coffee()[..., :2],
        cut_out("coffee"),
        deep(coffee()),
        deep(coffee()[..., 0]),
        deep(coffee()).astype(">u2"),
        coffee()[::-1, ::2],
    ],
    ids=["rgb", "gray", "gray and alpha", "rgba", "16 bit", "gray 16 bit", "big-endian", "view"],
)
def test_arrays_keep_their_channels_and_depth(array: np.ndarray[Any, Any]) -> None:
    data = imgsvc.process(array, PNG).data
    image = pyvips.Image.new_from_buffer(data, "")
    assert np.array_equal(image.numpy().reshape(array.shape), array)
    assert image.format == ("ushort" if array.dtype.name == "uint16" else "uchar")


def test_a_file_of_text_is_refused() -> None:
    with pytest.raises(imgsvc.SourceUnreachable, match="Source file must be opened in binary mode, got text"):
        imgsvc.process(io.StringIO("text"))


@pytest.mark.parametrize("source", ["missing.png", "memory://nowhere/missing.png", "nosuch://host/a.png"])
def test_what_is_not_there_is_unreachable(source: str) -> None:
    with pytest.raises(imgsvc.SourceUnreachable, match="cannot be read"):
        imgsvc.process(source)


def test_a_target_gets_what_the_result_would_hold(photo: Path, tmp_path: Path) -> None:
    request = {"resize": {"width": 100}}
    expected = imgsvc.process(photo, {**request, "output": {"format": "webp"}}).data
    buffer = io.BytesIO()
    assert imgsvc.process(photo, {**request, "output": {"format": "webp"}}, buffer).data is None
    imgsvc.process(photo, request, tmp_path / "out.webp")
    result = imgsvc.process(photo, request, "memory://targets/out.webp")
    with fsspec.open("memory://targets/out.webp", "rb") as file:
        uploaded = file.read()
    asked = imgsvc.process(photo, request, "memory://targets/out.webp?partNumber=1")
    assert asked.output == result.output
    assert expected == buffer.getvalue() == (tmp_path / "out.webp").read_bytes() == uploaded
    assert (result.output.name, result.output.format, result.output.bytes) == (
        "out.webp",
        "webp",
        len(uploaded),
    )


def test_the_request_names_the_format_before_the_suffix_does(photo: Path, tmp_path: Path) -> None:
    assert imgsvc.process(photo, None, tmp_path / "a.jpg").output.format == "jpg"
    assert imgsvc.process(photo, PNG, tmp_path / "b.jpg").output.format == "png"
    assert imgsvc.process(photo, PNG, tmp_path / "c.unknown").output.format == "png"
    assert imgsvc.process(photo, None, tmp_path / "c").output.format == "png"
    assert imgsvc.process(photo).output.format == "png"


@pytest.mark.parametrize(
    ("name", "reason"),
    [("d.unknown", "No format has the suffix '.unknown'"), ("d.psd", "Images cannot be written as 'psd'")],
)
def test_a_suffix_that_names_no_format_is_told(photo: Path, tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(imgsvc.UnsupportedOperation, match=f"{reason}; name the target otherwise, or set"):
        imgsvc.process(photo, None, tmp_path / name)
    assert not (tmp_path / name).exists()


def test_the_source_may_be_the_target(photo: Path) -> None:
    imgsvc.process(photo, {"resize": {"width": 60}}, photo)
    assert imgsvc.inspect(photo).width == 60


def _broken() -> bytes:
    data = as_vips(coffee()).pngsave_buffer()
    return data[: len(data) // 2]


def test_a_failed_job_leaves_the_old_file_and_no_new_one(photo: Path, tmp_path: Path) -> None:
    target = tmp_path / "results" / "out.png"
    target.parent.mkdir()
    with pytest.raises(imgsvc.CorruptImage):
        imgsvc.process(_broken(), None, target)
    assert list(target.parent.iterdir()) == []
    target.write_bytes(b"precious")
    with pytest.raises(imgsvc.CorruptImage):
        imgsvc.process(_broken(), None, target)
    assert target.read_bytes() == b"precious"
    assert list(target.parent.iterdir()) == [target]
    with pytest.raises(imgsvc.CorruptImage):
        imgsvc.process(_broken(), None, "memory://failed/out.png")
    assert not fsspec.filesystem("memory").exists("/failed/out.png")


def test_a_name_may_be_as_long_as_the_file_system_allows(photo: Path, tmp_path: Path) -> None:
    target = tmp_path / ("x" * 251 + ".png")
    imgsvc.process(photo, None, target)
    assert list(tmp_path.glob("x*")) == [target]


def test_names_need_not_be_utf_8(photo: Path, tmp_path: Path) -> None:
    source, target = (os.fsdecode(os.fsencode(tmp_path) + name) for name in (b"/caf\xe9.jpg", b"/\xff.png"))
    Path(source).write_bytes(photo.read_bytes())
    assert imgsvc.inspect(source).width == imgsvc.process(source, None, target).output.width
    assert Path(target).read_bytes() == imgsvc.process(photo, PNG).data


def test_a_target_that_cannot_be_written_says_so(photo: Path, tmp_path: Path) -> None:
    with pytest.raises(imgsvc.TargetError, match=r"cannot be written: No such file or directory\."):
        imgsvc.process(photo, None, tmp_path / "missing" / "out.png")
    with pytest.raises(imgsvc.TargetError, match="cannot be written"):
        imgsvc.process(photo, None, tmp_path)
    with (
        open("/dev/full", "wb", buffering=0) as full,
        pytest.raises(imgsvc.TargetError, match="No space left"),
    ):
        imgsvc.process(photo, None, full)


def test_digests_are_computed_where_they_are_asked_for(photo: Path, tmp_path: Path) -> None:
    import hashlib

    result = imgsvc.process(photo, PNG, digest=True)
    assert result.input.sha256 == hashlib.sha256(photo.read_bytes()).hexdigest()
    assert result.output.sha256 == hashlib.sha256(result.data or b"").hexdigest()
    written = imgsvc.process(photo, PNG, tmp_path / "written.png", digest=True)
    assert written.output.sha256 == result.output.sha256
    assert imgsvc.inspect(photo, digest=True).sha256 == result.input.sha256
    assert imgsvc.inspect(photo).sha256 is None


def test_the_result_tells_what_was_done(photo: Path) -> None:
    result = imgsvc.process(photo, Spec(resize=Resize(width=100)), name="given.png")
    told = result.to_dict()
    assert told["input"]["name"] == "given.png"
    assert (told["input"]["width"], told["input"]["height"]) == (600, 400)
    assert (told["output"]["width"], told["output"]["height"]) == (100, 67)
    assert told["output"]["bytes"] == len(result.data or b"")
    assert set(told["timing"]) == {"decode", "process", "encode"}
    assert all(value >= 0 for value in told["timing"].values())
    assert "faces" not in told["output"]


def test_a_computed_picture_without_named_channels_is_gray_or_rgb() -> None:
    gray = imgsvc.process(pyvips.Image.black(8, 6) + 100)
    assert (gray.output.colorspace, gray.output.width, gray.output.height) == ("gray", 8, 6)
    rgb = imgsvc.process(pyvips.Image.black(8, 6, bands=3).linear(1, [10, 20, 30]).cast("uchar"))
    assert rgb.output.colorspace == "srgb"
    with pytest.raises(imgsvc.InvalidPixels, match="1 to 4 channels"):
        imgsvc.process(pyvips.Image.black(8, 6, bands=5))


def _closed() -> io.BytesIO:
    file = io.BytesIO(b"x")
    file.close()
    return file


@pytest.mark.parametrize("target", [5, b"x.png", io.StringIO(), _closed()])
def test_what_is_no_target_is_refused_before_any_work(target: Any) -> None:
    with pytest.raises(imgsvc.TargetError, match="Target"):
        imgsvc.process("missing.jpg", PNG, target)


@pytest.mark.parametrize("format", ["png", "jpg", "auto"])
def test_a_file_that_is_closed_meanwhile_is_no_target(photo: Path, format: str) -> None:
    class Closing(io.BytesIO):
        def write(self, data: Any) -> int:
            self.close()
            return super().write(data)

    request = {"output": {"format": format}}
    result = imgsvc.process(photo, request)
    for write in (partial(imgsvc.process, photo, request), result.save):
        with pytest.raises(imgsvc.TargetError, match=r"^Target file cannot be written: .* closed file\.$"):
            write(Closing())


def test_results_are_saved_somewhere(photo: Path) -> None:
    with pytest.raises(imgsvc.TargetError, match="Target"):
        imgsvc.process(photo, PNG).save(None)  # type: ignore[arg-type]


def test_odd_names_are_refused(photo: Path) -> None:
    for source in ("a\0b", "", _closed()):
        with pytest.raises(imgsvc.SourceError, match="Source"):
            imgsvc.process(source, PNG)
    with pytest.raises(imgsvc.TargetError, match="Target"):
        imgsvc.process(photo, PNG, "a\0b")
    for target in ("", f"{photo.parent}/folder/", "memory://folder/"):
        with pytest.raises(imgsvc.TargetError, match="Target must name a file"):
            imgsvc.process(photo, PNG, target)
    with pytest.raises(imgsvc.TargetError, match="cannot be written"):
        imgsvc.process(photo, PNG, "http://127.0.0.1:9/x.png")


def test_a_server_that_stops_in_the_midst_is_unreachable(photo: Path) -> None:
    data = photo.read_bytes()

    class Half(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: len(data) // 2])

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Half)
    threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
    try:
        with pytest.raises(imgsvc.SourceError, match="cannot be read"):
            imgsvc.process(f"http://127.0.0.1:{server.server_port}/photo.png", PNG)
    finally:
        server.shutdown()
        server.server_close()


def test_a_pipe_is_read_and_written_and_stays_one(photo: Path, tmp_path: Path) -> None:
    incoming, outgoing = tmp_path / "in", tmp_path / "out.png"
    os.mkfifo(incoming)
    os.mkfifo(outgoing)
    received: list[bytes] = []
    ends = [
        threading.Thread(target=lambda: incoming.write_bytes(photo.read_bytes())),
        threading.Thread(target=lambda: received.append(outgoing.read_bytes())),
    ]
    for end in ends:
        end.start()
    imgsvc.process(str(incoming), PNG, str(outgoing))
    for end in ends:
        end.join(30)
    assert stat.S_ISFIFO(outgoing.stat().st_mode)
    assert received == [imgsvc.process(photo, PNG).data]


@pytest.mark.parametrize("suffix", [".psd", ".svg", ".bmp", ".ico"])
def test_a_suffix_of_what_cannot_be_written_is_refused(suffix: str, photo: Path, tmp_path: Path) -> None:
    with pytest.raises(imgsvc.UnsupportedOperation, match=f"'{suffix[1:]}'"):
        imgsvc.process(photo, {}, tmp_path / f"result{suffix}")
    assert imgsvc.process(photo, PNG, tmp_path / f"result{suffix}").output.format == "png"


def test_variants_have_targets_by_their_names(photo: Path, tmp_path: Path) -> None:
    sizes = {"small": Resize(width=20), "large": Resize(width=40)}
    imgsvc.process_variants(photo, sizes, f"{tmp_path}/{{name}}.png")
    assert [imgsvc.inspect(tmp_path / f"{name}.png").width for name in sizes] == [20, 40]
    with pytest.raises(imgsvc.TargetError, match=r"must hold '{name}' for 2 variants"):
        imgsvc.process_variants(photo, sizes, f"{tmp_path}/one.png")
    imgsvc.process_variants(photo, {"small": sizes["small"]}, f"{tmp_path}/one.png")
    assert imgsvc.inspect(tmp_path / "one.png").width == 20


class _Unbuffered(io.RawIOBase):
    """Takes a thousand bytes at a time, as a raw file may, until it is full."""

    def __init__(self, room: int) -> None:
        self.taken, self._room = bytearray(), room

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int | None:
        piece = bytes(data[: min(1000, self._room - len(self.taken))])
        self.taken += piece
        return len(piece) or None


class _OnlyWrites:
    """An object that has the method and nothing else of a file."""

    def __init__(self) -> None:
        self.taken = b""

    def write(self, data: bytes) -> None:
        self.taken += data


class _InPieces(_OnlyWrites):
    """An object that also says how much it takes at a time."""

    def write(self, data: bytes) -> int:  # type: ignore[override]
        super().write(data[:1000])
        return min(1000, len(data))


@pytest.mark.parametrize("target", [_Unbuffered(10**9), _OnlyWrites(), _InPieces()])
@pytest.mark.parametrize("format", ["png", "apng"])
def test_a_file_that_takes_less_than_it_is_given_gets_the_rest(target: Any, format: str, photo: Path) -> None:
    before = len(target.taken)
    imgsvc.process(photo, {"output": {"format": format}}, target)
    result = imgsvc.process(photo, {"output": {"format": format}})
    result.save(target)
    assert len(result.data) > 1000
    assert target.taken[before:] == 2 * result.data


def test_a_file_that_takes_nothing_more_is_no_success(photo: Path) -> None:
    with pytest.raises(imgsvc.TargetError, match="takes no more bytes"):
        imgsvc.process(photo, PNG, _Unbuffered(5000))
    with pytest.raises(imgsvc.TargetError, match="takes no more bytes"):
        imgsvc.process(photo, PNG).save(_Unbuffered(5000))


def test_a_result_tells_what_it_is_and_may_be_a_source(photo: Path, tmp_path: Path) -> None:
    small = imgsvc.process(photo, [Resize(width=60), imgsvc.Output(format="webp")])
    assert small.media_type == "image/webp"
    height = small.output.height
    assert repr(small).startswith(f"<Result webp 60x{height}, {len(small.data):,} bytes, from png ")
    assert imgsvc.process(small, Resize(width=30)).output.width == 30
    written = imgsvc.process(photo, Resize(width=60), tmp_path / "small.png")
    with pytest.raises(TypeError, match="a result with data"):
        imgsvc.process(written, Resize(width=30))  # type: ignore[arg-type]


def test_a_file_that_is_replaced_keeps_its_permissions(photo: Path, tmp_path: Path) -> None:
    target = tmp_path / "kept.png"
    target.touch()
    target.chmod(0o640)
    imgsvc.process(photo, Resize(width=60), target)
    assert target.stat().st_mode & 0o777 == 0o640
    with open_target(target) as file:
        file.write(b"not to be read by others")
        [unfinished] = set(tmp_path.glob(".*"))
        assert unfinished.stat().st_mode & 0o077 == 0


def test_facts_that_pixels_correct_are_booleans() -> None:
    """A GIF tells by its pixels whether it is gray, and then also its alpha."""
    gif = io.BytesIO()
    Image.fromarray(np.full((8, 8), 120, np.uint8)).save(gif, "GIF")
    assert imgsvc.process(gif.getvalue(), PNG).input.alpha is False
