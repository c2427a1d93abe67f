"""The result of processing."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import attrs

from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import TargetError
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.table import FORMATS, by_suffix
from imgsvc_core.plan import Plan
from imgsvc_core.plan.faces import Face
from imgsvc_core.targets.writing import Target, check_target, open_target, suffix_of

if TYPE_CHECKING:
    import numpy.typing as npt
    import PIL.Image
    from typing_extensions import TypeVar as TypeVarWithDefault

    Data = TypeVarWithDefault("Data", bound=bytes | None, default=bytes | None, covariant=True)
else:
    Data = TypeVar("Data", bound=bytes | None, covariant=True)


@frozen(kw_only=True)
class Timing:
    """Milliseconds that each part of the work took.

    Pixels flow through decoder, steps and encoder together. Time that belongs to no single part counts as
    ``encode``.
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


@attrs.frozen(kw_only=True, repr=False)
class Result(Generic[Data]):
    """A processed image: facts of the source and the result, and the bytes.

    ``data`` holds the encoded image, or `None` if it was written to a target. ``notes`` are sentences about
    the frames, transparency or colors of the source that the format of the result cannot hold.
    """

    input: ImageInfo
    output: ImageInfo
    data: Data = attrs.field(repr=False)
    faces: tuple[Face, ...] | None = None
    timing: Timing
    notes: tuple[str, ...] = ()
    plan: Plan = attrs.field(repr=False)

    def __repr__(self) -> str:
        source, made = self.input, self.output
        width, height = source.upright_size
        frames = f", {made.frames} frames" if made.animated else ""
        return (
            f"<Result {made.format} {made.width}x{made.height}{frames}, {made.bytes:,} bytes, "
            f"from {source.format} {width}x{height}>"
        )

    @property
    def media_type(self) -> str:
        """The media type of the encoded image, such as ``image/webp``."""
        return FORMATS[self.output.format].media_type

    def save(self: Result[bytes], target: Target) -> None:
        """Write the encoded image to a path, an fsspec URL or a binary file object.

        Raises:
            TargetError: it cannot be written, or its suffix is that of another format.
        """
        check_target(target, required=True)
        suffix, format = suffix_of(target), FORMATS[self.output.format]
        named = by_suffix(suffix)
        if named is not None and named is not format:
            expected = f"one of {', '.join(format.suffixes)} for a result in format {format.name}"
            raise TargetError(
                f"Target suffix must be {expected}, got '{suffix}'; ask for that format instead."
            )
        data = _in_memory(self)
        with open_target(target, format.media_type) as file:
            file.write(data)

    def to_numpy(self: Result[bytes]) -> npt.NDArray[Any]:
        """Return the pixels as height x width x channels, or frames x height x width x channels if animated.

        Gray images have no axis of channels. Samples are ``uint8`` or ``uint16``.

        Raises:
            ForkedProcess: libvips does not work in this process.
        """
        from imgsvc_core.formats.probe import probe
        from imgsvc_core.formats.settings import LoadSettings
        from imgsvc_core.sources.opening import Opened

        info = self.output
        opened = Opened(info, file=probe(ByteSource(_in_memory(self))))
        image = opened.load_image(LoadSettings(all_frames=True))
        bands = (image.bands,) if image.bands > 1 else ()
        # `numpy` gives a single pixel without axes.
        pixels: npt.NDArray[Any] = image.numpy().reshape(image.height, image.width, *bands)
        return pixels.reshape(-1, info.height, *pixels.shape[1:]) if info.animated else pixels

    def to_pil(self: Result[bytes]) -> PIL.Image.Image:
        """Return a Pillow image; 16 bits are reduced to 8, except for gray.

        Raises:
            ForkedProcess: libvips does not work in this process.
        """
        import numpy as np
        import PIL.Image

        if self.output.animated:
            return PIL.Image.open(io.BytesIO(_in_memory(self)))
        pixels = self.to_numpy()
        if pixels.dtype != np.uint8 and pixels.ndim == 3:
            pixels = (pixels >> 8).astype(np.uint8)
        return PIL.Image.fromarray(pixels)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """Return the image for notebooks, as PNG if browsers do not show its format."""
        shown = {"text/plain": repr(self)}
        if self.data is None:
            return shown
        data: bytes = self.data
        media_type = FORMATS[self.output.format].shown_by_notebooks
        if media_type is None:
            preview = io.BytesIO()
            cast("Result[bytes]", self).to_pil().save(preview, "PNG")
            media_type, data = "image/png", preview.getvalue()
        import base64

        return {**shown, media_type: base64.b64encode(data).decode()}

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


def _in_memory(result: Result[Any]) -> bytes:
    if result.data is None:
        raise TypeError("The result was written to a target; process without a target to have it in memory.")
    data: bytes = result.data
    return data
