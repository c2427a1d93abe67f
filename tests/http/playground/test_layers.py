"""Layers in the playground: added, dragged, ordered, edited, duplicated and removed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import imgsvc_core as imgsvc
from tests.http.playground.conftest import Open, until
from tests.http.playground.page import PICTURES, WEB, asked
from tests.http.playground.test_watermark import solid
from tests.support import requires

BAR = {"shape": {"kind": "rectangle", "color": "ff0000"}, "width": 60, "height": 20}
CORNER = {"x": 3, "y": 3}  # the divider is in the middle
WORDS = {"text": {"text": "Words", "font": "Inter Bold", "size": "20%", "color": "ffffff"}}
COLOR_AT = """([x, y]) => {
    const image = document.querySelector("img.after");
    const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
    const context = canvas.getContext("2d");
    const [left, top] = [x * image.naturalWidth, y * image.naturalHeight];
    context.drawImage(image, left, top, 1, 1, 0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
}"""


def fragment(*layers: dict[str, Any]) -> str:
    request = {"resize": {"width": 300, "height": 200, "mode": "fit"}, "layers": list(layers)}
    return f"request={quote(json.dumps(request))}"


def item(page: Any, place: int) -> Any:
    return page.locator(f"[data-path='layers[{place}]']")


def open_layers(page: Any) -> None:
    page.get_by_role("button", name="Layers", exact=True).click()


def settle(page: Any) -> None:
    page.locator("[aria-busy=false].stage").wait_for()


def is_red(page: Any, x: float, y: float) -> bool:
    red, green, blue, _ = page.evaluate(COLOR_AT, [x, y])
    return bool(red > 200 and max(green, blue) < 60)


def wait_for_red(page: Any, x: float, y: float) -> None:
    until(page, f"(([r, g, b]) => r > 200 && g < 60 && b < 60)(({COLOR_AT})([{x}, {y}]))")


def test_layers_are_added_and_edited(open_page: Open) -> None:
    opened = open_page('request={"resize":{"width":300,"height":200,"mode":"fit"}}')
    page = opened.page
    open_layers(page)
    for content in ("Gradient", "Text", "Shape"):
        page.get_by_role("button", name=f"+ {content}").click()
    kinds = [next(iter(layer)) for layer in asked(page)["layers"]]
    assert kinds == ["gradient", "text", "shape"]
    page.locator("[data-param=shape-kind]").get_by_text("ellipse").click()
    page.locator("[data-param=layer-gravity]").get_by_label("bottom-left", exact=True).check()
    item(page, 1).get_by_role("button", expanded=False).first.click()
    words = page.get_by_role("textbox", name="Text")
    words.fill("Zwei\nZeilen")
    item(page, 1).get_by_text("“Zwei Zeilen”").wait_for()
    page.locator("[data-param=text-size] select").select_option("pixels")
    page.locator("[data-param=text-size] input[type=number]").fill("33")
    page.keyboard.press("Tab")
    page.get_by_role("switch", name="Outline").check()
    page.locator("[data-param=outline-color] input[type=text]").fill("0000ff")
    page.keyboard.press("Tab")
    gradient, text, shape = asked(page)["layers"]
    assert gradient == {"gradient": {"from": "00000000", "to": "cc000000"}}
    assert text["text"]["text"] == "Zwei\nZeilen"
    assert text["text"]["size"] == 33
    assert text["text"]["outline"]["color"] == "0000ff"
    assert (shape["shape"]["kind"], shape["gravity"]) == ("ellipse", "bottom-left")
    imgsvc.parse({"layers": [gradient, text, shape]})
    settle(page)
    page.get_by_role("button", name="Reset Layers").click()
    assert "layers" not in asked(page)
    assert opened.troubles == []


def test_a_layer_is_dragged_on_the_picture(open_page: Open) -> None:
    opened = open_page(fragment({**BAR, "gravity": "bottom-right", "x": 10, "y": "10%"}))
    page = opened.page
    handle = page.get_by_role("button", name="Layer 1: Rectangle")
    place, picture = handle.bounding_box(), page.locator(".canvas").bounding_box()
    across, down = picture["width"] / 300, picture["height"] / 200
    assert abs(place["x"] - picture["x"] - 230 * across) < 1.5
    assert abs(place["y"] - picture["y"] - 160 * down) < 1.5
    start = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(start[0] - 50 * across, start[1] - 30 * down, steps=5)
    page.mouse.move(start[0] - 100 * across, start[1] - 60 * down, steps=5)
    page.mouse.up()
    layer = asked(page)["layers"][0]
    assert (layer["gravity"], layer["x"], layer["y"]) == ("bottom-right", 110, "40%")
    until(page, "!document.querySelector('.before')")  # while a layer is edited, the result is shown alone
    settle(page)
    wait_for_red(page, 160 / 300, 110 / 200)
    assert not is_red(page, 260 / 300, 170 / 200)
    moved = handle.bounding_box()
    assert abs(moved["x"] - place["x"] + 100 * across) < 1.5
    assert abs(moved["y"] - place["y"] + 60 * down) < 1.5
    while page.get_by_role("button", name="Undo").is_enabled():  # a slow drag is several steps
        page.get_by_role("button", name="Undo").click()
    assert asked(page)["layers"][0]["x"] == 10
    assert opened.troubles == []


def test_a_layer_is_moved_and_removed_by_keys(open_page: Open) -> None:
    opened = open_page(fragment(BAR, {**BAR, "x": 5, "y": 6}))
    page = opened.page
    page.get_by_role("button", name="Layer 1: Rectangle").focus()
    for key in ("ArrowRight", "Shift+ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
    page.get_by_role("button", name="Layer 2: Rectangle").focus()
    page.keyboard.press("ArrowLeft")
    first, second = asked(page)["layers"]
    assert {"gravity": "center", "x": 1, "y": 9}.items() <= first.items()
    assert (second["x"], second["y"], second.get("gravity")) == (4, 6, None)
    settle(page)
    page.get_by_role("button", name="Layer 1: Rectangle").focus()
    page.keyboard.press("Delete")
    assert asked(page)["layers"] == [second]
    assert opened.troubles == []


def test_layers_are_ordered_duplicated_and_removed(open_page: Open) -> None:
    below = {"shape": {"kind": "rectangle", "color": "0000ff"}, "width": 200, "height": 100}
    opened = open_page(fragment({**BAR, "width": 100}, below))
    page = opened.page
    assert not is_red(page, 0.5, 0.5)
    open_layers(page)
    page.get_by_role("button", name="Move 2 Rectangle up").click()
    assert [layer["shape"]["color"] for layer in asked(page)["layers"]] == ["0000ff", "ff0000"]
    wait_for_red(page, 0.5, 0.5)
    head = item(page, 0).get_by_role("button").first
    head.focus()
    page.keyboard.press("Alt+ArrowDown")
    assert [layer["shape"]["color"] for layer in asked(page)["layers"]] == ["ff0000", "0000ff"]
    for start, end in ((0, 1), (1, 0), (0, 1)):
        item(page, start).get_by_role("button").first.drag_to(item(page, end).get_by_role("button").first)
    assert [layer["shape"]["color"] for layer in asked(page)["layers"]] == ["0000ff", "ff0000"]
    page.get_by_role("button", name="Move 1 Rectangle down").click()
    page.get_by_role("button", name="Duplicate 1 Rectangle").click()
    assert [layer["shape"]["color"] for layer in asked(page)["layers"]] == ["ff0000", "ff0000", "0000ff"]
    page.get_by_role("button", name="Remove 3 Rectangle").click()
    page.get_by_role("button", name="Remove 1 Rectangle").click()
    page.get_by_role("button", name="Remove 1 Rectangle").click()
    assert "layers" not in asked(page)
    assert opened.troubles == []


def test_a_picture_is_uploaded_and_laid_over_it(open_page: Open, tmp_path: Path) -> None:
    """The code names its file."""
    page = open_page(fragment(WORDS)).page
    open_layers(page)
    page.get_by_role("button", name="+ Picture").click()
    mark = {"name": "dot.png", "mimeType": "image/png", "buffer": solid((255, 0, 0))}
    page.locator(".items input[type=file]").set_input_files(mark)
    item(page, 1).wait_for()
    for language in ("Python", "Command"):
        page.get_by_role("tab", name="Code").click()
        page.get_by_role("group", name=language).filter(has_text="dot.png").wait_for()
    wait_for_red(page, 0.5, 0.5)
    shutil.copy(PICTURES / "portrait.jpg", tmp_path)
    (tmp_path / "dot.png").write_bytes(mark["buffer"])
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    made = []
    for language in ("Python", "Command"):
        program = sys.executable if language == "Python" else "sh"
        run = [program, "-c", page.get_by_role("group", name=language).inner_text()]
        subprocess.run(run, check=True, cwd=tmp_path, env={**os.environ, "PATH": path})
        made.append((tmp_path / "portrait-result.jpg").read_bytes())
        (tmp_path / "portrait-result.jpg").unlink()
    assert made[0] == made[1]


def test_errors_stand_at_their_fields(open_page: Open) -> None:
    wrong = {"text": {**WORDS["text"], "font": "Futura Bold", "size": 9}, "opacity": 4}
    page = open_page(fragment(BAR, wrong), ready=False).page
    page.get_by_role("alert").wait_for()
    open_layers(page)
    assert item(page, 1).locator(".item-head.wrong").count() == 1
    assert item(page, 0).locator(".item-head.wrong").count() == 0
    item(page, 1).get_by_role("button", expanded=False).first.click()
    error = page.locator("[data-param=layer-opacity] .error")
    error.wait_for()
    assert "got 4" in error.inner_text()
    page.get_by_role("button", name="Reset Opacity").click()
    error = page.locator("[data-param=text-font] .error")
    error.wait_for()
    assert "got 'Futura Bold'" in error.inner_text()
    page.get_by_label("Weight").select_option("Regular")
    page.get_by_role("textbox", name="Font").fill("Inter")
    page.keyboard.press("Tab")
    error.wait_for(state="detached")
    page.get_by_role("textbox", name="Text").fill("\U00010900")
    error = page.locator("[data-param=text-text] .error")
    error.wait_for()
    assert "U+10900" in error.inner_text()


def test_fonts_are_chosen_by_their_samples(open_page: Open) -> None:
    opened = open_page(fragment(WORDS))
    page = opened.page
    page.get_by_role("button", name="Layer 1").click(position=CORNER)
    page.get_by_role("button", name="Fonts", exact=True).click()
    families = page.get_by_role("radiogroup", name="Families of fonts")
    families.locator("img").first.wait_for()
    loaded = families.locator("img").count()
    assert 1 <= loaded < families.get_by_role("radio").count()  # others follow when they come into sight
    assert families.get_by_role("radio", name="Inter").is_checked()
    last = families.get_by_role("radio", name="Noto Sans Thai")
    last.scroll_into_view_if_needed()
    families.locator("label", has_text="Noto Sans Thai").locator("img").wait_for()
    last.check()
    assert asked(page)["layers"][0]["text"]["font"] == "Noto Sans Thai Bold"
    page.get_by_label("Weight").select_option("Light")
    page.get_by_label("Italic").check()
    assert asked(page)["layers"][0]["text"]["font"] == "Noto Sans Thai Light Italic"
    settle(page)
    assert opened.troubles == []


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_everybody_can_use_layers(width: int, scheme: str, open_page: Open) -> None:
    """axe finds nothing, and nothing is wider than the window."""
    axe = WEB / "node_modules" / "axe-core" / "axe.min.js"
    if not axe.is_file():
        requires.missing("axe-core is not installed (npm --prefix web ci)")
    spans = {"text": {"spans": [{"text": "A "}, {"text": "B"}], "size": 30, "shadow": {}}, "repeat": {}}
    options = {"viewport": {"width": width, "height": 844}, "color_scheme": scheme, "bypass_csp": True}
    page = open_page(fragment(BAR, spans), **options).page
    page.add_script_tag(path=str(axe))
    page.get_by_role("button", name="Layer 2").click(position=CORNER)
    page.get_by_role("button", name="Fonts", exact=True).first.click()
    page.locator(".sample img").first.wait_for()
    page.locator("[data-path='layers[1].text.spans[1]']").get_by_role("button", expanded=False).first.click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    found = page.evaluate("axe.run().then(result => result.violations)")
    assert not found, json.dumps([(one["id"], one["nodes"][0]["html"]) for one in found], indent=1)
