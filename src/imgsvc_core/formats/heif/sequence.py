"""The frames of an animated AVIF, which are the samples of a track (ISO/IEC 14496-12, section 8)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import CorruptImage
from imgsvc_core.formats.boxes import FileBox, first_box, read_boxes
from imgsvc_core.formats.reader import HeaderReader

_STILL_BRAND = b"avif"  # as the major brand: the primary picture is meant, also beside a track
_PICTURES, _CODED = b"pict", b"av01"
_ENTRY_HEAD = 78  # bytes of a sample entry before its boxes
_MOST_FRAMES = 1 << 16
LONGEST_DELAY = _MOST_PLAYS = (1 << 31) - 1
_REPEATS = 1  # flag of an edit list


@frozen
class Sequence:
    """The frames of a file: their size, milliseconds of each, plays (0 for ever), if there is alpha.

    ``properties`` are the boxes that describe the coded frames.
    """

    width: int
    height: int
    delays: tuple[int, ...]
    plays: int
    alpha: bool
    properties: tuple[FileBox, ...]


@frozen
class _Track:
    """A track of pictures: its number, and the number of the track that it is the transparency of."""

    box: FileBox
    media: FileBox
    number: int
    duration: int | None
    alpha_of: int


def read_sequence(reader: HeaderReader) -> Sequence | None:
    """Read the frames that decoders show, or None if they show the primary picture."""
    movie = read_movie(reader)
    if movie is None or reader.read(8, 4) == _STILL_BRAND:
        return None
    tracks = [track for box in tracks_of(reader, movie) if (track := _read_track(reader, box))]
    shown = next((track for track in tracks if not track.alpha_of), None)
    if shown is None:
        return None
    table = inside(reader, shown.media, b"minf", b"stbl")
    width, height, properties = _read_entry(reader, table)
    timescale, _ = _times(reader, inside(reader, shown.media, b"mdhd"), 4)
    return Sequence(
        width,
        height,
        _read_delays(reader, table, timescale),
        _read_plays(reader, shown),
        any(track.alpha_of == shown.number for track in tracks),
        properties,
    )


def coded_frames(reader: HeaderReader) -> Iterator[HeaderReader]:
    """Yield the data of the frames of all tracks."""
    movie = read_movie(reader)
    for box in () if movie is None else tracks_of(reader, movie):
        if track := _read_track(reader, box):
            yield from _read_samples(reader, inside(reader, track.media, b"minf", b"stbl"))


def tracks_of(reader: HeaderReader, movie: FileBox) -> Iterator[FileBox]:
    """Yield the tracks of a movie."""
    return (box for box in read_boxes(reader, movie.start, movie.end) if box.kind == b"trak")


def descriptions(reader: HeaderReader) -> tuple[list[FileBox], list[FileBox]]:
    """Return the boxes that list the items of tracks, and those with other descriptions."""
    movie = read_movie(reader)
    if movie is None:
        return [], []
    boxes = list(read_boxes(reader, movie.start, movie.end))
    tracks = [box for box in boxes if box.kind == b"trak"]
    others = [track for track in tracks if _read_track(reader, track) is None]
    of_tracks = [
        box for track in tracks if track not in others for box in read_boxes(reader, track.start, track.end)
    ]
    others += [box for box in (*boxes, *of_tracks) if box.kind == b"udta"]
    others += [box for box in boxes if box.kind == b"meta"]
    return [box for box in of_tracks if box.kind == b"meta"], others


def times_of(reader: HeaderReader) -> Iterator[tuple[int, int]]:
    """Yield start and length of the times at which a movie and its tracks were made and changed."""
    movie = read_movie(reader)
    if movie is None:
        return
    headers = [inside(reader, movie, b"mvhd")]
    for track in tracks_of(reader, movie):
        headers += [inside(reader, track, b"tkhd"), inside(reader, track, b"mdia", b"mdhd")]
    for box in headers:
        yield box.start + 4, 16 if reader.byte(box.start) else 8


def read_movie(reader: HeaderReader) -> FileBox | None:
    """Return the box that holds tracks, if there is one. What follows a picture may be damaged."""
    with suppress(CorruptImage):
        return next((box for box in read_boxes(reader, 0, reader.size) if box.kind == b"moov"), None)
    return None


def inside(reader: HeaderReader, box: FileBox, *kinds: bytes) -> FileBox:
    """Return the box that lies in boxes of these kinds, one in the other. It must be there."""
    for kind in kinds:
        found = first_box(reader, box, kind)
        if found is None:
            raise reader.corrupt(f"its frames have no {kind.decode()!r} box")
        box = found
    return box


def _times(reader: HeaderReader, box: FileBox, before: int) -> tuple[int, int | None]:
    """Return the number before a duration, and the duration, None if it is endless.

    Both follow the times of creation and change. ``before`` are the bytes from that number to the duration.
    """
    wide = reader.byte(box.start)
    start = box.start + (20 if wide else 12)
    (number,) = reader.unpack(">I", start)
    (duration,) = reader.unpack(">Q" if wide else ">I", start + before)
    return number, None if duration == (1 << (64 if wide else 32)) - 1 else duration


def _read_track(reader: HeaderReader, box: FileBox) -> _Track | None:
    """Return a track if it is of pictures."""
    media = inside(reader, box, b"mdia")
    handler = inside(reader, media, b"hdlr")
    reference = first_box(reader, box, b"tref")
    auxiliary = None if reference is None else first_box(reader, reference, b"auxl")
    if auxiliary is None and reader.read(handler.start + 8, 4) != _PICTURES:
        return None
    number, duration = _times(reader, inside(reader, box, b"tkhd"), 8)
    alpha_of = 0 if auxiliary is None else reader.unpack(">I", auxiliary.start)[0]
    return _Track(box, media, number, duration, alpha_of)


def _read_entry(reader: HeaderReader, table: FileBox) -> tuple[int, int, tuple[FileBox, ...]]:
    """Return the size of frames, and the boxes that describe them."""
    entries = inside(reader, table, b"stsd")
    entry = next(
        (box for box in read_boxes(reader, entries.start + 8, entries.end) if box.kind == _CODED), None
    )
    if entry is None:
        raise reader.unsupported("its frames are not coded as AV1")
    width, height = reader.unpack(">HH", entry.start + 24)
    reader.check_size(width, height)
    return width, height, tuple(read_boxes(reader, entry.start + _ENTRY_HEAD, entry.end))


def _read_count(reader: HeaderReader, table: FileBox) -> int:
    """Return the number of frames of a track."""
    (frames,) = reader.unpack(">I", inside(reader, table, b"stsz").start + 8)
    if not 1 <= frames <= _MOST_FRAMES:
        raise reader.corrupt(f"it has {frames:,} frames, at most {_MOST_FRAMES:,} are possible")
    return int(frames)


def _read_delays(reader: HeaderReader, table: FileBox, timescale: int) -> tuple[int, ...]:
    """Return the milliseconds of each frame. The last time stands for all that follow."""
    frames = _read_count(reader, table)
    times = inside(reader, table, b"stts")
    (runs,) = reader.unpack(">I", times.start + 4)
    delays: list[int] = []
    for run in range(runs):
        count, ticks = reader.unpack(">II", times.start + 8 + 8 * run)
        delay = min(round(1000 * ticks / max(1, timescale)), LONGEST_DELAY)
        left = frames - len(delays)
        delays += [delay] * (left if run == runs - 1 else min(count, left))
        if len(delays) == frames:
            return tuple(delays)
    raise reader.corrupt("it does not tell the times of its frames")


def _read_samples(reader: HeaderReader, table: FileBox) -> Iterator[HeaderReader]:
    """Yield the samples of a track: chunk by chunk, one after another."""
    sizes, runs = (inside(reader, table, kind).start for kind in (b"stsz", b"stsc"))
    (same,), left = reader.unpack(">I", sizes + 4), _read_count(reader, table)
    reader.count(left)
    wide = first_box(reader, table, b"co64")
    chunks = (wide or inside(reader, table, b"stco")).start
    (count,) = reader.unpack(">I", chunks + 4)
    (more,) = reader.unpack(">I", runs + 4)
    run, size_at = runs + 8, sizes + 12
    for number in range(1, count + 1):
        if not left:
            return
        while more > 1 and reader.unpack(">I", run + 12)[0] <= number:
            run, more = run + 12, more - 1
        offset = chunks + 8 + (number - 1) * (8 if wide else 4)
        (start,) = reader.unpack(">Q" if wide else ">I", offset)
        for _ in range(min(left, reader.unpack(">I", run + 4)[0])):
            size = same or reader.unpack(">I", size_at)[0]
            yield reader.part(start, size)
            start, size_at, left = start + size, size_at + 4, left - 1


def _read_plays(reader: HeaderReader, track: _Track) -> int:
    """Return how often the frames play, 0 for ever, as they do without an edit list or too often to count."""
    edits = first_box(reader, track.box, b"edts")
    listed = None if edits is None else first_box(reader, edits, b"elst")
    if listed is None or track.duration is None:
        return 0
    version, flags, count = reader.unpack(">B2xBI", listed.start)
    if not flags & _REPEATS:
        return 1
    (once,) = reader.unpack(">Q" if version else ">I", listed.start + 8)
    if count != 1 or not once:
        raise reader.corrupt("its edit list is impossible")
    plays: int = max(1, -(-track.duration // once))
    return plays if plays <= _MOST_PLAYS else 0
