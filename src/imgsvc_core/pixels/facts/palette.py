"""The main colors of a picture, by k-means in Oklab."""

from __future__ import annotations

import functools
from typing import Any

import attrs
import numpy as np

from imgsvc_core.pixels.facts.working_copy import WorkingCopy, levels_of_light, light_of_levels
from imgsvc_core.spec.facts import MOST_COLORS

_MOST_POINTS = 1200  # pixels that are looked at; shares are exact to about 3 %
_GOLDEN = (5**0.5 - 1) / 2
_ROUNDS = 3  # of k-means: more find hardly nearer colors, but others in each size of a picture
_ALIKE = 0.06  # distance in Oklab, of 1 from black to white, below which two colors are told as one
_LEAST_SHARE = 0.01

# Björn Ottosson, https://bottosson.github.io/posts/oklab/
_TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
_FROM_CONES, _FROM_LAB = np.linalg.inv(_TO_CONES), np.linalg.inv(_TO_LAB)


def palette(copy: WorkingCopy) -> list[dict[str, Any]]:
    """Return the main colors with their shares, the largest first."""
    groups = copy.once(_groups)
    return [{"color": color, "share": round(share, 3)} for color, share in groups]


def dominant(copy: WorkingCopy) -> str | None:
    """Return the color with the largest share."""
    groups = copy.once(_groups)
    return groups[0][0] if groups else None


def _groups(copy: WorkingCopy) -> list[tuple[str, float]]:
    """Return the main colors, each with its share, the largest first."""
    levels, weights = _colors(copy)
    if not len(levels):
        return []
    labs = _oklab(light_of_levels()[levels])
    means, shares = _refined(labs, weights / weights.sum(), _split(labs, weights))
    means, shares = _without_alike(means, shares)
    shares, means, counted = _counted(labs, weights / weights.sum(), means[shares >= _LEAST_SHARE])
    groups = zip(_told(levels, counted, means), shares.tolist(), strict=True)
    return sorted(groups, key=lambda group: (-group[1], group[0]))


def _colors(copy: WorkingCopy) -> tuple[Any, Any]:
    """Return the different colors of some pixels, as levels of sRGB, and how much each one counts."""
    places = _places(*copy.rgb.shape[:2])
    points = copy.rgb[places].reshape(-1, 3).astype(np.int32)
    packed = points @ (1 << 16, 1 << 8, 1)
    if copy.alpha is None:
        found, counts = np.unique(packed, return_counts=True)
        weights = counts.astype(np.float64)
    else:
        opacity = copy.alpha[places].reshape(-1)
        found, numbers = np.unique(packed[opacity > 0], return_inverse=True)
        weights = np.bincount(numbers, opacity[opacity > 0], minlength=len(found)) / 255
    return np.stack([found >> 16, found >> 8 & 255, found & 255], axis=1), weights


@functools.lru_cache(maxsize=64)
def _places(height: int, width: int) -> Any:
    """Return which pixels are looked at: all of few ones, else as many from each row and each column.

    They lie at steps of the golden ratio across: a grid would miss what lies between its lines.
    """
    if height * width <= _MOST_POINTS:
        return ...
    numbers = np.arange(_MOST_POINTS)
    return numbers * height // _MOST_POINTS, (numbers * _GOLDEN % 1 * width).astype(int)


def _split(labs: Any, weights: Any) -> Any:
    """Return means to begin with: the group with the most variance is split along its longest axis."""
    groups = [_Part.of(labs, weights)]
    while len(groups) < MOST_COLORS:
        widest = max(groups, key=lambda group: group.variance)
        if widest.variance <= 0:
            break
        groups.remove(widest)
        groups += widest.halves()
    return np.stack([group.mean for group in groups])


@attrs.frozen(eq=False)
class _Part:
    """Some colors in Oklab with their weights, their mean, and the weighted sum of their covariances."""

    labs: Any
    weights: Any
    mean: Any
    spread: Any

    @classmethod
    def of(cls, labs: Any, weights: Any) -> _Part:
        mean = weights @ labs / weights.sum()
        centered = labs - mean
        return cls(labs, weights, mean, (centered * weights[:, None]).T @ centered)

    @property
    def variance(self) -> float:
        return float(self.spread.trace()) if len(self.labs) > 1 else 0.0

    def halves(self) -> tuple[_Part, _Part]:
        """Return the colors on each side of the mean, along the longest axis."""
        axis = np.linalg.eigh(self.spread)[1][:, -1]
        above = self.labs @ axis > self.mean @ axis
        # compress takes a third of the time of an index.
        first, second = (
            _Part.of(np.compress(side, self.labs, axis=0), np.compress(side, self.weights))
            for side in (above, ~above)
        )
        return first, second


def _refined(labs: Any, weights: Any, means: Any) -> tuple[Any, Any]:
    """Return the means and shares of groups after k-means (Lloyd's algorithm)."""
    for _ in range(_ROUNDS):
        shares, means, _ = _counted(labs, weights, means)
    return means, shares


def _counted(labs: Any, weights: Any, means: Any) -> tuple[Any, Any, Any]:
    """Return the groups of the colors that are nearest to each mean: shares, means, and the weights in them.

    Means to which no color is near are left out.
    """
    nearest = ((means**2).sum(axis=1) - 2 * labs @ means.T).argmin(axis=1)
    counted = np.where(nearest == np.arange(len(means))[:, None], weights, 0.0)
    shares = counted.sum(axis=1)
    present = shares > 0
    counted, shares = counted[present], shares[present]
    return shares, counted @ labs / shares[:, None], counted


def _without_alike(means: Any, shares: Any) -> tuple[Any, Any]:
    """Return the groups with those joined whose colors look alike, the nearest first."""
    while len(means) > 1:
        distances = np.linalg.norm(means[:, None] - means[None], axis=2)
        np.fill_diagonal(distances, np.inf)
        first, second = np.unravel_index(distances.argmin(), distances.shape)
        if distances[first, second] >= _ALIKE:
            break
        pair = [first, second]
        joined, share = shares[pair] @ means[pair] / shares[pair].sum(), shares[pair].sum()
        means = np.vstack((np.delete(means, pair, axis=0), joined))
        shares = np.append(np.delete(shares, pair), share)
    return means, shares


def _told(levels: Any, counted: Any, means: Any) -> list[str]:
    """Return the color of each group: the one that most of its pixels have exactly, or the mean."""
    most = counted.argmax(axis=1)
    is_plain = 2 * counted.max(axis=1) > counted.sum(axis=1)
    colors = np.where(is_plain[:, None], levels[most], levels_of_light(_light(means)))
    return ["#" + bytes(color).hex() for color in colors.tolist()]


def _oklab(light: Any) -> Any:
    return np.cbrt(light @ _TO_CONES.T) @ _TO_LAB.T


def _light(lab: Any) -> Any:
    return (lab @ _FROM_LAB.T) ** 3 @ _FROM_CONES.T
