"""The entropy coder of JPEG XL: prefix codes, ANS, and copies of earlier numbers (ISO/IEC 18181-1, annex C).

Only profiles and tables of contents are decoded with it here, never pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from imgsvc_core._runtime.records import frozen
from imgsvc_core.formats.jxl.bits import BitReader

_ANS_BITS = 12
_ANS_TOTAL = 1 << _ANS_BITS
_ANS_END = 0x130000
_MOST_LOGARITHM = 13  # which says that the previous count is repeated
# Code, its length and its meaning: the logarithm of a count.
_LOGARITHMS = {
    (3, 0): 10, (7, 1): 12, (3, 2): 7, (4, 3): 3, (3, 4): 6, (3, 5): 8, (3, 6): 9, (4, 7): 5, (4, 9): 4,
    (4, 11): 1, (4, 15): 2, (5, 17): 0, (6, 33): 11, (7, 65): 13,
}  # fmt: skip
_LENGTHS = {(2, 0): 0, (2, 1): 4, (2, 2): 3, (3, 3): 2, (4, 7): 1, (4, 15): 5}
_LENGTH_ORDER = (1, 2, 3, 4, 0, 5, 17, 6, 16, 7, 8, 9, 10, 11, 12, 13, 14, 15)
_SIMPLE_CODES = {1: (0,), 2: (1, 1), 3: (1, 2, 2), 4: (2, 2, 2, 2), 5: (1, 2, 3, 3)}
_LONGEST_CODE = 15
_WINDOW = 1 << 20

Codes = dict[tuple[int, int], int]
Symbols = Callable[[], int]


@frozen
class _Integers:
    """How a symbol and the bits after it make a number."""

    split: int
    high: int
    low: int

    def read(self, reader: BitReader, symbol: int) -> int:
        if symbol < 1 << self.split:
            return symbol
        kept = self.high + self.low
        count = self.split - kept + (symbol - (1 << self.split) >> kept)
        if count > 32:
            raise reader.corrupt("a number in its headers has more than 32 bits")
        low = symbol & (1 << self.low) - 1
        top = symbol >> self.low & (1 << self.high) - 1 | 1 << self.high
        return (top << count | reader.bits(count)) << self.low | low


class Decoder:
    """Reads entropy-coded numbers, each in one of several contexts."""

    def __init__(self, reader: BitReader, contexts: int, *, nested: bool = False) -> None:
        self._reader = reader
        self._copies: _Integers | None = None  # how their lengths are told
        if reader.flag():
            if nested:
                raise reader.corrupt("a map of its contexts is coded in a way that is not allowed")
            self._first_copy = reader.u32((224, 0), (512, 0), (4096, 0), (8, 15))
            self._shortest_copy = reader.u32((3, 0), (4, 0), (5, 2), (9, 8))
            self._copies = _read_integers(reader, 8)
            contexts += 1
        self._clusters = _read_clusters(reader, contexts) if contexts > 1 else [0]
        count = max(self._clusters) + 1
        by_prefix = reader.flag()
        bits = _LONGEST_CODE if by_prefix else 5 + reader.bits(2)
        self._integers = [_read_integers(reader, bits) for _ in range(count)]
        self._state = _ANS_END
        self._symbols: list[Symbols]
        if by_prefix:
            sizes = [_read_size(reader, 4) + 1 for _ in range(count)]
            self._symbols = [partial(_read_code, reader, _read_prefix_code(reader, size)) for size in sizes]
        else:
            self._symbols = [self._by_ans(_read_counts(reader, 1 << bits), bits) for _ in range(count)]
            self._state = reader.bits(32)
        self._numbers: list[int] = []
        self._left = self._from = 0

    def read(self, context: int) -> int:
        """Return the next number."""
        number = self._copied() if self._left else self._read(context)
        if self._copies:
            self._numbers.append(number)
        return number

    def finish(self) -> None:
        """Raise `CorruptImage` unless the numbers end as they must."""
        if self._state != _ANS_END:
            raise self._reader.corrupt("entropy-coded data of its headers does not end as it must")

    def _read(self, context: int) -> int:
        cluster = self._clusters[context]
        symbol = self._symbols[cluster]()
        if self._copies is None or symbol < self._first_copy:
            return self._integers[cluster].read(self._reader, symbol)
        length = self._copies.read(self._reader, symbol - self._first_copy)
        cluster = self._clusters[-1]
        distance = 1 + self._integers[cluster].read(self._reader, self._symbols[cluster]())
        self._left = length + self._shortest_copy
        self._from = len(self._numbers) - min(distance, _WINDOW, len(self._numbers))
        return self._copied()

    def _copied(self) -> int:
        self._reader.count(1)
        self._left -= 1
        place = self._from
        self._from += 1
        return self._numbers[place] if place < len(self._numbers) else 0  # copies of nothing are zeros

    def _by_ans(self, counts: list[int], bits: int) -> Symbols:
        """Return a function that reads the symbols of a distribution."""
        table, step = _alias_table(counts, bits), _ANS_BITS - bits
        mask = (1 << step) - 1

        def read() -> int:
            place = self._state & _ANS_TOTAL - 1
            cell, inside = place >> step, place & mask
            cutoff, symbol, offset = table[cell]
            if inside >= cutoff:
                inside += offset
            else:
                symbol = cell
            self._state = counts[symbol] * (self._state >> _ANS_BITS) + inside
            if self._state < 1 << 16:
                self._state = self._state << 16 | self._reader.bits(16)
            else:
                self._reader.count(1)
            return symbol

        return read


def _read_integers(reader: BitReader, bits: int) -> _Integers:
    split = reader.bits(bits.bit_length())
    if split > bits:
        raise reader.corrupt("its entropy coding is impossible")
    if split == bits:
        return _Integers(split, 0, 0)
    high = reader.bits(split.bit_length())
    low = reader.bits((split - high).bit_length()) if high <= split else 0
    if high + low > split:
        raise reader.corrupt("its entropy coding is impossible")
    return _Integers(split, high, low)


def _read_size(reader: BitReader, width: int) -> int:
    """Return a number from 0 whose own width is told in so many bits."""
    if not reader.flag():
        return 0
    bits = reader.bits(width)
    return reader.bits(bits) + (1 << bits)


def _read_clusters(reader: BitReader, contexts: int) -> list[int]:
    """Return which distribution each context has."""
    if reader.flag():
        bits = reader.bits(2)
        return [reader.bits(bits) for _ in range(contexts)]
    moved = reader.flag()
    decoder = Decoder(reader, 1, nested=contexts <= 2)
    clusters = [decoder.read(0) for _ in range(contexts)]
    decoder.finish()
    if max(clusters) > 255:
        raise reader.corrupt("its entropy coding has more than 256 distributions")
    if moved:
        recent = list(range(256))
        for index, place in enumerate(clusters):
            clusters[index] = recent.pop(place)
            recent.insert(0, clusters[index])
    return clusters


def _read_code(reader: BitReader, codes: Codes) -> int:
    code = 0
    if (0, 0) in codes:
        reader.count(1)
        return codes[0, 0]
    for length in range(1, _LONGEST_CODE + 1):
        code |= reader.bits(1) << length - 1
        if (length, code) in codes:
            return codes[length, code]
    raise reader.corrupt("its entropy-coded data has an unknown code")


def _codes(lengths: list[tuple[int, int]]) -> Codes:
    """Return the prefix codes of symbols, each with the length of its code, which are in canonical order."""
    codes: Codes = {}
    next_code, before = 0, 0
    for length, symbol in lengths:
        next_code <<= length - before
        before = length
        codes[length, int(f"{next_code:0{length}b}"[::-1], 2) if length else 0] = symbol
        next_code += 1
    return codes


def _read_prefix_code(reader: BitReader, size: int) -> Codes:
    """Return the codes of so many symbols, as in Brotli (RFC 7932, section 3)."""
    if size == 1:
        return {(0, 0): 0}
    skipped = reader.bits(2)
    if skipped == 1:
        return _read_simple_code(reader, size)
    code_lengths, space = [0] * 18, 32
    for place in _LENGTH_ORDER[skipped:]:
        length = _read_code(reader, _LENGTHS)
        code_lengths[place] = length
        space -= 32 >> length if length else 0
        if space <= 0:
            break
    used = sum(map(bool, code_lengths))
    if used != 1 and space:
        raise reader.corrupt("its prefix codes are impossible")
    found = sorted((length, symbol) for symbol, length in enumerate(code_lengths) if length)
    lengths = _read_lengths(reader, _codes(found if used > 1 else [(0, found[0][1])]), size)
    symbols = sorted((length, symbol) for symbol, length in enumerate(lengths) if length)
    return _codes(symbols if len(symbols) > 1 else [(0, symbols[0][1])])


def _read_simple_code(reader: BitReader, size: int) -> Codes:
    bits = (size - 1).bit_length()
    count = reader.bits(2) + 1
    symbols = [reader.bits(bits) for _ in range(count)]
    if max(symbols) >= size or len(set(symbols)) < count:
        raise reader.corrupt("its prefix codes are impossible")
    lengths = _SIMPLE_CODES[count + reader.bits(1) if count == 4 else count]
    return _codes(sorted(zip(lengths, symbols, strict=True)))


def _read_lengths(reader: BitReader, codes: Codes, size: int) -> list[int]:
    """Return the lengths of the codes of so many symbols. They fill all codes of 15 bits."""
    lengths: list[int] = []
    space, before, repeated, count = 1 << _LONGEST_CODE, 8, 0, 0
    while len(lengths) < size and space > 0:
        length = _read_code(reader, codes)
        if length < 16:
            count = 0
            lengths.append(length)
            if length:
                before = length
                space -= 1 << _LONGEST_CODE - length
            continue
        new = before if length == 16 else 0
        if new != repeated:
            count, repeated = 0, new
        old = count
        count = (count - 2 << length - 14 if count else 0) + reader.bits(length - 14) + 3
        lengths += [new] * (count - old)
        space -= (count - old) << _LONGEST_CODE - new if new else 0
    if space or len(lengths) > size:
        raise reader.corrupt("its prefix codes are impossible")
    return lengths


def _read_counts(reader: BitReader, size: int) -> list[int]:
    """Return how often each symbol occurs among 4096."""
    if reader.flag():
        counts = _read_few_counts(reader)
    elif reader.flag():
        used = _read_size(reader, 3) + 1
        share, rest = divmod(_ANS_TOTAL, used)
        counts = [share + (symbol < rest) for symbol in range(used)]
    else:
        counts = _read_many_counts(reader)
    while counts and not counts[-1]:
        counts.pop()
    if len(counts) > size or sum(counts) != _ANS_TOTAL or min(counts) < 0:
        raise reader.corrupt("its entropy coding is impossible")
    return counts


def _read_few_counts(reader: BitReader) -> list[int]:
    symbols = [_read_size(reader, 3) for _ in range(reader.bits(1) + 1)]
    counts = [0] * (max(symbols) + 1)
    counts[symbols[0]] = _ANS_TOTAL
    if len(symbols) > 1:
        if symbols[0] == symbols[1]:
            raise reader.corrupt("its entropy coding is impossible")
        counts[symbols[0]] = reader.bits(_ANS_BITS)
        counts[symbols[1]] = _ANS_TOTAL - counts[symbols[0]]
    return counts


def _read_many_counts(reader: BitReader) -> list[int]:
    width = 0
    while width < 3 and reader.flag():
        width += 1
    shift = (reader.bits(width) | 1 << width) - 1
    if shift > _ANS_BITS + 1:
        raise reader.corrupt("its entropy coding is impossible")
    size = _read_size(reader, 3) + 3
    logarithms: list[int] = []
    repeats: dict[int, int] = {}
    while len(logarithms) < size:
        found = _read_code(reader, _LOGARITHMS)
        if found == _MOST_LOGARITHM:
            repeats[len(logarithms)] = _read_size(reader, 3) + 4
            found = 0
            logarithms += [found] * repeats[len(logarithms)]
        else:
            logarithms.append(found)
    largest = max(logarithms)
    omitted = logarithms.index(largest)
    if len(logarithms) > size or not largest or omitted + 1 in repeats:
        raise reader.corrupt("its entropy coding is impossible")
    counts: list[int] = []
    while len(counts) < size:
        place = len(counts)
        if place in repeats:
            counts += [counts[-1] if counts else 0] * repeats[place]
            continue
        power = logarithms[place] - 1
        if place == omitted or power < 0:
            counts.append(0)
            continue
        bits = max(0, min(power, shift - (_ANS_BITS - power >> 1)))
        counts.append((1 << power) + (reader.bits(bits) << power - bits))
    counts[omitted] = _ANS_TOTAL - sum(counts)
    return counts


def _alias_table(counts: list[int], bits: int) -> list[tuple[int, int, int]]:
    """Return for each cell where its second symbol begins, that symbol, and what is added to the place.

    The first symbol of a cell is its number.
    """
    size, share = 1 << bits, _ANS_TOTAL >> bits
    if _ANS_TOTAL in counts:
        only = counts.index(_ANS_TOTAL)
        return [(0, only, share * cell) for cell in range(size)]
    cutoffs = [*counts, *[0] * (size - len(counts))]
    more = [cell for cell, count in enumerate(cutoffs) if count > share]
    fewer = [cell for cell, count in enumerate(cutoffs) if count < share]
    others, offsets = list(range(size)), [0] * size
    while more:
        giver, taker = more.pop(), fewer.pop()
        cutoffs[giver] -= share - cutoffs[taker]
        others[taker], offsets[taker] = giver, cutoffs[giver]
        if cutoffs[giver] < share:
            fewer.append(giver)
        elif cutoffs[giver] > share:
            more.append(giver)
    return [
        (0, cell, 0)
        if cutoffs[cell] == share
        else (cutoffs[cell], others[cell], offsets[cell] - cutoffs[cell])
        for cell in range(size)
    ]
