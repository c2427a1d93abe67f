"""SSIMULACRA2, version 2.1: how alike two pictures look to people, trained on their judgments.

Cloudinary and Jon Sneyers, https://github.com/cloudinary/ssimulacra2. Both pictures are compared in XYB, the
color space of JPEG XL, at up to six scales: by structure, by edges that were added, and by edges that were
lost, each as a mean and as a fourth power mean. The blur is a Gaussian of 11 taps, which beyond the left and
right edges meets zeros and beyond the others a mirror, as in the Python package of that name.

100 is the same picture; at 90 the difference cannot be seen, at 70 it is hard to see, and 50 is medium
quality.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float32]

_SMALLEST_SIDE = 8
_SCALES = 6
_SIGMA = 1.5
_RADIUS = 5
_STABILITY = 0.0009
_STRIP_SAMPLES = 1 << 16
"""Samples of a plane that are computed together, so that all that is computed of them stays in the cache."""

_ABSORBANCE = (
    (0.30, 0.622, 0.078),
    (0.23, 0.692, 0.078),
    (0.24342268924547819, 0.20476744424496821, 0.55180986650955360),
)
"""From linear RGB to the responses of the cones."""
_BIAS = 0.0037930732552754493

_TO_CONES = np.array(_ABSORBANCE, np.float32).T.copy()
_LEVELS = np.arange(256) / 255
_LINEAR = np.where(_LEVELS <= 0.04045, _LEVELS / 12.92, ((_LEVELS + 0.055) / 1.055) ** 2.4).astype(np.float32)
_TAPS = np.exp(-0.5 * (np.arange(-_RADIUS, _RADIUS + 1) / _SIGMA) ** 2)
_TAPS = (_TAPS / _TAPS.sum()).astype(np.float32)

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
class _Scale:
    """An original at one scale: its planes X, Y and B, blurred ones, and blurred squares."""

    planes: tuple[_Floats, ...]
    means: tuple[_Floats, ...]
    squares: tuple[_Floats, ...]


@attrs.frozen(eq=False)
class Original:
    """A picture that others are compared with; it needs 48 bytes for each pixel."""

    _scales: tuple[_Scale, ...]

    @classmethod
    def of(cls, pixels: NDArray[np.uint8]) -> Original:
        """Return an original of sRGB pixels: height x width x 3, both sides of at least 8 pixels."""
        scales = []
        for planes in _scales_of(pixels):
            squares = tuple(_blur(plane * plane) for plane in planes)
            scales.append(_Scale(planes, tuple(map(_blur, planes)), squares))
        return cls(tuple(scales))

    def score(self, pixels: NDArray[np.uint8]) -> float:
        """Return the score of a picture of the same size: at most 100, and below 0 for very bad ones."""
        total = 0.0
        for number, (scale, planes) in enumerate(zip(self._scales, _scales_of(pixels), strict=True)):
            for channel, plane in enumerate(planes):
                original = scale.planes[channel], scale.means[channel], scale.squares[channel]
                total += _difference(*original, plane, _WEIGHTS[channel * len(self._scales) + number])
        total *= 0.9562382616834844
        total = 2.326765642916932 * total - 0.020884521182843837 * total**2 + 6.248496625763138e-05 * total**3
        return 100.0 - 10.0 * total**0.6276336467831387 if total > 0 else 100.0


def _difference(x: _Floats, mean_x: _Floats, square_x: _Floats, y: _Floats, weights: _Weights) -> float:
    """Return the weighted differences of a plane of an original and of another picture."""
    sums = np.zeros((2, 3))
    height = x.shape[0]
    rows = max(1, _STRIP_SAMPLES // x.shape[1])
    for top in range(0, height, rows):
        first, last = max(0, top - _RADIUS), min(height, top + rows + _RADIUS)
        near_x, near_y = x[first:last], y[first:last]
        blurred = (_blur(plane)[top - first :][:rows] for plane in (near_y, near_y * near_y, near_x * near_y))
        part = slice(top, top + rows)
        mean_y, square_y, product = map(_without_margins, blurred)
        plane_x, plane_y, mean = (_without_margins(plane[part]) for plane in (x, y, mean_x))
        maps = (
            _structure_lost(mean, _without_margins(square_x[part]), mean_y, square_y, product),
            *_edges_changed(plane_x, mean, plane_y, mean_y),
        )
        for kind, values in enumerate(maps):
            sums[0, kind] += values.sum(dtype=np.float64)
            values *= values
            sums[1, kind] += np.vdot(values, values)
    means = sums / (height * (x.shape[1] - 2 * _RADIUS))
    means[1] **= 0.25
    return float((means * weights).sum())


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


def _scales_of(pixels: NDArray[np.uint8]) -> Iterator[tuple[_Floats, ...]]:
    """Yield the planes X, Y and B of a picture at each scale, with margins of zeros at the left and right."""
    linear = _LINEAR[pixels]
    for number in range(_SCALES):
        if min(linear.shape[:2]) < _SMALLEST_SIDE:
            return
        if number:
            linear = _halved(linear)
            if min(linear.shape[:2]) < _SMALLEST_SIDE:
                return
        yield _xyb(linear)


def _halved(linear: _Floats) -> _Floats:
    """Return the means of 2 x 2 pixels, at odd edges of those that there are."""
    height, width = linear.shape[:2]
    if height % 2 or width % 2:
        linear = np.pad(linear, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    halved = linear[0::2, 0::2] + linear[1::2, 0::2]
    halved += linear[0::2, 1::2]
    halved += linear[1::2, 1::2]
    halved *= 0.25
    return halved


def _xyb(linear: _Floats) -> tuple[_Floats, ...]:
    """Return the planes of positive XYB of linear RGB, with margins."""
    height, width = linear.shape[:2]
    planes = tuple(np.zeros((height, width + 2 * _RADIUS), np.float32) for _ in range(3))
    rows = max(1, _STRIP_SAMPLES // (3 * width))
    for top in range(0, height, rows):
        part = slice(top, top + rows)
        cones = linear[part].reshape(-1, 3) @ _TO_CONES
        cones += _BIAS
        shape = linear[part].shape[:2]
        long, medium, short = (np.cbrt(np.ascontiguousarray(cones[:, i])).reshape(shape) for i in range(3))
        bias = _BIAS ** (1 / 3)
        x, y, b = map(_without_margins, (plane[part] for plane in planes))
        np.subtract(long, medium, out=x)
        x *= 7
        x += 0.42
        long += medium
        long *= 0.5
        np.add(long, 0.01 - bias, out=y)
        short -= long
        np.add(short, 0.55, out=b)
    return planes


def _without_margins(plane: _Floats) -> _Floats:
    return plane[:, _RADIUS:-_RADIUS]


def _blur(plane: _Floats) -> _Floats:
    """Return a plane blurred; beyond the top and the bottom it is mirrored. Margins are not to be used."""
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
