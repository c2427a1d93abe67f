"""The example notebook, run in a kernel as Jupyter does."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from PIL import Image

import imgsvc_core as imgsvc
from tests.support.photos import coffee

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def outputs() -> list[Any]:
    """What each cell shows, by media type."""
    notebook: Any = nbformat.read(EXAMPLES / "notebook.ipynb", as_version=4)
    place = {"metadata": {"path": str(EXAMPLES / "pictures")}}
    NotebookClient(notebook, timeout=300, resources=place).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [[output.data for output in cell.outputs if "data" in output][-1] for cell in cells]


def opened(data: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(data)))


def in_html(html: str, media_type: str) -> list[Any]:
    return [opened(data) for data in re.findall(f'<img [^>]*src="data:{media_type};base64,([^"]+)"', html)]


def test_cells_show_what_they_make(outputs: list[Any]) -> None:
    info, sepia, animation, preview, variants, shape, sheet = outputs
    assert info["text/plain"] == "(400, 512)"
    assert opened(sepia["image/jpeg"]).size == (300, 384)
    assert re.fullmatch(r"<Result jpg 300x384, [\d,]+ bytes, from jpg 400x512>", sepia["text/plain"])
    [moving] = in_html(animation["text/html"], "image/webp")
    assert (moving.size[0], moving.n_frames > 1) == (240, True)
    assert opened(preview["image/png"]).format == "PNG"
    assert len(re.findall("<figure>", variants["text/html"])) == 3
    assert [picture.size[0] for picture in in_html(variants["text/html"], "image/avif")] == [200] * 3
    assert "<figcaption>20<br>" in variants["text/html"]
    assert shape["text/plain"] == "((3, 287, 224), 'float32')"
    assert opened(sheet["image/jpeg"]).size == (4 * 168 + 8, 136)


def test_names_of_variants_cannot_change_a_page(tmp_path: Path) -> None:
    made = imgsvc.process_variants(coffee(), {"<b>": imgsvc.Resize(width=20)}, f"{tmp_path}/{{name}}.webp")
    html = made._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;" in html
    assert "<img" not in html  # the picture is in its target


@pytest.mark.parametrize("format", ["jpg", "png", "gif"])
def test_what_notebooks_can_show_is_shown_as_it_is(format: str) -> None:
    made = imgsvc.process(coffee(), {"resize": {"width": 9}, "output": {"format": format}})
    shown = made._repr_mimebundle_()
    assert base64.b64decode(shown[imgsvc.FORMATS[format].media_type]) == made.data
    assert "text/html" not in shown
