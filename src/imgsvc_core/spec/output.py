"""The encoding of the result."""

from collections.abc import Collection, Iterable
from types import MappingProxyType
from typing import ClassVar, Literal

from imgsvc_core.formats.settings import MetadataPolicy
from imgsvc_core.formats.table import FORMATS, OUTPUT_NAMES, OutputName
from imgsvc_core.spec.color import WHITE, Color
from imgsvc_core.spec.declare import Accepts, Operation, declared, param
from imgsvc_core.spec.facts import FACTS, FactName
from imgsvc_core.spec.kinds import Choice, HexColor, Integer, IntegerOr, NumberOr, Several, Words
from imgsvc_core.spec.rules import NotTogether, NotWhen, Rule

OutputFormat = Literal[OutputName, "auto"]
OutputAlias = Literal["jpeg", "jpeg2000", "heif", "jpegxl", "tif"]
LookWord = Literal["fair", "good", "fine", "same"]

LOOKS = MappingProxyType({"fair": 50.0, "good": 70.0, "fine": 80.0, "same": 90.0})
"""The SSIMULACRA2 that a word promises."""

_ALIASES = {alias: name for name in OUTPUT_NAMES for alias in FORMATS[name].aliases}


def _spellings(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(spelling for name in names for spelling in (name, *FORMATS[name].aliases))


def _without(ability: str) -> tuple[str, ...]:
    return _spellings(name for name in OUTPUT_NAMES if not getattr(FORMATS[name], ability))


_AT_HALF_RESOLUTION = _spellings(name for name in OUTPUT_NAMES if FORMATS[name].subsamplings == ("420",))


_OF_ENCODERS = (
    *("quality", "look", "encoding", "lossless", "effort", "subsampling", "colors", "flatten", "max_bytes"),
    "if_smaller",
)


@declared
class Output(Operation):
    """How the result is encoded.

    A parameter that the named format does not support is an error. If the format is chosen at run time,
    what it does not support is ignored.
    """

    rules: ClassVar[tuple[Rule, ...]] = (
        NotWhen("format", _without("quality"), ("quality", "look")),
        NotWhen("format", _without("interlaces"), ("encoding",)),
        NotWhen("format", _without("lossless"), ("lossless",)),
        NotWhen("format", _without("effort"), ("effort",)),
        NotWhen("format", _without("subsamplings"), ("subsampling",)),
        NotWhen("format", _AT_HALF_RESOLUTION, ("subsampling",), values=("444",)),
        NotWhen("format", _without("palette"), ("colors",)),
        NotWhen("lossless", (True,), ("look", "subsampling", "colors")),
        NotTogether(("look",), ("quality",)),
        NotWhen("keep_pixels", (True,), _OF_ENCODERS),
        NotWhen("transcode", (True,), (*_OF_ENCODERS, "keep_pixels")),
        NotWhen("transcode", (True,), ("metadata",), values=("strip", "copyright")),
        NotWhen("format", (*_without("transcodes"), "auto"), ("transcode",)),
    )

    format: Accepts[OutputFormat | None, OutputFormat | OutputAlias | None] = param(
        "File format; by default that of the source, if it can be written. auto chooses one that makes "
        "a small file, and stores graphics without loss.",
        Choice((*OUTPUT_NAMES, "auto"), _ALIASES),
        default=None,
    )
    quality: int | Literal["auto"] | None = param(
        "Quality of lossy formats; by default the format's own. auto chooses one that looks good.",
        IntegerOr(1, 100, {"auto": "auto"}),
        default=None,
    )
    look: Accepts[float | None, float | LookWord | None] = param(
        "Least SSIMULACRA2 score of the result. The smallest file that reaches it is taken. 50 is fair, 70 "
        "good, 80 fine, and 90 looks the same.",
        NumberOr(30, 100, LOOKS),
        default=None,
    )
    encoding: Literal["baseline", "progressive"] | None = param(
        "Whether JPEG, PNG and GIF load from coarse to fine. By default, only JPEGs other than "
        "photographs do.",
        default=None,
    )
    lossless: bool = param("Store pixels exactly, if the format can.", default=False)
    effort: int | None = param(
        "Time spent on a smaller file: 9 takes longest. By default the format's own.",
        Integer(0, 9),
        default=None,
    )
    subsampling: Literal["auto", "420", "444"] | None = param(
        "Resolution of color. 420 halves it in both directions, 444 keeps it. auto, the default, chooses "
        "444 for AVIF of up to 16 megapixels, for pictures with colored text or lines, and from quality 90.",
        default=None,
    )
    colors: int | None = param(
        "Largest number of colors of a PNG or GIF. Fewer colors make smaller files.",
        Integer(2, 256),
        default=None,
    )
    metadata: MetadataPolicy | None = param(
        "strip, the default, keeps only the color profile. copyright keeps the author's name and rights, "
        "too. keep keeps everything, as transcode always does.",
        default=None,
    )
    keep_pixels: bool = param(
        "Change only metadata, and leave the encoded pixels as they are, in JPEG, PNG, WebP, HEIC, "
        "AVIF and JPEG XL.",
        default=False,
    )
    transcode: bool = param(
        "Rewrap a JPEG as JPEG XL without loss, or turn such a JPEG XL back into the very same JPEG. "
        "Metadata stays.",
        default=False,
    )
    if_smaller: bool = param(
        "Keep the pixels of the original if no step changes them and encoding them again saves nothing.",
        default=False,
    )
    flatten: bool = param(
        "Lay the picture on the background, so that the result has no alpha.", default=False
    )
    background: Accepts[Color, Color | str] = param(
        "Color under transparent pixels, with flatten or if the format has no alpha.",
        HexColor(alpha=False),
        default=WHITE,
    )
    facts: Accepts[tuple[FactName, ...], Collection[FactName]] = param(
        "Facts of the result's pixels to return, such as its palette or a placeholder.",
        Words(tuple(FACTS)),
        default=(),
    )
    internal_format: Literal["bmp", "ico"] | None = param(
        "File format, in place of the one that requests can name.", default=None, internal=True
    )
    depth: int | None = param(
        "Most bits per channel; by default as many as the format keeps.",
        Integer(8, 16),
        default=None,
        internal=True,
    )
    palettes: Literal["libvips", "pillow"] | None = param(
        "The library that chooses the palettes of a GIF of more colors than it has.",
        default=None,
        internal=True,
    )
    ladder: tuple[int, ...] | None = param(
        "Qualities to try in turn for max_bytes; the last one is taken however large the file is.",
        Several(None, Integer(1, 100)),
        default=None,
        internal=True,
    )
    frames: int | None = param(
        "How many frames of an animation are kept at most.", Integer(1, 65_535), default=None, internal=True
    )
    frame: int = param(
        "The one frame of an animation that is kept, if it is not the first.",
        Integer(0, 65_535),
        default=0,
        internal=True,
    )
    max_bytes: int | None = param(
        "Largest size of the file; the best quality that fits is taken.",
        Integer(100, 1_000_000_000),
        unit="bytes",
        default=None,
    )

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.metadata == "strip":  # as if it was not given
            object.__setattr__(self, "metadata", None)

    @property
    def policy(self) -> MetadataPolicy:
        """Return the metadata that stays."""
        return self.metadata or ("keep" if self.transcode else "strip")

    @property
    def promised(self) -> float | None:
        """Return the SSIMULACRA2 that the result has at least, if there is a promise."""
        return LOOKS["good"] if self.quality == "auto" and not self.lossless else self.look
