"""Fonts of a service: folders of own ones, and what a replaced one changes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.http.calls import Reply, assert_failure, upload
from tests.http.service_process import running
from tests.http.ways.conftest import Site, signer_for
from tests.http.ways.web_origin import WebOrigin
from tests.support import encoded

pytestmark = pytest.mark.asyncio

FONTS = Path("/usr/share/fonts/truetype")
SANS, MONO = (FONTS / "dejavu" / name for name in ("DejaVuSans.ttf", "DejaVuSansMono.ttf"))


def layers(**text: Any) -> dict[str, Any]:
    return {"layers": [{"text": {"text": "Hi", "size": 30, "font": "DejaVu Sans", **text}}]}


@pytest.mark.skipif(not (SANS.exists() and MONO.exists()), reason="needs the fonts DejaVu")
async def test_a_replaced_font_is_another_picture_after_a_restart(
    tmp_path: Path, photos: Path, web: WebOrigin
) -> None:
    pytest.importorskip("fontpkg_inter")
    fonts = tmp_path / "fonts"
    fonts.mkdir()
    (fonts / "broken.ttf").write_bytes(b"no font")
    settings = {
        "fonts.folders": str(fonts),
        "delivery.origins": json.dumps({"photos": f"file://{photos}"}),
    }
    shutil.copy(SANS, fonts / "own.ttf")
    first, again, broken = await _asked(tmp_path, settings, photos, web)
    assert (first.status, again.headers["X-Svc-Cache"]) == (200, "hit"), first.body
    assert_failure(broken, 422, "invalid_parameter", "DejaVu Sans")
    (error,) = broken.json["errors"]
    assert error["path"] == "layers[0].text.font"
    assert error["message"].endswith("got 'Nope'; fonts that cannot be read: broken.ttf")

    same, _, _ = await _asked(tmp_path, settings, photos, web)
    assert same.headers["X-Svc-Cache"] == "hit"
    assert same.headers["ETag"] == first.headers["ETag"]

    shutil.copy(SANS, fonts / "own.ttf")
    with (fonts / "own.ttf").open("ab") as file:
        file.write(b"\0")
    other, _, _ = await _asked(tmp_path, settings, photos, web)
    assert (other.status, other.headers["X-Svc-Cache"]) == (200, "miss")
    assert other.headers["ETag"] != first.headers["ETag"]

    (fonts / "own.ttf").unlink()
    gone, _, _ = await _asked(tmp_path, settings, photos, web)
    assert_failure(gone, 422, "invalid_parameter", "must be a family")


async def _asked(folder: Path, settings: dict[str, str], photos: Path, web: WebOrigin) -> list[Reply]:
    """The picture of a URL with a text, once more, and one with an unknown font, of a service."""
    with running(folder / "state", settings) as service:
        async with service.client(key="") as client:
            site = Site(service, client, signer_for(service), photos, web)
            url = site.signer.url("photos/photo.jpg", layers())
            pictures = [await site.get(url) for _ in range(2)]
        async with service.client() as client:
            return [*pictures, await upload(client, encoded.jpeg().data, layers(font="Nope"))]
