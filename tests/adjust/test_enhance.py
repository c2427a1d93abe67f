"""``auto.enhance``: photographs that were spoiled come nearer to what they were."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import pyvips
import skimage.data

from imgsvc_core.pixels.enhance import measure
from imgsvc_core.pixels.pointwise import apply_blocks
from imgsvc_core.plan.color.grounds import flat_ground
from imgsvc_core.plan.color.steps import CurveStep, VibranceStep
from imgsvc_core.plan.folding import LutBlock, MatrixBlock, fold
from imgsvc_core.spec import Adjust
from tests.adjust.exact import decode, encode
from tests.adjust.grounds import pictures
from tests.support.colors import color_steps
from tests.support.photos import Pixels, as_pixels, as_vips, cut_out, deep, photo, ramp

CASTS = {
    "warm": (1.25, 0.97, 0.7),
    "cool": (0.75, 1.02, 1.35),
    "green": (0.9, 1.05, 0.85),
    "magenta": (1.15, 0.93, 1.2),
}
STOPS = (-1.5, -1, -0.5, -0.25, 0.25, 0.5, 1, 1.5)
PHOTOS = ("astronaut", "cat", "coffee", "rocket", "retina")


def spoiled(pixels: Pixels, gain: float | tuple[float, ...]) -> Pixels:
    light = decode(pixels / 255) * np.asarray(gain)
    result: Pixels = np.rint(np.clip(encode(light), 0, 1) * 255).astype(np.uint8)
    return result


def enhanced(pixels: Pixels) -> Pixels:
    image = as_vips(pixels)
    gray = image.bands < 3
    return as_pixels(apply_blocks(image, fold(measure(image), gray=gray)))


def difference(a: Pixels, b: Pixels) -> float:
    """Mean CIEDE2000 of every third row."""
    from skimage.color import deltaE_ciede2000, rgb2lab  # here, as it takes a third of a second

    return float(deltaE_ciede2000(rgb2lab(a[::3]), rgb2lab(b[::3])).mean())  # type: ignore[no-untyped-call]


def softened(pixels: Pixels) -> Pixels:
    """Half the contrast, about mid gray."""
    result: Pixels = np.rint(pixels * 0.5 + 255 / 4).astype(np.uint8)
    return result


def before_and_after(name: str, gain: float | tuple[float, ...]) -> tuple[float, float]:
    original = photo(name)[::4, ::4]
    bad = spoiled(original, gain)
    return difference(bad, original), difference(enhanced(bad), original)


@pytest.mark.parametrize("depth", [8, 16])
def test_a_gray_ramp_is_unchanged(depth: int) -> None:
    tones = ramp(256, 8, depth=depth)
    assert measure(as_vips(tones)) == ()
    assert measure(as_vips(np.dstack([tones] * 3))) == ()


@pytest.mark.parametrize("tone", [0, 1, 90, 255])
def test_a_flat_picture_keeps_its_color(tone: int) -> None:
    flat = np.full((20, 20, 3), tone, np.uint8)
    assert (enhanced(flat) == flat).all()


@pytest.mark.parametrize("name", PHOTOS)
@pytest.mark.parametrize("stops", [-1.5, -1])
def test_underexposed_photographs_come_much_nearer(name: str, stops: float) -> None:
    before, after = before_and_after(name, 2**stops)
    assert after < 0.5 * before


@pytest.mark.parametrize("name", PHOTOS)
@pytest.mark.parametrize("stops", [1, 1.5])
def test_overexposed_photographs_come_nearer(name: str, stops: float) -> None:
    before, after = before_and_after(name, 2**stops)
    if name == "rocket":  # at night nothing tells that the few lights are brighter than they were
        assert after == before
    else:
        assert after < before


SPOILING: dict[str, Callable[[Pixels], Pixels]] = {
    **{f"{stops:+} stops": partial(spoiled, gain=2.0**stops) for stops in STOPS},
    **{cast: partial(spoiled, gain=gain) for cast, gain in CASTS.items()},
    "half the contrast": softened,
    "nothing": np.copy,
}
SET = {name: photo(name)[::4, ::4] for name in (*PHOTOS, "galaxies")} | {
    "page": np.dstack([skimage.data.page()[::2, ::2]] * 3)  # type: ignore[no-untyped-call]
}


@pytest.mark.parametrize("how", SPOILING)
@pytest.mark.parametrize("name", SET)
def test_nothing_ever_gets_worse(name: str, how: str) -> None:
    original = SET[name]
    bad = SPOILING[how](original)
    assert difference(enhanced(bad), original) <= difference(bad, original) + 0.75


@pytest.mark.parametrize("name", SET)
def test_low_contrast_comes_much_nearer(name: str) -> None:
    bad = softened(SET[name])
    assert difference(enhanced(bad), SET[name]) < 0.65 * difference(bad, SET[name])


def test_a_soft_ramp_is_stretched_about_mid_gray() -> None:
    soft = enhanced(np.rint(64 + ramp(256, 8) * (128 / 255)).astype(np.uint8))
    assert (soft.min(), soft.max()) == (0, 255)
    assert np.abs(np.sort(soft[0]) - ramp(256, 8)[0].astype(int)).max() <= 2


def test_haze_over_the_dark_end_is_taken_away() -> None:
    original = photo("astronaut")[::4, ::4]
    hazy = np.rint(76 + original * (179 / 255)).astype(np.uint8)
    assert difference(enhanced(hazy), original) < 0.4 * difference(hazy, original)


@pytest.mark.parametrize("cast", CASTS)
def test_casts_come_nearer(cast: str) -> None:
    before, after = before_and_after("astronaut", CASTS[cast])
    assert after < 0.75 * before


@pytest.mark.parametrize("name", ["coffee", "retina"])
@pytest.mark.parametrize("cast", CASTS)
def test_where_no_cast_is_sure_nothing_gets_worse(name: str, cast: str) -> None:
    before, after = before_and_after(name, CASTS[cast])
    assert after <= before + 0.02


def test_a_good_photograph_is_hardly_changed() -> None:
    original = photo("astronaut")[::2, ::2]
    assert difference(enhanced(original), original) < 1.5


def test_gray_photographs_stay_gray() -> None:
    dark = spoiled(photo("camera"), 0.4)
    result = enhanced(dark)
    assert result.shape == dark.shape
    before, after = (np.abs(photo("camera") - one.astype(float)).mean() for one in (dark, result))
    assert after < 0.75 * before


def test_measures_16_bits_as_8() -> None:
    dark = spoiled(photo("coffee"), 0.4)
    (coarse,), (fine,) = (measure(as_vips(kind(dark))) for kind in (np.copy, deep))
    assert isinstance(coarse, CurveStep)
    assert isinstance(fine, CurveStep)
    assert coarse.name == fine.name == "linear_gain"
    assert coarse.values == pytest.approx(fine.values, rel=0.01)


def test_transparent_pixels_do_not_count() -> None:
    dark = spoiled(photo("astronaut"), 0.4)
    alpha = np.full(dark.shape[:2], 255, np.uint8)
    alpha[:256] = 0
    white_above = np.dstack([dark, alpha])
    white_above[:256, :, :3] = 255
    assert measure(as_vips(white_above)) == measure(as_vips(np.ascontiguousarray(dark[256:])))


@pytest.mark.parametrize("hidden", ["one color", "noise"])
@pytest.mark.parametrize("rows", [4, 6])
def test_invisible_pixels_are_no_ground_and_end_none(rows: int, hidden: str) -> None:
    shown = spoiled(photo("cat")[:120], 0.4)
    shown[-rows:] = 120  # by the part that they are of the visible pixels, 6 rows are a ground and 4 are none
    below = np.full((180, *shown.shape[1:]), 120, np.uint8)
    if hidden == "noise":
        below = np.random.default_rng(1).integers(0, 256, below.shape, np.uint8)
    opaque, invisible = np.full(shown.shape[:2], 255, np.uint8), np.zeros(below.shape[:2], np.uint8)
    picture = np.dstack([np.concatenate([shown, below]), np.concatenate([opaque, invisible])])
    assert max(picture.shape) < 512  # every pixel is measured
    assert measure(as_vips(picture)) == measure(as_vips(np.dstack([shown, opaque])))


def test_a_fully_transparent_picture_is_left_alone() -> None:
    assert measure(as_vips(np.zeros((9, 9, 4), np.uint8))) == ()


def test_folds_with_the_adjustments() -> None:
    dull = spoiled(
        as_pixels(apply_blocks(as_vips(photo("cat")), fold(color_steps(Adjust(saturation=-60))))), 0.5
    )
    steps = measure(as_vips(dull))
    assert isinstance(steps[-1], VibranceStep)
    lut, matrix = fold((*steps, *color_steps(Adjust(saturation=20, invert=True))))
    assert isinstance(lut, LutBlock)
    assert isinstance(matrix, MatrixBlock)


GROUNDS = pictures()


@pytest.mark.parametrize("name", GROUNDS)
def test_what_lies_on_a_flat_ground_is_meant_as_it_is(name: str) -> None:
    original = GROUNDS[name]()
    if original.ndim == 2:
        assert np.abs(enhanced(original).reshape(original.shape).astype(int) - original).max() < 4
    else:
        assert difference(enhanced(original)[::3, ::3], original[::3, ::3]) < 1.2


def noisy(color: tuple[int, ...], noise: float, share: float, *, colored: bool) -> tuple[Pixels, Pixels]:
    """A cat on a ground with noise, and where the cat is."""
    cat = photo("cat")[::2, ::2]
    height, width = (round(side / np.sqrt(1 - share)) for side in cat.shape[:2])
    bands = 3 if colored else 1
    grain = np.random.default_rng(0).normal(0, noise, (height, width, bands))
    pixels = np.rint(np.clip(np.array(color) + grain, 0, 255)).astype(np.uint8)
    top, left = (height - cat.shape[0]) // 2, (width - cat.shape[1]) // 2
    place = np.zeros((height, width), bool)
    place[top : top + cat.shape[0], left : left + cat.shape[1]] = True
    pixels[place] = cat.reshape(-1, 3)
    return pixels, place


NOISY = [
    ((level,) * 3, noise, share, colored)
    for level in (240, 245, 250, 252, 253, 254)
    for noise, share, colored in ((1, 0.9, True), (1.5, 0.75, False), (2.5, 0.4, True), (4, 0.6, False))
]
NOISY += [
    (color, noise, share, True)
    for color in ((250, 240, 225), (230, 200, 190))
    for noise, share in ((0, 0.2), (2.5, 0.2), (4, 0.6))
]


@pytest.mark.parametrize(("color", "noise", "share", "colored"), NOISY)
def test_what_lies_on_a_bright_noisy_ground_is_meant_as_it_is(
    color: tuple[int, ...], noise: float, share: float, colored: bool
) -> None:
    """Lossless photographs of products: noise must not be taken for clipped highlights."""
    pixels, place = noisy(color, noise, share, colored=colored)
    assert difference(enhanced(pixels)[place], pixels[place]) < 1.2


SWEEPS = [
    (body, ends, noise, quality)
    for body in ((150, 150, 150), (90, 95, 100), (225, 190, 185), (180, 205, 225))
    for ends in ((255, 246), (252, 235), (245, 220))
    for noise, quality in ((1.5, 90), (1, None))
]


@pytest.mark.parametrize(("body", "ends", "noise", "quality"), SWEEPS)
def test_what_stands_before_a_sweep_is_meant_as_it_is(
    body: tuple[int, ...], ends: tuple[int, int], noise: float, quality: int | None
) -> None:
    """The light falls off along the ground of a studio, so it has no one color."""
    ground = np.linspace(*ends, 400)[:, None, None] * np.ones((1, 600, 3))
    rows, columns = np.mgrid[:400, :600]
    mug = ((columns - 300) / 110) ** 2 + ((rows - 200) / 140) ** 2 < 1
    shade = np.linspace(1.1, 0.8, 600)[None, :, None]
    drawn = np.where(mug[..., None], np.array(body) * shade, ground)
    drawn += np.random.default_rng(0).normal(0, noise, drawn.shape)
    pixels = np.rint(np.clip(drawn, 0, 255)).astype(np.uint8)
    if quality:
        data = as_vips(pixels).jpegsave_buffer(Q=quality)
        pixels = pyvips.Image.jpegload_buffer(data).numpy()
    assert (enhanced(pixels) == pixels).all()
    opaque = np.full(pixels.shape[:2], 255, np.uint8)
    assert measure(as_vips(np.dstack([pixels, opaque]))) == ()


def test_stripes_that_end_at_the_edges_are_no_bright_ground() -> None:
    """They are smooth along themselves only."""
    rows, columns = np.mgrid[:120, :160]
    across = np.minimum(rows, 119 - rows) < np.minimum(columns, 159 - columns)
    pixels = np.where(np.where(across, columns, rows) // 3 % 2, 220, 190).astype(np.uint8)
    pixels[20:100, 20:140] = np.linspace(40, 120, 120)
    assert measure(as_vips(pixels))


@pytest.mark.parametrize("paper", [(244, 236, 216), (255, 228, 236), (255, 239, 192)])
def test_a_page_with_a_photograph_keeps_its_color(paper: tuple[int, ...]) -> None:
    pixels = np.full((600, 900, 3), paper, np.uint8)
    picture = photo("cat")[::2, ::2][:400, :500]
    pixels[60 : 60 + picture.shape[0], 60 : 60 + picture.shape[1]] = picture
    page = pyvips.Image.jpegload_buffer(as_vips(pixels).jpegsave_buffer(Q=80)).numpy()
    assert (enhanced(page) == page).all()


def test_the_edges_of_a_flat_ground_belong_to_it() -> None:
    """They would count as highlights of what lies on the ground."""
    pixels, place = noisy((230, 200, 190), 0, 0.2, colored=True)
    inside, ground = flat_ground(pixels / 255)
    assert not inside[~place].all()
    assert ground[~place].all()
    assert not ground[place].any()


def test_a_gray_ground_stays_gray() -> None:
    """A brown cup on gray paper: its highlights are no cast of the light."""
    cup = cut_out("coffee").astype(float)
    coverage = cup[..., 3:] / 255
    pixels = np.rint(cup[..., :3] * coverage + 216 * (1 - coverage)).astype(np.uint8)[::2, ::2]
    ground = enhanced(pixels)[(pixels == 216).all(axis=2)].astype(int)
    assert len(ground) > 1000
    assert np.ptp(ground, axis=1).max() <= 1


@pytest.mark.parametrize("tone", [0, 255])
def test_a_margin_does_not_count(tone: int) -> None:
    for spoiling in (softened, partial(spoiled, gain=CASTS["warm"])):
        bad = spoiling(photo("astronaut"))[::2, ::2]
        pixels = np.pad(bad, ((0, 0), (60, 60), (0, 0)), constant_values=tone)
        assert len(flat_ground(pixels / 255)[0][:, :58].nonzero()[0]) > 0.95 * 58 * len(bad)
        alone = difference(enhanced(bad), photo("astronaut")[::2, ::2])
        framed = difference(enhanced(pixels)[:, 60:-60], photo("astronaut")[::2, ::2])
        assert framed < max(1.15 * alone, difference(bad, photo("astronaut")[::2, ::2]) + 0.75)


@pytest.mark.parametrize("name", PHOTOS)
def test_photographs_have_no_ground_but_black_and_white(name: str) -> None:
    pixels = photo(name)[::4, ::4]
    for bad in (pixels, spoiled(pixels, 2.0), spoiled(pixels, 0.4)):
        found = bad[flat_ground(bad / 255)[0]]
        assert ((found < 10) | (found > 250)).all()


def test_faint_print_does_not_make_paper_dark() -> None:
    print_ = np.full((400, 300, 3), 225.0)
    print_[50:350:20, 30:270] = 120
    noise = np.random.default_rng(1).normal(0, 3, (400, 300, 1))
    faint = np.clip(print_ + noise, 0, 255).astype(np.uint8)
    result = enhanced(faint)
    assert np.median(result) > 220
    assert result[55:65].mean() > result[50:350:20, 30:270].mean() + 100


@pytest.mark.parametrize(("level", "share", "found"), [(0, 0.1, False), (0, 0.3, True), (99, 0.1, True)])
def test_a_small_black_area_is_no_ground(level: int, share: float, found: bool) -> None:
    """Photographs have such areas where they are underexposed."""
    pixels = np.random.default_rng(0).integers(0, 256, (100, 100, 3)).astype(np.uint8)
    pixels[: round(100 * share)] = level
    assert flat_ground(pixels / 255)[0].any() == found


def test_thin_black_letters_on_paper_are_not_taken_for_haze() -> None:
    """Averaged, they would be gray and the darkest tone of the page."""
    page = np.full((1600, 1200, 3), 250.0)
    for left in range(100, 1100, 8):
        page[100:1500, left] = 10
    paper = np.clip(page + np.random.default_rng(1).normal(0, 3, (1600, 1200, 1)), 0, 255).astype(np.uint8)
    assert not [step for step in measure(as_vips(paper)) if step.label.startswith("levels")]
