"""Source files of every input format and variant, made by code from one small photograph.

Each function is independent of the project's own writers: files come from Pillow, pillow-heif, imagecodecs,
tifffile, libvips, or are put together byte by byte here. `VARIANTS` names them all.
"""

from __future__ import annotations

import functools
import io
import struct
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pyvips
from PIL import Image, ImageCms

from imgsvc_core.formats.table import FORMATS, Format, by_name
from tests.support import libjxl, photos
from tests.support.handmade import (
    ApngFrame,
    apng_by_hand,
    bmp_by_hand,
    gif_codes,
    pillow,
    png_by_hand,
    psd_by_hand,
    psd_resource,
    vips,
)
from tests.support.photos import Pixels

WIDTH, HEIGHT = 96, 64


@attrs.frozen(kw_only=True)
class Encoded:
    """A source file and what it shows.

    ``pixels`` is (height, width[, bands]) of 8 or 16 bits as sRGB or gray, with straight alpha, not
    turned upright; for an animation (frames, height, width, bands), each as a browser shows it.
    ``tolerance`` is the perceptual distance that the coding of the file itself may cost.
    """

    format: str
    data: bytes
    pixels: Pixels
    tolerance: float = 0.0
    delays: tuple[int, ...] = ()
    plays: int | None = None
    space: str = "srgb"
    profile: bytes | None = None
    orientation: int = 1

    @property
    def animated(self) -> bool:
        return self.pixels.ndim == 4

    @property
    def alpha(self) -> bool:
        return self.pixels.ndim >= 3 and self.pixels.shape[-1] in (2, 4)


@functools.cache
def _photo() -> bytes:
    image = Image.fromarray(photos.astronaut()).crop((130, 20, 130 + 288, 20 + 192))
    return image.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS).tobytes()


def photo() -> Pixels:
    """A face: 64 x 96 x 3."""
    return np.frombuffer(_photo(), np.uint8).reshape(HEIGHT, WIDTH, 3).copy()


def gray() -> Pixels:
    """The same in gray: 64 x 96."""
    return np.asarray(Image.fromarray(photo()).convert("L")).copy()


def bilevel() -> Pixels:
    """The same in black and white, dithered: 64 x 96 of 0 and 255."""
    return np.asarray(Image.fromarray(photo()).convert("1")).astype(np.uint8) * 255


def transparent() -> Pixels:
    """The photograph with a soft round edge: 64 x 96 x 4."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    radius = np.hypot((x - WIDTH / 2) / (WIDTH / 2), (y - HEIGHT / 2) / (HEIGHT / 2))
    alpha = np.clip((1.1 - radius) * 5, 0, 1) * 255
    return np.dstack((photo(), np.rint(alpha).astype(np.uint8)))


def inks() -> Pixels:
    """The photograph in cyan, magenta, yellow and black, 255 being full ink: 64 x 96 x 4."""
    return np.asarray(Image.fromarray(photo()).convert("CMYK")).copy()


def _inks_picture() -> Image.Image:
    return Image.fromarray(photo()).convert("CMYK")


def printed() -> Pixels:
    """What these inks look like on paper, by libvips' own CMYK profile: 64 x 96 x 3."""
    image = pyvips.Image.new_from_array(inks()).copy(interpretation="cmyk")
    return np.asarray(as_srgb(image).numpy())


def as_srgb(image: pyvips.Image) -> pyvips.Image:
    """CMYK and Lab converted to sRGB, without the profile of the old space; everything else as it is."""
    if image.interpretation not in ("cmyk", "lab"):
        return image
    if image.interpretation == "cmyk":
        image = image.icc_transform(
            "srgb", input_profile="cmyk", intent="perceptual", black_point_compensation=True
        )
    image = image.colourspace("srgb").copy()
    image.remove("icc-profile-data")
    return image


def deep() -> Pixels:
    """16 bits that use all of them: the photograph under a gradient too fine for 8 bits."""
    return photos.deep(photo()) // 4 * 3 + (np.arange(WIDTH) * 100).astype(np.uint16)[None, :, None]


def few_colors() -> Pixels:
    """The photograph in 16 colors: 64 x 96 x 3."""
    return np.asarray(_palette_picture(16).convert("RGB")).copy()


def frames(count: int = 4) -> Pixels:
    """A square that moves over the photograph and blinks: (count, 64, 96, 4), opaque."""
    pictures = np.repeat(np.dstack((photo(), np.full((HEIGHT, WIDTH), 255, np.uint8)))[None], count, axis=0)
    for index, picture in enumerate(pictures):
        left = 8 + 18 * index
        picture[20:44, left : left + 16, :3] = (255, 40 * index, 0)
    return pictures


@functools.cache
def profile() -> bytes:
    """A valid ICC profile for RGB, the same one through a whole session: it holds the time of its making."""
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def _palette_picture(colors: int) -> Image.Image:
    return Image.fromarray(photo()).quantize(colors)


# JPEG


def jpeg() -> Encoded:
    return Encoded(format="jpg", data=pillow(photo(), "JPEG", quality=95), pixels=photo(), tolerance=0.02)


def jpeg_progressive() -> Encoded:
    data = pillow(photo(), "JPEG", quality=95, progressive=True, subsampling=0)
    return Encoded(format="jpg", data=data, pixels=photo(), tolerance=0.02)


def jpeg_gray() -> Encoded:
    return Encoded(format="jpg", data=pillow(gray(), "JPEG", quality=95), pixels=gray(), tolerance=0.02)


def jpeg_cmyk() -> Encoded:
    data = pillow(_inks_picture(), "JPEG", quality=98, subsampling=0)
    return Encoded(format="jpg", data=data, pixels=printed(), tolerance=0.02, space="cmyk")


def jpeg_oriented() -> Encoded:
    exif = Image.Exif()
    exif[0x0112] = 6
    data = pillow(photo(), "JPEG", quality=95, exif=exif.tobytes(), icc_profile=profile())
    return Encoded(format="jpg", data=data, pixels=photo(), tolerance=0.02, orientation=6, profile=profile())


# JPEG 2000


def jp2() -> Encoded:
    data = pillow(photo(), "JPEG2000", irreversible=False, mct=1)
    return Encoded(format="jp2", data=data, pixels=photo())


def jp2_alpha() -> Encoded:
    data = pillow(transparent(), "JPEG2000", irreversible=False, mct=1)
    return Encoded(format="jp2", data=data, pixels=transparent())


def jp2_deep() -> Encoded:
    import imagecodecs

    data = bytes(imagecodecs.jpeg2k_encode(deep(), level=0, reversible=True, codecformat="jp2"))
    return Encoded(format="jp2", data=data, pixels=deep())


def jp2_twelve_bits() -> Encoded:
    import imagecodecs

    twelve = (deep() >> 4).astype(np.uint16)
    data = bytes(
        imagecodecs.jpeg2k_encode(twelve, level=0, reversible=True, bitspersample=12, codecformat="jp2")
    )
    return Encoded(format="jp2", data=data, pixels=np.rint(twelve * (65535 / 4095)).astype(np.uint16))


# PNG and APNG


def png() -> Encoded:
    data = pillow(photo(), "PNG", icc_profile=profile())
    return Encoded(format="png", data=data, pixels=photo(), profile=profile())


def png_gray() -> Encoded:
    return Encoded(format="png", data=pillow(gray(), "PNG"), pixels=gray())


def png_bilevel() -> Encoded:
    data = pillow(Image.fromarray(bilevel()).convert("1"), "PNG")
    return Encoded(format="png", data=data, pixels=bilevel())


def png_palette() -> Encoded:
    return Encoded(format="png", data=pillow(_palette_picture(16), "PNG"), pixels=few_colors())


def png_palette_alpha() -> Encoded:
    picture = _palette_picture(16)
    index = picture.getpixel((0, 0))
    pixels = np.dstack((few_colors(), np.where(np.asarray(picture) == index, 0, 255).astype(np.uint8)))
    return Encoded(format="png", data=pillow(picture, "PNG", transparency=index), pixels=pixels)


def png_alpha() -> Encoded:
    return Encoded(format="png", data=pillow(transparent(), "PNG"), pixels=transparent())


def png_gray_alpha() -> Encoded:
    pixels = np.dstack((gray(), transparent()[:, :, 3]))
    return Encoded(format="png", data=png_by_hand(pixels), pixels=pixels)


def png_deep() -> Encoded:
    return Encoded(format="png", data=png_by_hand(deep()), pixels=deep())


def png_deep_gray() -> Encoded:
    return Encoded(format="png", data=png_by_hand(deep()[:, :, 0]), pixels=deep()[:, :, 0])


def png_deep_gray_alpha() -> Encoded:
    pixels = np.dstack((deep()[:, :, 0], photos.deep(transparent()[:, :, 3])))
    return Encoded(format="png", data=png_by_hand(pixels), pixels=pixels)


def png_interlaced() -> Encoded:
    return Encoded(format="png", data=vips(photo()).pngsave_buffer(interlace=True), pixels=photo())


def apng() -> Encoded:
    shown = frames()
    delays = ((4, 100), (1, 8), (333, 1000), (7, 0))
    parts = [ApngFrame(pixels=picture, delay=delay) for picture, delay in zip(shown, delays, strict=True)]
    return Encoded(
        format="apng", data=apng_by_hand(parts, plays=3), pixels=shown, delays=(40, 125, 333, 70), plays=3
    )


def apng_deep() -> Encoded:
    shown = photos.deep(frames(3)) - 77
    shown[..., 3] = 65535
    parts = [ApngFrame(pixels=picture, delay=(1, 20)) for picture in shown]
    return Encoded(format="apng", data=apng_by_hand(parts), pixels=shown, delays=(50, 50, 50), plays=0)


def apng_disposals() -> Encoded:
    """Every disposal and both blends, on a canvas that starts half transparent."""
    base = transparent()
    patch = np.zeros((24, 32, 4), np.uint8)
    patch[...] = (0, 200, 80, 128)
    solid = np.full((24, 32, 4), (255, 255, 0, 255), np.uint8)
    parts = [
        ApngFrame(pixels=base),
        ApngFrame(pixels=patch, left=10, top=10, disposal=2, blend=1),
        ApngFrame(pixels=solid, left=40, top=20, disposal=1, blend=0),
        ApngFrame(pixels=patch, left=30, top=30, disposal=0, blend=0),
        ApngFrame(pixels=patch, left=20, top=25, disposal=0, blend=1),
    ]
    canvas = base.astype(np.float64)
    shown = [base]

    def region(part: ApngFrame) -> tuple[slice, slice]:
        return slice(part.top, part.top + 24), slice(part.left, part.left + 32)

    def over(top: Pixels, below: Pixels) -> Pixels:
        a, b = top[..., 3:] / 255, below[..., 3:] / 255
        alpha = a + b * (1 - a)
        color = (top[..., :3] * a + below[..., :3] * b * (1 - a)) / np.maximum(alpha, 1e-9)
        return np.rint(np.concatenate((color, alpha * 255), axis=-1))

    before = canvas.copy()
    canvas[region(parts[1])] = over(patch, canvas[region(parts[1])])
    shown.append(canvas.astype(np.uint8))
    canvas = before
    canvas[region(parts[2])] = solid
    shown.append(canvas.astype(np.uint8))
    canvas[region(parts[2])] = 0
    canvas[region(parts[3])] = patch
    shown.append(canvas.astype(np.uint8))
    canvas[region(parts[4])] = over(patch, canvas[region(parts[4])])
    shown.append(canvas.astype(np.uint8))
    return Encoded(
        format="apng", data=apng_by_hand(parts, plays=1), pixels=np.stack(shown), delays=(100,) * 5, plays=1
    )


# GIF


def gif() -> Encoded:
    return Encoded(format="gif", data=pillow(_palette_picture(16), "GIF"), pixels=few_colors())


def gif_animated() -> Encoded:
    shown = _few_color_frames()
    pictures = [
        Image.fromarray(picture[:, :, :3]).quantize(64, dither=Image.Dither.NONE) for picture in shown
    ]
    data = pillow(
        pictures[0], "GIF", save_all=True, append_images=pictures[1:], duration=[40, 120, 330, 20], loop=2,
        disposal=1, optimize=False,
    )  # fmt: skip
    return Encoded(format="gif", data=data, pixels=shown[..., :3], delays=(40, 120, 330, 20), plays=3)


def _few_color_frames() -> Pixels:
    shown = frames()
    for index, picture in enumerate(shown):
        picture[:, :, :3] = few_colors()
        picture[20:44, 8 + 18 * index : 24 + 18 * index, :3] = (255, 40 * index, 0)
    return shown


def gif_disposals() -> Encoded:
    """Background disposal, which browsers show as transparent, and a return to the frame before."""
    square = np.zeros((HEIGHT, WIDTH), bool)
    parts, shown = [], []
    canvas = np.zeros((HEIGHT, WIDTH, 4), np.uint8)
    palette = ((0, 0, 0), (255, 0, 0), (0, 160, 0), (0, 0, 255))
    places = ((8, 8, 1, 1), (30, 20, 2, 2), (50, 10, 3, 3), (20, 30, 2, 1))
    for left, top, color, disposal in places:
        area = square.copy()
        area[top : top + 24, left : left + 32] = True
        before = canvas.copy()
        canvas[area] = (*palette[color], 255)
        shown.append(canvas.copy())
        parts.append((left, top, 32, 24, color, disposal))
        if disposal == 2:
            canvas[area] = 0
        elif disposal == 3:
            canvas = before
    body = [b"GIF89a", struct.pack("<HHBBB", WIDTH, HEIGHT, 0x91, 0, 0), bytes(sum(palette, ()))]
    body.append(b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00")
    for left, top, width, height, color, disposal in parts:
        body.append(struct.pack("<BBBBHBB", 0x21, 0xF9, 4, disposal << 2 | 1, 10, 0, 0))
        body.append(struct.pack("<BHHHHB", 0x2C, left, top, width, height, 0))
        body.append(gif_codes([color] * (width * height), 2))
    body.append(b"\x3b")
    return Encoded(format="gif", data=b"".join(body), pixels=np.stack(shown), delays=(100,) * 4, plays=0)


# WebP, HEIC, AVIF


def webp() -> Encoded:
    return Encoded(format="webp", data=pillow(photo(), "WEBP", quality=95), pixels=photo(), tolerance=0.02)


def webp_lossless() -> Encoded:
    data = pillow(transparent(), "WEBP", lossless=True, exact=True)
    return Encoded(format="webp", data=data, pixels=transparent())


def webp_animated() -> Encoded:
    shown = frames()
    pictures = [Image.fromarray(picture) for picture in shown]
    data = pillow(
        pictures[0], "WEBP", save_all=True, append_images=pictures[1:], duration=[5, 40, 333, 100], loop=2,
        lossless=True,
    )  # fmt: skip
    return Encoded(format="webp", data=data, pixels=shown, delays=(5, 40, 333, 100), plays=2)


def heic() -> Encoded:
    return Encoded(format="heic", data=_heic(photo(), quality=95), pixels=photo(), tolerance=0.03)


def heic_alpha() -> Encoded:
    return Encoded(format="heic", data=_heic(transparent(), quality=95), pixels=transparent(), tolerance=0.03)


def heic_ten_bits() -> Encoded:
    return Encoded(format="heic", data=_heic(deep(), quality=95), pixels=deep(), tolerance=0.03)


def _heic(pixels: Pixels, **options: Any) -> bytes:
    import pillow_heif

    mode = {3: "RGB", 4: "RGBA"}[pixels.shape[2]] + (";16" if pixels.dtype == np.uint16 else "")
    size = (pixels.shape[1], pixels.shape[0])
    file = io.BytesIO()
    pillow_heif.from_bytes(mode, size, pixels.tobytes()).save(file, **options)
    return file.getvalue()


def avif() -> Encoded:
    return Encoded(format="avif", data=pillow(photo(), "AVIF", quality=90), pixels=photo(), tolerance=0.03)


def avif_ten_bits() -> Encoded:
    data = vips(deep()).heifsave_buffer(compression="av1", bitdepth=10, Q=95, effort=0, keep="none")
    return Encoded(format="avif", data=data, pixels=deep(), tolerance=0.03)


def avif_animated() -> Encoded:
    shown = frames()
    pictures = [Image.fromarray(picture) for picture in shown]
    data = pillow(
        pictures[0], "AVIF", save_all=True, append_images=pictures[1:], duration=[5, 40, 333, 100], quality=90
    )
    return Encoded(format="avif", data=data, pixels=shown, delays=(5, 40, 333, 100), plays=0, tolerance=0.04)


# TIFF


def jxl() -> Encoded:
    data = libjxl.encode(photo(), profile=profile())
    return Encoded(format="jxl", data=data, pixels=photo(), profile=profile())


def jxl_lossy() -> Encoded:
    return Encoded(format="jxl", data=libjxl.encode(photo(), distance=0.5), pixels=photo(), tolerance=0.02)


def jxl_gray() -> Encoded:
    return Encoded(format="jxl", data=libjxl.encode(gray()[:, :, None]), pixels=gray())


def jxl_alpha() -> Encoded:
    return Encoded(
        format="jxl", data=libjxl.encode(transparent(), orientation=6), pixels=transparent(), orientation=6
    )


def jxl_deep() -> Encoded:
    return Encoded(format="jxl", data=libjxl.encode(deep()), pixels=deep())


def jxl_twelve_bits() -> Encoded:
    import imagecodecs

    twelve = deep() >> 4
    data = imagecodecs.jpegxl_encode(twelve, bitspersample=12)  # which are linear light
    return Encoded(format="jxl", data=bytes(data), pixels=np.rint(twelve * (65535 / 4095)).astype(np.uint16))


def jxl_animated() -> Encoded:
    """Four frames, with times in hundredths of a second."""
    shown = frames()
    times = {"have_animation": 1, "rate": 100, "divisor": 1, "plays": 3}
    data = libjxl.encode(list(shown), durations=[4, 12, 33, 7], **times)
    return Encoded(format="jxl", data=data, pixels=shown, delays=(40, 120, 330, 70), plays=3)


def tiff() -> Encoded:
    data = pillow(photo(), "TIFF", icc_profile=profile())
    return Encoded(format="tiff", data=data, pixels=photo(), profile=profile())


def _tifffile(pixels: Pixels, **options: Any) -> bytes:
    import tifffile

    file = io.BytesIO()
    tifffile.imwrite(file, pixels, **options)
    return file.getvalue()


def tiff_lzw() -> Encoded:
    return Encoded(format="tiff", data=pillow(photo(), "TIFF", compression="tiff_lzw"), pixels=photo())


def tiff_deep() -> Encoded:
    return Encoded(format="tiff", data=_tifffile(deep(), photometric="rgb"), pixels=deep())


def tiff_alpha() -> Encoded:
    data = _tifffile(transparent(), photometric="rgb", extrasamples=["unassalpha"])
    return Encoded(format="tiff", data=data, pixels=transparent())


def tiff_cmyk() -> Encoded:
    data = pillow(_inks_picture(), "TIFF")
    return Encoded(format="tiff", data=data, pixels=printed(), space="cmyk")


def tiff_bilevel() -> Encoded:
    data = pillow(Image.fromarray(bilevel()).convert("1"), "TIFF", compression="group4")
    return Encoded(format="tiff", data=data, pixels=bilevel())


def tiff_palette() -> Encoded:
    return Encoded(format="tiff", data=pillow(_palette_picture(16), "TIFF"), pixels=few_colors())


def tiff_lab() -> Encoded:
    rgb = Image.fromarray(photo())
    lab = ImageCms.profileToProfile(
        rgb, ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"), outputMode="LAB"
    )
    assert lab is not None
    return Encoded(format="tiff", data=pillow(lab, "TIFF"), pixels=photo(), tolerance=0.02, space="lab")


def tiff_tiled() -> Encoded:
    return Encoded(format="tiff", data=_tifffile(photo(), photometric="rgb", tile=(32, 32)), pixels=photo())


def tiff_tiled_planes() -> Encoded:
    planes = np.moveaxis(photo(), -1, 0)
    data = _tifffile(planes, photometric="rgb", planarconfig="separate", tile=(32, 32))
    return Encoded(format="tiff", data=data, pixels=photo())


def tiff_pyramid() -> Encoded:
    data = vips(photo()).tiffsave_buffer(tile=True, pyramid=True, tile_width=16, tile_height=16)
    return Encoded(format="tiff", data=data, pixels=photo())


def tiff_big() -> Encoded:
    return Encoded(format="tiff", data=_tifffile(photo(), photometric="rgb", bigtiff=True), pixels=photo())


def tiff_float() -> Encoded:
    linear = np.where(photo() <= 10, photo() / 255 / 12.92, ((photo() / 255 + 0.055) / 1.055) ** 2.4)
    data = _tifffile(linear.astype(np.float32), photometric="rgb")
    return Encoded(format="tiff", data=data, pixels=photos.deep(photo()), tolerance=0.002)


# BMP, ICO, PSD, SVG


def bmp() -> Encoded:
    return Encoded(format="bmp", data=pillow(photo(), "BMP"), pixels=photo())


def bmp_palette() -> Encoded:
    return Encoded(format="bmp", data=pillow(_palette_picture(16), "BMP"), pixels=few_colors())


def bmp_gray() -> Encoded:
    return Encoded(format="bmp", data=pillow(gray(), "BMP"), pixels=gray())


def bmp_bilevel() -> Encoded:
    data = pillow(Image.fromarray(bilevel()).convert("1"), "BMP")
    return Encoded(format="bmp", data=data, pixels=bilevel())


def bmp_alpha() -> Encoded:
    """32 bits with an alpha mask, in the V4 header that carries it."""
    masks = struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    rows = np.ascontiguousarray(transparent()[::-1, :, (2, 1, 0, 3)]).tobytes()
    data = bmp_by_hand(rows, WIDTH, HEIGHT, 32, 3, extra=masks, header_size=108)
    return Encoded(format="bmp", data=data, pixels=transparent())


def bmp_sixteen_bits() -> Encoded:
    """A1R5G5B5, whose alpha other readers drop."""
    rgba = transparent().astype(np.uint16)
    words = (rgba[..., 3] >> 7) << 15 | rgba[..., 0] >> 3 << 10 | rgba[..., 1] >> 3 << 5 | rgba[..., 2] >> 3
    masks = struct.pack("<IIII", 0x7C00, 0x3E0, 0x1F, 0x8000)
    data = bmp_by_hand(words[::-1].astype("<u2").tobytes(), WIDTH, HEIGHT, 16, 3, extra=masks, header_size=56)
    color = np.rint((rgba[..., :3] >> 3) * (255 / 31)).astype(np.uint8)
    return Encoded(
        format="bmp", data=data, pixels=np.dstack((color, (rgba[..., 3] >> 7).astype(np.uint8) * 255))
    )


def bmp_rle() -> Encoded:
    """RLE8, every second row as literal runs."""
    picture = _palette_picture(16)
    body = b""
    for number, row in enumerate(np.asarray(picture)[::-1]):
        if number % 2:
            body += bytes((0, WIDTH)) + row.tobytes()
        else:
            body += b"".join(bytes((1, value)) for value in row)
        body += b"\0\0"
    colors = np.frombuffer(bytes(picture.getpalette() or ()), np.uint8).reshape(-1, 3)[:, ::-1]
    palette = np.pad(colors, ((0, 0), (0, 1))).tobytes()
    data = bmp_by_hand(body + b"\0\1", WIDTH, HEIGHT, 8, 1, palette=palette)
    return Encoded(format="bmp", data=data, pixels=few_colors())


def ico() -> Encoded:
    """Two sizes; the larger one as an embedded PNG."""
    picture = Image.fromarray(transparent())
    data = pillow(picture, "ICO", sizes=[(48, 32), (WIDTH, HEIGHT)])
    return Encoded(format="ico", data=data, pixels=transparent())


def ico_bitmap() -> Encoded:
    """24 bits and a mask."""
    hard = transparent()
    hard[..., 3] = np.where(hard[..., 3] > 127, 255, 0)
    mask = np.packbits(np.pad(hard[::-1, :, 3] == 0, ((0, 0), (0, -WIDTH % 32))), axis=1).tobytes()
    rows = np.ascontiguousarray(hard[::-1, :, 2::-1]).tobytes()
    header = struct.pack("<IiiHHIIiiII", 40, WIDTH, HEIGHT * 2, 1, 24, 0, len(rows) + len(mask), 0, 0, 0, 0)
    body = header + rows + mask
    entry = struct.pack("<BBBBHHII", WIDTH, HEIGHT, 0, 0, 1, 24, len(body), 22)
    return Encoded(format="ico", data=struct.pack("<HHH", 0, 1, 1) + entry + body, pixels=hard)


def psd() -> Encoded:
    data = psd_by_hand(np.moveaxis(photo(), -1, 0), 3, rle=True, resources=psd_resource(1039, profile()))
    return Encoded(format="psd", data=data, pixels=photo(), profile=profile())


def psd_alpha() -> Encoded:
    """As Photoshop stores it: the colors blended onto white."""
    rgba = transparent().astype(np.float64)
    alpha = rgba[..., 3:] / 255
    matted = np.rint(rgba[..., :3] * alpha + 255 * (1 - alpha))
    planes = np.moveaxis(np.concatenate((matted, rgba[..., 3:]), axis=-1).astype(np.uint8), -1, 0)
    return Encoded(
        format="psd",
        data=psd_by_hand(planes, 3, transparent_layers=True),
        pixels=transparent(),
        tolerance=0.002,
    )


def psd_gray() -> Encoded:
    return Encoded(format="psd", data=psd_by_hand(gray()[None], 1), pixels=gray())


def psd_deep() -> Encoded:
    return Encoded(format="psd", data=psd_by_hand(np.moveaxis(deep(), -1, 0), 3), pixels=deep())


def psd_cmyk() -> Encoded:
    planes = 255 - np.moveaxis(inks(), -1, 0)
    return Encoded(format="psd", data=psd_by_hand(planes, 4), pixels=printed(), space="cmyk")


def psd_lab() -> Encoded:
    lab = vips(photo()).colourspace("lab").numpy().astype(np.float64)
    planes = np.rint(np.moveaxis(lab * (2.55, 1, 1) + (0, 128, 128), -1, 0)).astype(np.uint8)
    return Encoded(format="psd", data=psd_by_hand(planes, 9), pixels=photo(), tolerance=0.02, space="lab")


_DRAWING = """<svg xmlns="http://www.w3.org/2000/svg" width="96" height="64" viewBox="0 0 96 64">
<rect x="8" y="8" width="40" height="48" fill="#ff0000"/>
<rect x="48" y="16" width="32" height="32" fill="#0000ff" fill-opacity="0.6"/></svg>"""


def svg() -> Encoded:
    pixels = np.zeros((HEIGHT, WIDTH, 4), np.uint8)
    pixels[8:56, 8:48] = (255, 0, 0, 255)
    pixels[16:48, 48:80] = (0, 0, 255, 153)
    return Encoded(format="svg", data=_DRAWING.encode(), pixels=pixels)


def _by_pillow(row: type[Format]) -> Encoded:
    """The photograph in a format that has no function of its own here, as Pillow writes it."""
    data = pillow(photo(), row.title)
    return Encoded(format=row.name, data=data, pixels=photo(), tolerance=0.0 if row.lossless else 0.02)


_MAKERS = (
    jpeg, jpeg_progressive, jpeg_gray, jpeg_cmyk, jpeg_oriented, jp2, jp2_alpha, jp2_deep,
    jp2_twelve_bits, png, png_gray, png_bilevel, png_palette, png_palette_alpha, png_alpha,
    png_gray_alpha, png_deep, png_deep_gray, png_deep_gray_alpha, png_interlaced, apng, apng_deep,
    apng_disposals, gif, gif_animated,
    gif_disposals, webp, webp_lossless, webp_animated, heic, heic_alpha, heic_ten_bits, avif,
    avif_ten_bits, avif_animated, jxl, jxl_lossy, jxl_gray,
    jxl_alpha, jxl_deep, jxl_twelve_bits, jxl_animated, tiff, tiff_lzw, tiff_deep, tiff_alpha,
    tiff_cmyk, tiff_bilevel, tiff_palette,
    tiff_lab, tiff_tiled, tiff_tiled_planes, tiff_pyramid, tiff_big, tiff_float, bmp, bmp_palette,
    bmp_gray, bmp_bilevel, bmp_alpha, bmp_sixteen_bits, bmp_rle, ico, ico_bitmap, psd, psd_alpha,
    psd_gray, psd_deep, psd_cmyk, psd_lab, svg,
)  # fmt: skip
_MADE = {by_name(maker.__name__.partition("_")[0]) for maker in _MAKERS}

VARIANTS: dict[str, Callable[[], Encoded]] = {
    **{maker.__name__: maker for maker in _MAKERS},
    **{name: functools.partial(_by_pillow, row) for name, row in FORMATS.items() if row not in _MADE},
}


@functools.cache
def encoded(name: str) -> Encoded:
    """The variant of that name, made once a session."""
    return VARIANTS[name]()
