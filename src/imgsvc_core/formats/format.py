"""A format of files: its row in the table, and how its files are recognized, opened, decoded and encoded."""

from __future__ import annotations

import enum
import functools
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import UnsupportedOperation
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import LoadSettings, MetadataPolicy, SaveSettings

if TYPE_CHECKING:
    import pyvips

    from imgsvc_core.formats.directory import ExifBlock
    from imgsvc_core.formats.raster import Raster
    from imgsvc_core.formats.sink import Sink

_module = functools.cache(import_module)


class LoadScaling(enum.Enum):
    """How a decoder can deliver a smaller picture than the one that is stored."""

    NONE = "none"
    DCT = "dct"  # by 2, 4 or 8, in the transform of JPEG
    CONTINUOUS = "continuous"  # to any size
    LEVELS = "levels"  # to one of the sizes in `ImageInfo.levels`


@frozen
class Memory:
    """The most bytes that a codec holds for each byte of samples, in addition to some lines of the image.

    ``whole`` is for progressive and interlaced images. ``deep`` replaces ``usual`` for samples of more than 8
    bits, because some decoders need no more memory for them than for 8 bits. ``small`` is for pictures of at
    most `MOST_EXAMINED` pixels. A codec holds all frames of an animation, unless they come ``one_by_one``.
    The numbers are measured by ``benchmarks.memory_bound``.
    """

    usual: float
    whole: float = 0
    alpha: float = 0
    lossless: float = 0
    palette: float = 0
    small: float = 0
    deep: float | None = None
    one_by_one: bool = False

    def copies(
        self,
        *,
        whole: bool = False,
        alpha: bool = False,
        lossless: bool = False,
        palette: bool = False,
        small: bool = False,
        deep: bool = False,
    ) -> float:
        """Return the number for an image with these properties."""
        usual = self.deep if deep and self.deep is not None else self.usual
        return max(
            usual,
            whole * self.whole,
            alpha * self.alpha,
            lossless * self.lossless,
            palette * self.palette,
            small * self.small,
        )


@frozen
class Coder:
    """A decoder or an encoder: its memory, and the packages that may do the work.

    The preferred package is the first. ``libvips:name`` is present if libvips has an operation, or a
    compression for HEIF, of that name.
    """

    memory: Memory
    packages: tuple[str, ...]


@frozen
class Effort:
    """What the codec is told for ``effort`` 0 (fast) to 9 (small), and the default effort."""

    scale: tuple[int | str, ...]
    default: int


class SavedFacts(TypedDict, total=False):
    """Facts that only the encoder of a file knows. `ImageInfo` explains each."""

    width: int
    height: int
    colorspace: str
    interlaced: bool
    subsample: str | None
    depth: int
    lossless: bool
    alpha: bool
    frames: int
    delays: tuple[int, ...]
    plays: int | None
    profile: bool
    levels: tuple[tuple[int, int], ...]
    channels: int


DEFLATE = Effort((1, 1, 2, 4, 4, 5, 6, 7, 8, 9), default=6)
"""The effort of the PNG family. Level 0 of zlib does not compress at all."""


class Format:
    """A format of files. The class is its row in the table, and an object is a file whose header was read.

    A new format is a class with these attributes, in a package of its own. The methods call functions in its
    modules, which are imported when they are needed: `probe` calls ``header.read_header``, which returns the
    arguments of the class after the reader, `load` calls ``reading.read``, `save` ``writing.write``, and
    `with_metadata` ``rewriting.rewrite``.

    Attributes:
        name: Name in requests and results.
        title: Name for people.
        media_type: Media type of the HTTP header.
        suffixes: File suffixes, the usual one first.
        aliases: Other spellings of the name that requests may use.
        magic: Regular expression that the first bytes match.
        reader: How it is decoded.
        writer: How it is encoded, if it is an output format.
        internal: True if only code can ask for it as output, such as dialects.
        effort: How long the encoder may take, if it has such a setting.
        alpha: True if it carries transparency.
        animation: True if it carries several frames.
        exact_animation: True if animations can be stored exactly, if stills can.
        depth: Bits per channel that the writer keeps at most.
        quality: Default quality 1 to 100; None if the format has no such setting.
        looks: Typical SSIMULACRA2 at the qualities 0, 10, 20 to 100, as `benchmarks.look` measures; by
            default those of JPEG.
        lossless: True if it can store pixels exactly.
        subsamplings: Resolutions of color that the writer offers: 420, 444.
        palette: True if the number of colors can be limited to a palette.
        interlaces: True if it can be written progressively.
        progressive: True if it may be written progressively unless told otherwise.
        colorful: True if it keeps more than 256 colors.
        widespread: True if every client shows it.
        shown_by_browsers: True if most browsers show it, in notebooks, too.
        animated: Name of the format of the same suffix that carries several frames.
        metadata: What results can carry: exif, xmp, iptc, profile.
        max_side: Longest side in pixels that fits.
        most_read: Longest side in pixels that the decoder can count.
        slow_header: True if it may take long to read the header of a small file.
        load_scaling: How the decoder can scale down.
        skipping_levels: True if a smaller copy has every second, fourth... pixel and not means of them.
        array_pixels: Up to how many pixels decoding to a `Raster` is faster than to an image of libvips.
        unchanged_array_pixels: The same for pixels that no step changes.
        rewrites: True if `with_metadata` changes files.
        transcodes: Name of the format that `transcoded` makes of files, if any.
        encodes_arrays: True if `save` also takes a `Raster`.
        becomes: Output format if the request names none.
        extra: Extra of the package that brings the codec, if one is needed.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    media_type: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    aliases: ClassVar[tuple[str, ...]] = ()
    magic: ClassVar[bytes]
    reader: ClassVar[Coder]
    writer: ClassVar[Coder | None] = None
    internal: ClassVar[bool] = False
    effort: ClassVar[Effort | None] = None
    alpha: ClassVar[bool] = True
    animation: ClassVar[bool] = False
    exact_animation: ClassVar[bool] = True
    depth: ClassVar[int] = 8
    quality: ClassVar[int | None] = None
    looks: ClassVar[tuple[float, ...]] = (-64, -5, 35.7, 50.4, 57.9, 63, 65.9, 70.9, 76.7, 87.2, 96.1)
    lossless: ClassVar[bool] = True
    subsamplings: ClassVar[tuple[str, ...]] = ()
    palette: ClassVar[bool] = False
    interlaces: ClassVar[bool] = False
    progressive: ClassVar[bool] = False
    colorful: ClassVar[bool] = True
    widespread: ClassVar[bool] = False
    shown_by_browsers: ClassVar[bool] = False
    animated: ClassVar[str | None] = None
    metadata: ClassVar[tuple[str, ...]] = ()
    max_side: ClassVar[int] = 65_535
    most_read: ClassVar[int] = 100_000_000  # of libvips
    slow_header: ClassVar[bool] = False
    load_scaling: ClassVar[LoadScaling] = LoadScaling.NONE
    skipping_levels: ClassVar[bool] = False
    array_pixels: ClassVar[int] = 0
    unchanged_array_pixels: ClassVar[int] = 0
    rewrites: ClassVar[bool] = False
    transcodes: ClassVar[str | None] = None
    encodes_arrays: ClassVar[bool] = False
    becomes: ClassVar[str]
    extra: ClassVar[str | None] = None

    suffix: ClassVar[str]
    """The usual file suffix, with its dot."""
    writable: ClassVar[bool]
    """True if requests can name it as output."""

    def __init_subclass__(cls) -> None:
        if not hasattr(cls, "suffixes"):  # what several formats share
            return
        cls.suffix = cls.suffixes[0]
        cls.writable = cls.writer is not None and not cls.internal

    header: Any
    """The facts that the parser found; subclasses declare the type."""

    def __init__(
        self, header_reader: HeaderReader, info: ImageInfo, header: Any, exif_blocks: Sequence[ExifBlock] = ()
    ) -> None:
        """Take a file, its facts, what else its parser learned, and the EXIF that libvips would parse."""
        self.header_reader = header_reader
        self.info = info
        self.header = header
        self.exif_blocks = exif_blocks

    @property
    def source(self) -> ByteSource:
        """The bytes of the file."""
        return self.header_reader.source

    @classmethod
    def accepts(cls, reader: HeaderReader) -> bool:
        """Return True if a file whose first bytes match is of this format."""
        return True

    @classmethod
    def module(cls, name: str) -> ModuleType:
        """Return a module of the format's package."""
        return _module(f"{cls.__module__}.{name}")

    @classmethod
    def probe(cls, reader: HeaderReader) -> Format:
        """Read the header of a file, and decode no pixels.

        Headers are parsed here rather than by decoders: a header is small, a decoder is a large import and a
        larger surface for attacks, and facts such as the quality or the delays are not told by all of them.

        Raises:
            CorruptImage: the header is damaged.
            UnsupportedFormat: this variant cannot be read.
        """
        return cls(reader, *cls.module("header").read_header(reader))

    @classmethod
    def traces(cls, info: ImageInfo) -> tuple[int, int]:
        """Return where the coding of a pixel leaves traces that show: in its block, and beyond the block.

        These are the side of a block, which is 1 without blocks, and a number of pixels on every side.
        """
        return 1, 0

    def expected_size(self, settings: LoadSettings) -> tuple[float, float]:
        """Return the size of a loaded frame: that of a smaller copy in the file, or as the decoder scales."""
        info, stored = self.info, (self.info.width, self.info.height)
        if info.levels:
            wanted = info.width * settings.scale
            return min((stored, *info.levels), key=lambda size: abs(size[0] - wanted))
        if self.load_scaling in (LoadScaling.NONE, LoadScaling.LEVELS):
            return stored
        return info.width * settings.scale, info.height * settings.scale

    def load(self, settings: LoadSettings) -> pyvips.Image | Raster:
        """Return the picture as it is stored, as `loading.load` describes, which calls this."""
        image: pyvips.Image | Raster = self.module("reading").read(self, settings)
        return image

    def with_metadata(self, policy: MetadataPolicy) -> bytes | None:
        """Return the file with its coded pixels as they are, and the metadata that a policy keeps.

        The orientation and the color profile always stay. Return None if only another encoding can drop what
        the file says.

        Raises:
            CorruptImage: the file is damaged where its parts are told apart.
        """
        if not self.rewrites:
            return None
        if policy == "keep":
            return bytes(self.source.buffer())
        data: bytes | None = self.module("rewriting").rewrite(self, policy)
        return data

    def transcoded(self) -> bytes:
        """Return the file rewrapped as the format that ``transcodes`` names, from which it comes back.

        Raises:
            UnsupportedOperation: the file cannot be rewrapped.
        """
        raise UnsupportedOperation(f"{self.title} cannot be rewrapped.")

    @classmethod
    def save(cls, image: pyvips.Image | Raster, settings: SaveSettings, sink: Sink) -> SavedFacts:
        """Encode a picture that `saving.save` has prepared. Return what the encoder knows of its file."""
        facts: SavedFacts = cls.module("writing").write(image, settings, sink)
        return facts
