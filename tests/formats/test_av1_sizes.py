"""The size and the range in AV1 data, and where the frames of a movie are, in files written by hand."""

from __future__ import annotations

import io
import struct
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.heif.av1 import coded_sizes, is_limited_gray
from imgsvc_core.formats.heif.sequence import coded_frames
from imgsvc_core.formats.reader import HeaderReader
from tests.formats.test_probe_boxes import box

SIDES = st.integers(1, 65_536)


def reader_of(data: bytes) -> HeaderReader:
    return HeaderReader(ByteSource(data + b"\0"), "AVIF").part(0, len(data))


def number(value: int, count: int) -> str:
    return format(value, f"0{count}b") if count else ""


def lengths(value: int) -> bytes:
    """A length of units: seven bits in each byte."""
    digits = [value & 0x7F]
    while value := value >> 7:
        digits.append(value & 0x7F)
    return bytes((*(digit | 0x80 for digit in digits[:-1]), digits[-1]))


def unit(kind: int, content: bytes, *, extended: bool = False) -> bytes:
    return bytes((kind << 3 | extended << 2 | 2,)) + b"\0" * extended + lengths(len(content)) + content


def size_bits(width: int, height: int) -> str:
    across, down = ((side - 1).bit_length() or 1 for side in (width, height))
    parts = (number(across - 1, 4), number(down - 1, 4), number(width - 1, across), number(height - 1, down))
    return "".join(parts)


@st.composite
def tools(draw: st.DrawFn, reduced: bool) -> str:
    """What stands between the size and the colors."""
    three, four = st.text("01", min_size=3, max_size=3), st.text("01", min_size=4, max_size=4)
    numbered = "" if reduced else draw(st.sampled_from(("0", "11110111")))
    first, last = draw(three), draw(three)
    if reduced:
        return first + last
    ordered = draw(st.booleans())
    screen = draw(st.sampled_from(("00", "011", "0101", "11", "101")))
    order = ("111", draw(three)) if ordered else ("0", "")
    return numbered + first + draw(four) + order[0] + screen + order[1] + last


@st.composite
def colors(draw: st.DrawFn, profile: int) -> tuple[str, bool]:
    """The colors, and whether they are gray in limited range."""
    deep, gray, full = draw(st.booleans()), profile != 1 and draw(st.booleans()), draw(st.booleans())
    bits = str(int(deep)) + "1" * (profile == 2 and deep) + ("" if profile == 1 else str(int(gray)))
    bits += draw(st.sampled_from(("0", "1" + "01" * 12))) + str(int(full))
    return bits, gray and not full


@st.composite
def sequence_headers(draw: st.DrawFn) -> tuple[bytes, tuple[int, int], bool]:
    """Headers with all that may stand before the range, as section 5.5 of the specification has it.

    Beside them, their size, and whether they tell gray in limited range.
    """

    def some(count: int) -> str:
        return number(draw(st.integers(0, 2**count - 1)), count)

    profile = draw(st.integers(0, 7))
    bits = number(profile, 3)
    reduced = draw(st.booleans())
    if reduced:
        bits += "11" + some(5)
    else:
        bits += some(1) + "0"
        has_timing, model = draw(st.booleans()), 0
        bits += str(int(has_timing))
        if has_timing:
            bits += some(64)
            zeros = draw(st.none() | st.integers(0, 31))
            bits += "0" if zeros is None else "1" + "0" * zeros + "1" + some(zeros)
            model = draw(st.just(0) | st.integers(1, 32))
            bits += "1" + number(model - 1, 5) + some(32) + some(10) if model else "0"
        delays = draw(st.booleans())
        points = draw(st.integers(1, 32))
        bits += str(int(delays)) + number(points - 1, 5)
        for _ in range(points):
            level = draw(st.integers(0, 31))
            bits += some(12) + number(level, 5) + (some(1) if level > 7 else "")
            if model:
                bits += draw(st.sampled_from(("0", "1" + "01" * model + "1")))
            if delays:
                bits += draw(st.sampled_from(("0", "10110")))
    size = draw(SIDES), draw(SIDES)
    color_bits, limited = draw(colors(profile))
    bits += size_bits(*size) + draw(tools(reduced)) + color_bits
    data = int(bits.ljust(-(-len(bits) // 8) * 8, "0"), 2).to_bytes(-(-len(bits) // 8), "big")
    return data, size, limited


@given(
    headers=st.lists(sequence_headers(), max_size=3), extended=st.booleans(), filler=st.binary(max_size=300)
)
def test_sizes_and_range_are_those_that_were_written(
    headers: list[tuple[bytes, tuple[int, int], bool]], extended: bool, filler: bytes
) -> None:
    others = unit(2, b"") + unit(6, filler)
    data = others + b"".join(unit(1, header, extended=extended) + others for header, _, _ in headers)
    assert list(coded_sizes(reader_of(data))) == [size for _, size, _ in headers]
    assert is_limited_gray(reader_of(data)) == any(limited for _, _, limited in headers[:1])


def test_a_unit_without_length_goes_to_the_end() -> None:
    bits = "00011" + number(3, 5) + size_bits(640, 480)
    header = int(bits.ljust(56, "0"), 2).to_bytes(7, "big")
    assert list(coded_sizes(reader_of(b"\x08" + header))) == [(640, 480)]


@pytest.mark.parametrize(
    "data", [b"\x0a", b"\x12\xff", b"\x12\0" * 2000], ids=["cut", "no length", "endless"]
)
def test_damaged_units_are_told(data: bytes) -> None:
    with pytest.raises(imgsvc.CorruptImage):
        list(coded_sizes(HeaderReader(ByteSource(data), "AVIF")))


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=12),
    runs=st.lists(st.integers(1, 4), min_size=1, max_size=12),
    wide=st.booleans(),
    same=st.booleans(),
)
def test_frames_are_where_the_tables_say(sizes: list[int], runs: list[int], wide: bool, same: bool) -> None:
    """Chunks with as many samples as ``runs`` says, again and again, with room between chunks."""
    sizes = [sizes[0]] * len(sizes) if same else sizes
    chunks: list[list[int]] = []
    left = list(sizes)
    while left:
        count = runs[len(chunks) % len(runs)]
        chunks.append(left[:count])
        left = left[count:]
    counts = [runs[place % len(runs)] for place in range(len(chunks))]
    samples = [bytes([place + 1]) * size for place, size in enumerate(sizes)]
    ends = [0, *accumulate(map(len, chunks))]
    data = b"".join(b"".join(samples[start:end]) + b"\0" * 5 for start, end in pairwise(ends))
    starts = [0, *accumulate(sum(chunk) + 5 for chunk in chunks)][:-1]
    changes = [place for place in range(len(counts)) if not place or counts[place] != counts[place - 1]]
    table = box(b"stsz", struct.pack(">4xII", sizes[0] if same else 0, len(sizes)) + (
        b"" if same else struct.pack(f">{len(sizes)}I", *sizes)
    ))  # fmt: skip
    runs_of_chunks = b"".join(struct.pack(">III", place + 1, counts[place], 1) for place in changes)
    places = struct.pack(
        f">4xI{len(starts)}{'Q' if wide else 'I'}", len(starts), *(8 + start for start in starts)
    )
    table += box(b"co64" if wide else b"stco", places)
    table += box(b"stsc", struct.pack(">4xI", len(changes)) + runs_of_chunks)  # the last bytes of the file
    media = box(b"hdlr", bytes(8) + b"pict") + box(b"minf", box(b"stbl", table))
    track = box(b"trak", box(b"tkhd", bytes(84)) + box(b"mdia", media))
    file = box(b"mdat", data) + box(b"moov", track)
    found = [frame.read(0, frame.size) for frame in coded_frames(HeaderReader(ByteSource(file), "AVIF"))]
    assert found == samples


@pytest.mark.parametrize(
    ("count", "tracks", "message"),
    [(2**32 - 1, 1, "4,294,967,295 frames"), (65_536, 100, "more than 2,000,000 parts")],
)
def test_endless_frames_of_one_size_are_refused(count: int, tracks: int, message: str) -> None:
    """No table lists them, so the file is small."""
    table = box(b"stsz", struct.pack(">4xII", 1, count)) + box(b"stco", struct.pack(">4xII", 1, 0))
    table += box(b"stsc", struct.pack(">4xIIII", 1, 1, count, 1))
    media = box(b"hdlr", bytes(8) + b"pict") + box(b"minf", box(b"stbl", table))
    track = box(b"trak", box(b"tkhd", bytes(84)) + box(b"mdia", media))
    file = box(b"moov", track * tracks)
    with pytest.raises(imgsvc.CorruptImage, match=message):
        for _ in coded_frames(HeaderReader(ByteSource(file), "AVIF")):
            pass


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
@pytest.mark.parametrize("stated", [(60, 50), (60, 500), (600, 50)])
def test_frames_that_are_coded_larger_than_stated_are_refused(mode: str, stated: tuple[int, int]) -> None:
    file = io.BytesIO()
    pictures = [Image.new(mode, (600, 500), color) for color in ("red", "blue")]
    pictures[0].save(file, "AVIF", save_all=True, append_images=pictures[1:], duration=100, speed=9)
    data = file.getvalue()
    assert imgsvc.process(data, {"output": {"format": "webp"}}).output.frames == 2
    for layout, factor in ((">II", 1), (">HH", 1), (">II", 1 << 16)):
        old, new = (struct.pack(layout, *(factor * side for side in size)) for size in ((600, 500), stated))
        data = data.replace(old, new)
    info = imgsvc.inspect(data)
    assert (info.width, info.height) == stated
    with pytest.raises(imgsvc.CorruptImage, match="pixels, its data 600 x 500"):
        imgsvc.process(data, {"output": {"format": "webp"}})
