"""The result of processing."""

from __future__ import annotations

import io
from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, cast

import attrs

from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import TargetError
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.table import FORMATS, by_suffix
from imgsvc_core.plan import Plan
from imgsvc_core.plan.faces import Face
from imgsvc_core.plan.geometry import Box
from imgsvc_core.targets.writing import Target, check_target, open_target, suffix_of

if TYPE_CHECKING:
    import numpy.typing as npt
    import PIL.Image
    import pyvips
    from typing_extensions import TypeVar as TypeVarWithDefault

    from imgsvc_core.targets.pending import Pending

    Data = TypeVarWithDefault("Data", bound=bytes | None, default=bytes | None, covariant=True)
else:
    Data = TypeVar("Data", bound=bytes | None, covariant=True)
    Pending = object  # few results are encoded later

_WRITTEN = "The result was written to a target; process without a target to have it in memory."
_SHOWN_BY_NOTEBOOKS = ("image/jpeg", "image/png", "image/gif")
_STILL_OR_NOT = {"image/apng": "image/png"}


@frozen(kw_only=True)
class Timing:
    """Milliseconds that each part of the work took.

    Decoder and steps work at the same time, and with a target the encoder does, too. Time that belongs to no
    single part counts as that of the last one. ``encode`` is 0 until the result is encoded.
    """

    decode: float
    process: float
    encode: float

    @classmethod
    def between(cls, started: float, decoded: float, processed: float, ended: float) -> Timing:
        """Return what took how long, from the seconds at which each part ended."""
        return cls(
            decode=round(1000 * (decoded - started), 3),
            process=round(1000 * (processed - decoded), 3),
            encode=round(1000 * (ended - processed), 3),
        )


@frozen(kw_only=True)
class Finished:
    """An encoded picture: its facts, its bytes unless they went to a target, and what it lost."""

    output: ImageInfo
    data: bytes | None = attrs.field(repr=False)
    notes: tuple[str, ...]
    timing: Timing
    decoded: bool = True

    @property
    def ended(self) -> Finished:
        """The encoded picture."""
        return self

    def finished(self) -> Finished:
        """Return the encoded picture."""
        return self

    def facts(self) -> Mapping[str, Any]:
        """Return the facts of the pixels."""
        return self.output.facts

    def pixels(self) -> NoReturn:
        """Raise `TypeError`, because nothing kept the pixels."""
        if self.data is None:
            raise TypeError(_WRITTEN)
        if not self.decoded:
            raise TypeError("The pixels were not decoded; leave out keep_pixels to have them.")
        raise TypeError(
            "The pixels of the result stayed in the process that computed them; call imgsvc.to_numpy there."
        )

    def save_as(self, target: Target) -> bool:
        """Return False, because nothing kept the pixels."""
        return False


@frozen(kw_only=True)
class Result(Generic[Data]):
    """A processed image: its pixels, the encoded bytes, and facts of the source and the result.

    ``faces`` are those that the request looked for. ``layers`` are the boxes of its layers on the result.
    """

    input: ImageInfo
    faces: tuple[Face, ...] | None = None
    layers: tuple[Box, ...] = ()
    plan: Plan
    _encoding: Finished | Pending = attrs.field(alias="encoding")

    def __repr__(self) -> str:
        source, ended = self.input, self._encoding.ended
        came_from = f"from {source.format} {source.upright_size[0]}x{source.upright_size[1]}"
        made, count = self.plan.size if ended is None else ended.output.upright_size, self.plan.frames
        frames = f", {count} frames" if count > 1 else ""
        encoded = "not encoded yet" if ended is None else f"{ended.output.bytes:,} bytes"
        formats = " or ".join(self._formats())
        return f"<Result {formats} {made[0]}x{made[1]}{frames}, {encoded}, {came_from}>"

    def _formats(self) -> tuple[str, ...]:
        """Return the format of the result, or those that it may have before it is encoded."""
        if self._encoding.ended is not None:
            return (self._encoding.ended.output.format,)
        settings = (*self.plan.save, *self.plan.save_exactly)
        return tuple(dict.fromkeys(item.format for item in settings))

    @property
    def output(self) -> ImageInfo:
        """The facts of the encoded image."""
        return self._encoding.finished().output

    @property
    def facts(self) -> Mapping[str, Any]:
        """The facts of the pixels that ``output.facts`` of the request asks for. They need no encoding."""
        return self._encoding.facts()

    @property
    def data(self) -> Data:
        """The encoded image, or `None` if it was written to a target."""
        return cast("Data", self._encoding.finished().data)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about the frames, transparency or colors that the format of the result cannot hold."""
        return self._encoding.finished().notes

    @property
    def timing(self) -> Timing:
        """The time that the work has taken so far."""
        return self._encoding.timing

    @property
    def media_type(self) -> str:
        """The media type of the encoded image, such as ``image/webp``."""
        formats = self._formats()
        return FORMATS[formats[0] if len(formats) == 1 else self.output.format].media_type

    def save(self: Result[bytes], target: Target) -> None:
        """Write the encoded image to a path, an fsspec URL or a binary file object.

        If the request names no format, the suffix does, as in `process`. ``output`` and ``data`` stay in the
        format of the result.

        Raises:
            TargetError: it cannot be written, or its suffix is that of another format than the request names.
        """
        check_target(target, required=True)
        suffix = suffix_of(target)
        named = by_suffix(suffix)
        fitting = set() if named is None else {named.name, named.animated}
        if named is not None and fitting.isdisjoint(self._formats()) and self._encoding.save_as(target):
            return
        format = FORMATS[self.output.format]
        if named is not None and format.name not in fitting:
            expected = f"one of {', '.join(format.suffixes)} for a result in format {format.name}"
            raise TargetError(
                f"Target suffix must be {expected}, got '{suffix}'; ask for that format instead."
            )
        from imgsvc_core.formats.sink import write_all  # loads libvips

        data = self._encoding.finished().data
        if data is None:
            raise TypeError(_WRITTEN)
        with open_target(target, format.media_type) as file:
            write_all(file, data)

    def to_numpy(self: Result[bytes]) -> npt.NDArray[Any]:
        """Return the pixels before encoding, as height x width x channels without a copy.

        The array stays read-only, because the result keeps its pixels. Animations have frames x height x
        width x channels, and gray images have no axis of channels. Samples are ``uint8`` or ``uint16``.

        For networks that take channels first: ``pixels.transpose(2, 0, 1).astype("float32") / 255``.
        """
        import numpy as np

        pixels = np.asarray(self._encoding.pixels().pixels.data.toreadonly())
        height, width, bands = pixels.shape
        frames = (self.plan.frames,) if self.plan.frames > 1 else ()
        channels = (bands,) if bands > 1 else ()
        return pixels.reshape(*frames, height // prod(frames), width, *channels)

    def to_pil(self: Result[bytes]) -> PIL.Image.Image:
        """Return a Pillow image of the pixels before encoding; 16 bits are reduced to 8, except for gray."""
        import numpy as np
        import PIL.Image

        if self.plan.frames > 1:
            return PIL.Image.open(io.BytesIO(_png(self.to_vips(), animated=True)))
        pixels = self.to_numpy()
        if pixels.dtype != np.uint8 and pixels.ndim == 3:
            pixels = (pixels >> 8).astype(np.uint8)
        return PIL.Image.fromarray(pixels)

    def to_vips(self: Result[bytes]) -> pyvips.Image:
        """Return an image of pyvips on the pixels before encoding, without a copy.

        An animation is a tall strip of frames with ``page-height``.

        Raises:
            ForkedProcess: libvips does not work in this process.
        """
        return self._encoding.pixels().to_vips()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """Return the image for notebooks, as PNG if browsers do not show its format."""
        shown = self._shown()
        if shown is None:
            return {"text/plain": repr(self)}
        media_type, data = shown
        if media_type not in _SHOWN_BY_NOTEBOOKS:
            return {"text/plain": repr(self), "text/html": _img(media_type, data)}
        return {"text/plain": repr(self), media_type: data}

    def _shown(self) -> tuple[str, str] | None:
        """Return what browsers show: a media type, and the bytes as Base64. Return None if there are none."""
        import base64

        row, data = FORMATS[self.output.format], self._encoding.finished().data
        if data is None:
            return None
        if not row.shown_by_browsers:
            animated = self.output.frames > 1
            stayed = isinstance(self._encoding, Finished)
            image = _decoded(data, all_frames=animated) if stayed else self._encoding.pixels().to_vips()
            return "image/png", base64.b64encode(_png(image, animated=animated)).decode()
        return _STILL_OR_NOT.get(row.media_type, row.media_type), base64.b64encode(data).decode()

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the bytes and the plan, as JSON values."""
        output = self.output.to_dict()
        if self.faces is not None:
            output["faces"] = [attrs.asdict(face) for face in self.faces]
        return {
            "input": self.input.to_dict(),
            "output": output,
            "timing": attrs.asdict(self.timing),
            "notes": list(self.notes),
        }


def encode(result: Result[Any]) -> Finished:
    """Encode the pixels of a result, if that is not done yet."""
    return result._encoding.finished()


def written(result: Result[Any], name: str) -> Result[None]:
    """Return a result whose bytes went to a target of a name."""
    ended = encode(result)
    output = attrs.evolve(ended.output, name=name)
    return cast("Result[None]", attrs.evolve(result, encoding=attrs.evolve(ended, output=output, data=None)))


def _decoded(data: bytes, *, all_frames: bool) -> pyvips.Image:
    """Return the pixels of an encoded picture whose own ones stayed in another process."""
    from imgsvc_core.formats.bytesource import ByteSource
    from imgsvc_core.formats.loading import load
    from imgsvc_core.formats.probe import probe
    from imgsvc_core.formats.settings import LoadSettings

    image: pyvips.Image = load(probe(ByteSource(data)), LoadSettings(all_frames=all_frames))
    return image


def _png(image: pyvips.Image, *, animated: bool) -> bytes:
    """Return a picture as PNG of 8 bits, or as an animated one."""
    from imgsvc_core.formats.saving import save
    from imgsvc_core.formats.settings import SaveSettings

    settings = SaveSettings(format="apng" if animated else "png", depth=8, effort=0)
    data = save(image, settings).data
    assert data is not None
    return data


class Variants(dict[str, Result[Data]]):
    """The results of variants by name, which notebooks show side by side."""

    def _repr_html_(self) -> str:
        """Return all pictures, each with its name and facts."""
        figures = "".join(_figure(name, result) for name, result in self.items())
        return f'<div style="display: flex; flex-wrap: wrap; gap: 1em">{figures}</div>'


def _figure(name: str, result: Result[Any]) -> str:
    import html

    shown = result._shown()
    image = "" if shown is None else _img(*shown)
    caption = f"{html.escape(name)}<br>{html.escape(repr(result).strip('<>'))}"
    return f"<figure>{image}<figcaption>{caption}</figcaption></figure>"


def _img(media_type: str, data: str) -> str:
    return f'<img alt="" style="max-width: 100%" src="data:{media_type};base64,{data}">'
