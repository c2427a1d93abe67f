"""SSIMULACRA2, version 2.1: how alike two pictures look to people, trained on their judgments.

Cloudinary and Jon Sneyers, https://github.com/cloudinary/ssimulacra2. Both pictures are compared in XYB, the
color space of JPEG XL, at up to six scales: by structure, by edges that were added, and by edges that were
lost, each as a mean and as a fourth power mean. The blur is a Gaussian of 11 taps, which beyond the left and
right edges meets zeros and beyond the others a mirror, as in the Python package of that name.

100 is the same picture; at 90 the difference cannot be seen, at 70 it is hard to see, and 50 is medium
quality.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from imgsvc_core._runtime.opencv import opencv_if_it_pays
from imgsvc_core.plan.color.curves import decode

_Floats = NDArray[np.float32]

_SMALLEST_SIDE = 8
_SCALES = 6
_SIGMA = 1.5
_RADIUS = 5
_STABILITY = 0.0009
_STRIP_SAMPLES = 1 << 16
"""Samples of a plane that are computed together, so that all that is computed of them stays in the cache."""

_X, _Y, _B = range(3)
_ABSORBANCE = np.array(
    [
        (0.30, 0.622, 0.078),
        (0.23, 0.692, 0.078),
        (0.24342268924547819, 0.20476744424496821, 0.55180986650955360),
    ],
    np.float32,
)
"""From linear RGB to the responses of the cones."""
_BIAS = np.float32(0.0037930732552754493)

_LINEAR = decode(np.arange(256) / 255).astype(np.float32)
_TAPS = np.exp(-0.5 * (np.arange(-_RADIUS, _RADIUS + 1) / _SIGMA) ** 2)
_TAPS = (_TAPS / _TAPS.sum()).astype(np.float32)
_LEAST_WEIGHT = 0.0025
_PART = 2_000_000  # pixels of a part of a large picture
_ALIGNED = 2 ** (_SCALES - 1)  # rows that become one of the smallest scale
_MARGIN = 6 * _ALIGNED  # rows around a part, more than the blur of the smallest scale needs

_Weights = tuple[tuple[float, float, float], tuple[float, float, float]]
_WEIGHTS: tuple[_Weights, ...] = (
    ((0.0, 0.0007376606707406586, 0.0), (0.0, 0.0007793481682867309, 0.0)),
    ((0.0, 0.0004371155730107379, 0.0), (1.1041726426657346, 0.00066284834129271, 0.00015231632783718752)),
    ((0.0, 0.0016406437456599754, 0.0), (1.8422455520539298, 11.441172603757666, 0.0)),
    ((0.0007989109436015163, 0.000176816438078653, 0.0), (1.8787594979546387, 10.94906990605142, 0.0)),
    (
        (0.0007289346991508072, 0.9677937080626833, 0.0),
        (0.00014003424285435884, 0.9981766977854967, 0.00031949755934435053),
    ),
    ((0.0004550992113792063, 0.0, 0.0), (0.0013648766163243398, 0.0, 0.0)),
    ((0.0, 0.0, 0.0), (7.466890328078848, 0.0, 17.445833984131262)),
    ((0.0006235601634041466, 0.0, 0.0), (6.683678146179332, 0.00037724407979611296, 1.027889937768264)),
    ((225.20515300849274, 0.0, 0.0), (19.213238186143016, 0.0011401524586618361, 0.001237755635509985)),
    ((176.39317598450694, 0.0, 0.0), (24.43300999870476, 0.28520802612117757, 0.0004485436923833408)),
    ((0.0, 0.0, 0.0), (34.77906344483772, 44.835625328877896, 0.0)),
    ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
    ((0.0, 0.0008680556573291698, 0.0), (0.0, 0.0, 0.0)),
    ((0.0, 0.0005313191874358747, 0.0), (0.00016533814161379112, 0.0, 0.0)),
    ((0.0, 0.0, 0.0), (0.0004179171803251336, 0.0017290828234722833, 0.0)),
    ((0.0020827005846636437, 0.0, 0.0), (8.826982764996862, 23.19243343998926, 0.0)),
    (
        (95.1080498811086, 0.9863978034400682, 0.9834382792465353),
        (0.0012286405048278493, 171.2667255897307, 0.9807858872435379),
    ),
    ((0.0, 0.0, 0.0), (0.0005130064588990679, 0.0, 0.00010854057858411537)),
)
"""Weights of structure, added edges and lost edges: of their means, and of their fourth power means.

The rows are for each scale of X, of Y and of B. Pictures with fewer scales use the first rows, as the
original does.
"""


@attrs.frozen(eq=False)
class _Plane:
    """X, Y or B of an original at one scale, blurred, and its square blurred, with its weights."""

    samples: _Floats
    means: _Floats
    squares: _Floats
    weights: _Weights


_Sums = dict[tuple[int, int], NDArray[np.float64]]
"""Sums of the differences of a plane by number of its scale and of its channel, see `_difference`."""


@attrs.frozen(eq=False)
class Original:
    """A picture that others are compared with, or some rows of it; it needs 20 bytes for each pixel."""

    _count: int
    _scales: tuple[dict[int, _Plane], ...]
    _rows: tuple[int, int]

    @classmethod
    def of(
        cls, pixels: NDArray[np.uint8], *, rows: tuple[int, int] | None = None, count: int | None = None
    ) -> Original:
        """Return an original of sRGB pixels: height x width x 3, both sides of at least 8 pixels.

        Of a part of a picture only the ``rows`` from the first to before the last are compared, in as many
        scales as the whole picture has.
        """
        count = _count_scales(*pixels.shape[:2]) if count is None else count
        wanted = [_weighted(number, count) for number in range(count)]
        scales = []
        for weights, planes in zip(wanted, _scales_of(pixels, wanted), strict=True):
            scales.append({
                channel: _Plane(plane, _blur(plane), _blur(plane * plane), weights[channel])
                for channel, plane in planes.items()
            })  # fmt: skip
        return cls(count, tuple(scales), rows or (0, pixels.shape[0]))

    def score(self, pixels: NDArray[np.uint8]) -> float:
        """Return the score of a picture of the same size: at most 100, and below 0 for very bad ones."""
        return _score(self._count, self.sums(pixels))

    def sums(self, pixels: NDArray[np.uint8]) -> _Sums:
        """Return the sums of differences of a picture or part of the same size."""
        found: _Sums = {}
        for number, planes in enumerate(_scales_of(pixels, self._scales)):
            top, bottom = (-(-row // 2**number) for row in self._rows)
            for channel, original in self._scales[number].items():
                found[number, channel] = _difference(original, planes[channel], top, bottom)
        return found


def score_by_parts(original: NDArray[np.uint8], shown: NDArray[np.uint8]) -> float:
    """Return the same score as `Original.score` in little memory, for pictures of any size."""
    height, width = original.shape[:2]
    count = _count_scales(height, width)
    step = max(1, _PART // width // _ALIGNED) * _ALIGNED
    sums: _Sums = {}
    for top in range(0, height, step):
        first, last = max(0, top - _MARGIN), min(height, top + step + _MARGIN)
        rows = top - first, min(height, top + step) - first
        part = Original.of(original[first:last], rows=rows, count=count)
        for key, found in part.sums(shown[first:last]).items():
            sums[key] = sums.get(key, 0) + found
    return _score(count, sums)


def _score(count: int, sums: _Sums) -> float:
    total = 0.0
    for (number, channel), found in sums.items():
        means = found[:2] / found[2]
        means[1] **= 0.25
        total += float((means * _WEIGHTS[channel * count + number]).sum())
    total *= 0.9562382616834844
    total = 2.326765642916932 * total - 0.020884521182843837 * total**2 + 6.248496625763138e-05 * total**3
    return 100.0 - 10.0 * total**0.6276336467831387 if total > 0 else 100.0


def _count_scales(height: int, width: int) -> int:
    count, side = 0, min(height, width)
    while count < _SCALES and side >= _SMALLEST_SIDE:
        count, side = count + 1, (side + 1) // 2
    return count


def _weighted(number: int, count: int) -> dict[int, _Weights]:
    """Return the weights of each channel of a scale that matters."""
    weights = {channel: _WEIGHTS[channel * count + number] for channel in range(3)}
    return {channel: item for channel, item in weights.items() if np.max(item) >= _LEAST_WEIGHT}


def _difference(original: _Plane, y: _Floats, start: int, stop: int) -> NDArray[np.float64]:
    """Return how a plane of another picture differs in some rows: sums, sums of fourth powers, and samples.

    Each is told for structure, added edges and lost edges.
    """
    x, weights = original.samples, np.array(original.weights)
    structure, edges = weights[:, 0].max() >= _LEAST_WEIGHT, weights[:, 1:].max() >= _LEAST_WEIGHT
    height, width = x.shape
    stop = min(stop, height)
    sums = np.zeros((3, 3))
    sums[2] = (stop - start) * (width - 2 * _RADIUS)
    rows = max(8, _STRIP_SAMPLES // width)
    for top in range(start, stop, rows):
        bottom = min(top + rows, stop)
        first, last = max(0, top - _RADIUS), min(height, bottom + _RADIUS)
        near_y, part, inner = y[first:last], slice(top, bottom), slice(top - first, bottom - first)
        mean_x, mean_y = _inner(original.means, part), _inner(_blur(near_y), inner)
        if structure:
            square_x, square_y = _inner(original.squares, part), _inner(_blur(near_y * near_y), inner)
            product = _inner(_blur(x[first:last] * near_y), inner)
            _add(sums[:, 0], _structure_lost(mean_x, square_x, mean_y, square_y, product))
        if edges:
            for kind, values in enumerate(
                _edges_changed(_inner(x, part), mean_x, _inner(y, part), mean_y), 1
            ):
                _add(sums[:, kind], values)
    return sums


def _add(sums: NDArray[np.float64], values: _Floats) -> None:
    """Add the sum of values, and that of their fourth powers. The values are lost."""
    sums[0] += values.sum(dtype=np.float64)
    values *= values
    sums[1] += np.vdot(values, values)


def _structure_lost(
    mean_x: _Floats, square_x: _Floats, mean_y: _Floats, square_y: _Floats, product: _Floats
) -> _Floats:
    """Return 1 - SSIM of each sample, without the denominator of the luminance, and at least 0."""
    covariance: _Floats = product - mean_x * mean_y
    covariance += covariance
    covariance += _STABILITY
    variances = square_x - mean_x * mean_x
    variances += square_y - mean_y * mean_y  # rounded as the covariance, so that equal pictures differ by 0
    variances += _STABILITY
    covariance /= variances
    apart: _Floats = mean_x - mean_y
    apart *= apart
    np.subtract(1, apart, out=apart)
    apart *= covariance
    np.subtract(1, apart, out=apart)
    np.maximum(apart, 0, out=apart)
    return apart


def _edges_changed(x: _Floats, mean_x: _Floats, y: _Floats, mean_y: _Floats) -> tuple[_Floats, _Floats]:
    """Return by how much each sample differs more from its surroundings than before, and by how much less."""
    before = np.abs(x - mean_x)
    before += 1
    after = np.abs(y - mean_y)
    after += 1
    after /= before
    after -= 1
    lost = np.maximum(-after, 0)
    return np.maximum(after, 0, out=after), lost


def _scales_of(
    pixels: NDArray[np.uint8], wanted: Sequence[Mapping[int, object]]
) -> Iterator[dict[int, _Floats]]:
    """Yield the wanted planes X, Y and B of each scale, with margins of zeros at the left and right."""
    last = max((number for number, channels in enumerate(wanted) if channels), default=-1)
    linear = _linear(pixels) if last >= 0 else np.empty(0, np.float32)
    for number, channels in enumerate(wanted):
        if 0 < number <= last:
            linear = _halved(linear)
        yield _xyb(linear, channels) if channels else {}


def _linear(pixels: NDArray[np.uint8]) -> _Floats:
    """Return linear light: 3 x height x width."""
    planes = np.empty((3, *pixels.shape[:2]), np.float32)
    cv2 = opencv_if_it_pays(pixels.size)
    for channel, plane in enumerate(planes):
        samples = np.ascontiguousarray(pixels[..., channel])
        plane[...] = _LINEAR[samples] if cv2 is None else cv2.LUT(samples, _LINEAR)
    return planes


def _halved(linear: _Floats) -> _Floats:
    """Return the means of 2 x 2 pixels, at odd edges of those that there are."""
    height, width = linear.shape[1:]
    if height % 2 or width % 2:
        linear = np.pad(linear, ((0, 0), (0, height % 2), (0, width % 2)), mode="edge")
    rows = linear[:, 0::2] + linear[:, 1::2]
    halved: _Floats = rows[:, :, 0::2] + rows[:, :, 1::2]
    halved *= 0.25
    return halved


def _xyb(linear: _Floats, channels: Collection[int]) -> dict[int, _Floats]:
    """Return the wanted planes of positive XYB of linear RGB, with margins."""
    height, width = linear.shape[1:]
    planes = {channel: np.zeros((height, width + 2 * _RADIUS), np.float32) for channel in sorted(channels)}
    cones = 3 if _B in planes else 2
    rows = max(1, _STRIP_SAMPLES // width)
    for top in range(0, height, rows):
        part = linear[:, top : top + rows]
        roots = _cube_roots(_ABSORBANCE[:cones] @ part.reshape(3, -1)).reshape(cones, -1, width)
        for channel, plane in planes.items():
            inner = _inner(plane, slice(top, top + rows))
            if channel == _X:
                np.subtract(roots[0], roots[1], out=inner)
                inner *= 7
                inner += 0.42
            else:
                np.add(roots[0], roots[1], out=inner)
                inner *= 0.5
            if channel == _Y:
                inner += 0.01 - _BIAS ** (1 / 3)
            elif channel == _B:
                np.subtract(roots[2], inner, out=inner)
                inner += 0.55
    return planes


def _cube_roots(cones: _Floats) -> _Floats:
    """Return the cube roots of the responses of cones with the bias. NumPy has vector code for these two."""
    cones += _BIAS
    np.log(cones, out=cones)
    cones *= np.float32(1 / 3)
    return np.exp(cones, out=cones)


def _inner(plane: _Floats, rows: slice) -> _Floats:
    """Return some rows of a plane without its margins."""
    return plane[rows, _RADIUS:-_RADIUS]


def _blur(plane: _Floats) -> _Floats:
    """Return a plane blurred; beyond the top and the bottom it is mirrored. Margins are not to be used."""
    cv2 = opencv_if_it_pays(plane.size)
    if cv2 is not None:
        blurred: _Floats = cv2.sepFilter2D(plane, -1, _TAPS, _TAPS, borderType=cv2.BORDER_REFLECT)
        return blurred
    mirrored = np.pad(plane, ((_RADIUS, _RADIUS), (0, 0)), mode="symmetric")
    columns = _convolved(mirrored.ravel(), plane.size, plane.shape[1])
    margin = np.zeros(_RADIUS, np.float32)
    return _convolved(np.concatenate((margin, columns, margin)), plane.size, 1).reshape(plane.shape)


def _convolved(samples: _Floats, count: int, distance: int) -> _Floats:
    """Return weighted sums of samples in a row that are ``distance`` apart."""
    result: _Floats = samples[_RADIUS * distance :][:count] * _TAPS[_RADIUS]
    for tap in range(_RADIUS):
        pair = samples[tap * distance :][:count] + samples[(2 * _RADIUS - tap) * distance :][:count]
        pair *= _TAPS[tap]
        result += pair
    return result
