"""Light of RGB spaces and the tone mapping of HDR, against the numbers of the standards."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from imgsvc_core.formats.rgb_space import BT2020, DISPLAY_P3, SRGB, RgbSpace
from imgsvc_core.plan.color import light

HLG = RgbSpace(BT2020, "hlg")


@pytest.mark.parametrize(
    ("signal", "luminance"),
    [(0, 0), (0.5081, 100), (0.5807, 203), (0.7518, 1000), (0.9026, 4000), (1, 10_000)],
)
def test_pq(signal: float, luminance: float) -> None:
    """The signals of Report ITU-R BT.2408-7, table 1 and section 2.1."""
    assert light.pq_luminance(np.array(signal)) == pytest.approx(luminance, rel=2e-3, abs=1e-3)
    assert light.pq_encode(np.array(luminance)) == pytest.approx(signal, abs=1e-4)


@pytest.mark.parametrize(("signal", "luminance"), [(0, 0), (0.38, 26), (0.75, 203), (1, 1000)])
def test_hlg(signal: float, luminance: float) -> None:
    """The same, on a display with a peak of 1000 cd/m2."""
    scene = light.light(HLG, np.array(signal))
    assert scene**light.HLG_SYSTEM_GAMMA * 1000 == pytest.approx(luminance, rel=0.02)


@pytest.mark.parametrize(
    ("primaries", "rows"),
    [
        # Recommendation ITU-R BT.2087-0, the matrix of annex 2.
        (BT2020, ((1.6605, -0.5876, -0.0728), (-0.1246, 1.1329, -0.0083), (-0.0182, -0.1006, 1.1187))),
        # CSS Color Module Level 4, sample code.
        (DISPLAY_P3, ((1.2249, -0.2249, 0.0), (-0.0421, 1.0421, 0.0), (-0.0196, -0.0786, 1.0983))),
        (SRGB, np.eye(3)),
    ],
)
def test_matrices(primaries: tuple[tuple[float, float], ...], rows: object) -> None:
    assert light.matrix(RgbSpace(primaries)) == pytest.approx(np.array(rows), abs=2e-4)  # type: ignore[arg-type]


def test_white_stays_white_from_another_white_point() -> None:
    ntsc = RgbSpace(((0.67, 0.33), (0.21, 0.71), (0.14, 0.08), (0.31, 0.316)))
    assert light.matrix(ntsc) @ np.ones(3) == pytest.approx(np.ones(3))


def test_luminance_weights() -> None:
    assert light.luminance_weights(HLG) == pytest.approx([0.2627, 0.678, 0.0593], abs=1e-4)


@given(st.floats(203.01, 10_000))
def test_tone_mapping_keeps_the_dark_and_ends_at_the_reference_white(peak: float) -> None:
    luminance = np.linspace(0, peak, 2000)
    mapped = light.tone_mapped(luminance, peak)
    ratio = light.pq_encode(np.array(203)) / light.pq_encode(np.array(peak))
    knee = light.pq_luminance((1.5 * ratio - 0.5) * light.pq_encode(np.array(peak)))
    dark = luminance < knee
    assert mapped[dark] == pytest.approx(luminance[dark], rel=1e-6, abs=1e-6)
    assert mapped[-1] == pytest.approx(203)
    assert (np.diff(mapped) > -1e-9).all()
    assert (mapped <= luminance + 1e-6).all()


def test_the_knee_for_1000() -> None:
    """Report ITU-R BT.2390-11, section 5.4.1, worked out by hand: a knee of .6586, T of .3333."""
    assert light.tone_mapped(np.array([90.0, 203.0, 600.0]), 1000) == pytest.approx(
        [90, 159.1, 201.3], abs=0.6
    )


def test_what_is_not_brighter_than_white_is_kept() -> None:
    assert light.tone_mapped(np.array([0.0, 100, 203, 300]), 150) == pytest.approx([0, 100, 203, 203])
