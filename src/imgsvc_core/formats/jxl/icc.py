"""The color profile in a codestream of JPEG XL (ISO/IEC 18181-1, annex E)."""

from __future__ import annotations

from imgsvc_core.formats.jxl.bits import BitReader
from imgsvc_core.formats.jxl.entropy import Decoder

_CONTEXTS = 41
_HEADER = 128
_MOST_BYTES = 1 << 20  # profiles of displays have at most some kB, those of printers some 100 kB
_HEADER_GUESS = (
    b"\0\0\0\0\0\0\0\0\4\0\0\0mntrRGB XYZ "
    + bytes(12)
    + b"acsp"
    + bytes(28)
    + b"\0\0\xf6\xd6\0\1\0\0\0\0\xd3-"
).ljust(_HEADER, b"\0")
_PLATFORMS = {b"A": b"APPL", b"M": b"MSFT", b"SG": b"SGI ", b"SU": b"SUNW"}
_PLATFORM = 40  # its place in the header
_VERSION, _CREATOR = 4, 80
_TAGS = (
    b"cprt", b"wtpt", b"bkpt", b"rXYZ", b"gXYZ", b"bXYZ", b"kXYZ", b"rTRC", b"gTRC", b"bTRC", b"kTRC",
    b"chad", b"desc", b"chrm", b"dmnd", b"dmdd", b"lumi",
)  # fmt: skip
_TYPES = (b"XYZ ", b"desc", b"text", b"mluc", b"para", b"curv", b"sf32", b"gbd ")
_POINTS = frozenset({b"rXYZ", b"gXYZ", b"bXYZ", b"kXYZ", b"wtpt", b"bkpt", b"lumi"})
_POINT_BYTES = 20
_ANY_TAG, _THREE_CURVES, _THREE_POINTS, _FIRST_TAG = 1, 2, 3, 4
_HAS_PLACE, _HAS_SIZE = 64, 128
_INSERT, _SHUFFLE_2, _SHUFFLE_4, _PREDICT, _POINT, _FIRST_TYPE = 1, 2, 3, 4, 10, 16


def read_profile(reader: BitReader) -> bytes:
    """Return the profile that begins at the position of the reader.

    Raises:
        CorruptImage: it is damaged.
    """
    size = reader.u64()
    if size > _MOST_BYTES:
        raise reader.corrupt(f"its color profile has {size:,} bytes; at most {_MOST_BYTES:,} can be read")
    decoder, coded = Decoder(reader, _CONTEXTS), bytearray()
    last = before = 0
    for place in range(size):
        context = 0 if place <= _HEADER else 1 + _kind(last) + 8 * _other_kind(before)
        last, before = decoder.read(context) & 0xFF, last
        coded.append(last)
    decoder.finish()
    try:
        profile = _Unpacking(bytes(coded)).profile()
    except (IndexError, OverflowError, ValueError):
        profile = b""
    if not profile:
        raise reader.corrupt("its color profile cannot be unpacked")
    return profile


def _kind(byte: int) -> int:
    if bytes((byte,)).isalpha():
        return 0
    if 48 <= byte < 58 or byte in b".,":
        return 1
    if byte < 2:
        return 2 + byte
    return 4 if byte < 16 else 6 if byte == 255 else 5 if byte > 240 else 7


def _other_kind(byte: int) -> int:
    return {0: 0, 1: 1, 2: 2, 3: 2, 4: 2, 5: 3, 6: 3, 7: 4}[_kind(byte)]


class _Bytes:
    """A part of the packed profile that is read from its start to its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._next = 0

    @property
    def done(self) -> bool:
        return self._next == len(self._data)

    def take(self, count: int) -> bytes:
        if count > len(self._data) - self._next:
            raise ValueError(count)
        self._next += count
        return self._data[self._next - count : self._next]

    def byte(self) -> int:
        return self.take(1)[0]

    def number(self) -> int:
        """Return a number in groups of 7 bits."""
        number = 0
        for shift in range(0, 63, 7):
            byte = self.byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
        raise ValueError(number)

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._next)


class _Unpacking:
    """Makes a profile of commands, and of data that these use."""

    def __init__(self, packed: bytes) -> None:
        both = _Bytes(packed)
        self._size = both.number()
        self._commands = _Bytes(both.take(both.number()))
        self._data = _Bytes(both.rest())
        self._profile = bytearray()
        if self._size > _MOST_BYTES:
            raise ValueError(self._size)

    def profile(self) -> bytes:
        """Return the profile; raise `ValueError`, `IndexError` or `OverflowError` if that cannot be done."""
        self._add_header()
        if len(self._profile) < self._size:
            self._add_tags()
        while not self._commands.done:
            self._add_content(self._commands.byte())
        if len(self._profile) != self._size or not self._data.done:
            raise ValueError(len(self._profile))
        return bytes(self._profile)

    def _add_header(self) -> None:
        guess, profile = bytearray(_HEADER_GUESS), self._profile
        guess[:4] = (self._size & 0xFFFFFFFF).to_bytes(4, "big")
        for place in range(min(_HEADER, self._size)):
            if place == 8:
                guess[_CREATOR : _CREATOR + 4] = profile[_VERSION : _VERSION + 4]
            elif place in (_PLATFORM + 1, _PLATFORM + 2):
                platform = _PLATFORMS.get(bytes(profile[_PLATFORM:place]), b"")
                guess[place : _PLATFORM + 4] = platform[place - _PLATFORM :] or guess[place : _PLATFORM + 4]
            profile.append(guess[place] + self._data.byte() & 0xFF)

    def _add_tags(self) -> None:
        count = self._commands.number() - 1
        if count < 0:
            return
        self._add(count)
        start, size = _HEADER + 12 * count, 0
        while not self._commands.done:
            command = self._commands.byte()
            code = command & 63
            if not code:
                return
            tag = {_ANY_TAG: b"", _THREE_CURVES: b"rTRC", _THREE_POINTS: b"rXYZ"}.get(code)
            if tag is None:
                tag = _TAGS[code - _FIRST_TAG]
            tag = tag or self._data.take(4)
            start += size
            if tag in _POINTS:
                size = _POINT_BYTES
            start = self._commands.number() if command & _HAS_PLACE else start
            size = self._commands.number() if command & _HAS_SIZE else size
            self._add(tag, start, size)
            if code == _THREE_CURVES:
                self._add(b"gTRC", start, size, b"bTRC", start, size)
            elif code == _THREE_POINTS:
                self._add(b"gXYZ", start + size, size, b"bXYZ", start + 2 * size, size)

    def _add(self, *words: bytes | int) -> None:
        for word in words:
            self._profile += word if isinstance(word, bytes) else word.to_bytes(4, "big")

    def _add_content(self, command: int) -> None:
        if command == _INSERT:
            self._profile += self._data.take(self._commands.number())
        elif command in (_SHUFFLE_2, _SHUFFLE_4):
            data = self._data.take(self._commands.number())
            self._profile += _shuffled(data, 2 if command == _SHUFFLE_2 else 4)
        elif command == _PREDICT:
            self._add_predicted()
        elif command == _POINT:
            self._profile += b"XYZ \0\0\0\0" + self._data.take(12)
        elif command >= _FIRST_TYPE:
            self._profile += _TYPES[command - _FIRST_TYPE] + bytes(4)
        else:
            raise ValueError(command)

    def _add_predicted(self) -> None:
        """Add numbers of 1, 2 or 4 bytes as differences to what earlier numbers let expect."""
        flags, profile = self._commands.byte(), self._profile
        width, order = (flags & 3) + 1, flags >> 2 & 3
        stride = self._commands.number() if flags & 16 else width
        if width == 3 or order == 3 or stride < width or 4 * stride >= len(profile):
            raise ValueError(flags)
        data = self._data.take(self._commands.number())
        data = _shuffled(data, width) if width > 1 else data
        start = len(profile)
        for place, difference in enumerate(data):
            first = start + place - place % width
            one, two, three = (
                int.from_bytes(profile[first - back * stride : first - back * stride + width], "big")
                for back in (1, 2, 3)
            )
            guess = (one, 2 * one - two, 3 * one - 3 * two + three)[order]
            profile.append((guess >> 8 * (width - 1 - place % width)) + difference & 0xFF)


def _shuffled(data: bytes, width: int) -> bytes:
    """Return bytes that were sorted by their place in numbers of so many bytes as they were before."""
    rows = -(-len(data) // width)
    return b"".join(data[row::rows] for row in range(rows))
