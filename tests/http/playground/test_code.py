"""The request of the playground as code that runs elsewhere."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

import imgsvc_core as imgsvc
from imgsvc_urls import parse
from tests.http.playground.conftest import Open
from tests.http.playground.page import PICTURES, copied, number, open_all_groups
from tests.support import encoded

# A page says so for one and a half seconds, in which a test may have no turn.
TOLD_OF_COPY = """(language) => {
    const section = document.querySelector(`[data-language="${language}"]`);
    const named = () => [...section.querySelectorAll("button")].some((one) => one.textContent === "Copied");
    window.told = new Promise((resolve) =>
        new MutationObserver(() => named() && resolve("Copied"))
            .observe(section, { subtree: true, childList: true, characterData: true }));
}"""


def test_the_request_is_copied_in_every_language(open_page: Open, tmp_path: Path) -> None:
    page = open_page('request={"resize":{"width":90},"filter":{"sepia":{"value":60}}}').page
    page.get_by_role("tab", name="Code").click()
    page.get_by_role("group", name="HTML").get_by_text("<picture>").wait_for()
    texts = {}
    for name in ("JSON", "curl", "Python", "Command", "URL", "HTML"):
        page.evaluate(TOLD_OF_COPY, name)
        texts[name] = copied(page, f"Copy {name}")
        assert page.evaluate("window.told") == "Copied"
    for name in texts:
        page.get_by_role("button", name=f"Copy {name}").wait_for()
    assert json.loads(texts["JSON"]) == {"resize": {"width": 90}, "filter": {"sepia": {"value": 60}}}
    assert re.search(r"/1\.0/image/\w+\.[\w-]+/resize:90x/sepia:60/", texts["URL"])  # signed
    shutil.copy(PICTURES / "portrait.jpg", tmp_path)
    key = page.evaluate("sessionStorage.getItem('imgsvc-key')")
    sizes = set()
    folder = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "KEY": key}
    for language in ("curl", "Python", "Command"):
        program = sys.executable if language == "Python" else "sh"
        run = [program, "-c", texts[language]]
        subprocess.run(run, check=True, cwd=tmp_path, env=environment, capture_output=True)
        result = tmp_path / "portrait-result.jpg"
        sizes.add((imgsvc.inspect(result).width, imgsvc.inspect(result).height, len(result.read_bytes())))
        result.unlink()
    assert len(sizes) == 1


def test_an_error_is_never_copied(open_page: Open) -> None:
    opened = open_page()
    page = opened.page
    page.get_by_role("tab", name="Code").click()
    page.get_by_role("button", name="Copy URL").wait_for()
    page.route(
        "**/playground/urls", lambda route: route.fulfill(status=422, json={"message": "It is wrong."})
    )
    number(page, "resize-width").fill("90")
    page.keyboard.press("Tab")
    assert page.get_by_role("button", name="Copy URL").count() == 0  # that of the request before
    for language in ("URL", "HTML"):
        section = page.locator(f"[data-language={language}]")
        section.get_by_text("It is wrong.").wait_for()
        assert section.get_by_role("button").count() == 0


REFUSED = {
    "a value out of its range": {"resize": {"width": 99999}},
    "a crop outside of the picture": {"crop": {"x": 5000, "y": 0, "width": 10, "height": 10}},
}


@pytest.mark.parametrize("request_", REFUSED.values(), ids=REFUSED)
def test_a_refused_request_is_copied_in_no_language_and_its_error_has_one_wording(
    request_: object, open_page: Open
) -> None:
    page = open_page(f"request={quote(json.dumps(request_))}", ready=False).page
    alert = page.get_by_role("alert")
    alert.wait_for()
    page.get_by_role("tab", name="Code").click()
    code = page.locator(".code")
    code.get_by_text("there are no buttons to copy it").wait_for()
    assert code.get_by_role("button").count() == 0
    assert code.locator("pre").count() == 4
    page.locator("[data-language=HTML] .error").wait_for()
    page.wait_for_load_state("networkidle")
    open_all_groups(page)
    told = page.locator(".error").all_inner_texts()
    assert len(told) >= 2
    assert set(told) == {alert.inner_text()}
    page.get_by_role("button", name="Reset", exact=True).click()
    code.get_by_role("button").nth(5).wait_for()


def test_a_request_can_be_copied_while_the_service_is_away(open_page: Open) -> None:
    page = open_page().page
    page.get_by_role("tab", name="Code").click()
    page.route("**/playground/previews/*", lambda route: route.abort())
    number(page, "resize-width").fill("50")
    page.keyboard.press("Tab")
    page.get_by_role("alert").filter(has_text="cannot be reached").wait_for()
    assert page.get_by_role("button", name="Copy JSON").count() == 1


def test_html_that_cannot_be_is_told_and_not_copied(open_page: Open) -> None:
    page = open_page('request={"border":{"size":200}}').page
    page.get_by_role("tab", name="Code").click()
    html = page.locator("[data-language=HTML]")
    html.get_by_text("leave no room in a width of 320").wait_for()
    assert html.get_by_role("button").count() == 0
    page.get_by_role("button", name="Copy URL").wait_for()


def test_copied_commands_take_files_of_any_name(open_page: Open, tmp_path: Path) -> None:
    page = open_page('request={"resize":{"width":20}}').page
    key = page.evaluate("sessionStorage.getItem('imgsvc-key')")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    page.get_by_role("tab", name="Code").click()
    for stem in ("a, b;c", "-photo", 'the "best"'):
        file = {"name": f"{stem}.png", "mimeType": "image/png", "buffer": encoded.png().data}
        (tmp_path / f"{stem}.png").write_bytes(encoded.png().data)
        page.get_by_label("Picture file").set_input_files(file)
        page.locator(".source-facts", has_text=f"{stem}.png").wait_for()
        for language in ("curl", "Command"):
            copied = page.get_by_role("group", name=language).inner_text()
            run = ["sh", "-c", copied]
            subprocess.run(run, check=True, cwd=tmp_path, env={**os.environ, "PATH": path, "KEY": key})
            result = tmp_path / f"{stem}-result.png"
            assert imgsvc.inspect(result).width == 20
            result.unlink()


def test_html_of_an_animation_keeps_it_moving(open_page: Open) -> None:
    page = open_page("example=day.gif").page
    page.get_by_role("tab", name="Code").click()
    html = page.get_by_role("group", name="HTML")
    html.get_by_text("/format:gif/").wait_for()
    assert re.findall('source type="([^"]+)"', html.inner_text()) == ["image/webp"]
    for language in ("URL", "HTML"):
        section = page.locator(f"[data-language={language}]")
        section.get_by_text("https://example.org/… stands for the address of the picture").wait_for()


@pytest.mark.parametrize(
    "filters",
    [{"sepia": {"value": 60}}, [{"blur": {"mode": "gaussian", "value": 9}}, {"sepia": {"value": 60}}]],
)
def test_code_names_the_file_of_the_watermark(filters: object, open_page: Open, tmp_path: Path) -> None:
    request = {"resize": {"width": 200}, "filter": filters}
    page = open_page(f"request={quote(json.dumps(request))}").page
    page.get_by_role("button", name="Watermark", exact=True).click()
    data = encoded.png().data
    mark = {"name": "our mark.png", "mimeType": "image/png", "buffer": data}
    page.locator("[data-param=watermark-id] input[type=file]").set_input_files(mark)
    page.get_by_role("tab", name="Code").click()
    for language in ("Python", "Command"):
        page.get_by_role("group", name=language).filter(has_text="our mark.png").wait_for()
    shutil.copy(PICTURES / "portrait.jpg", tmp_path)
    (tmp_path / "our mark.png").write_bytes(data)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    made = []
    for language in ("Python", "Command"):
        program = sys.executable if language == "Python" else "sh"
        run = [program, "-c", page.get_by_role("group", name=language).inner_text()]
        subprocess.run(run, check=True, cwd=tmp_path, env={**os.environ, "PATH": path})
        made.append((tmp_path / "portrait-result.jpg").read_bytes())
        (tmp_path / "portrait-result.jpg").unlink()
    assert made[0] == made[1]


def test_responsive_results_with_a_border_are_as_wide_as_the_html_says(open_page: Open) -> None:
    request = {"resize": {"width": 400}, "border": {"size": 10}}
    page = open_page(f"request={quote(json.dumps(request))}").page
    page.get_by_role("tab", name="Code").click()
    largest = "420w"  # of this source, and so of none before the page knows it
    html = page.get_by_role("group", name="HTML").filter(has_text=largest).inner_text()
    found = re.findall(r"/1\.0/image/[^/]+(/\S+) (\d+)w", html)
    assert len(found) == 6
    for path, width in found:
        result = imgsvc.process(PICTURES / "portrait.jpg", parse(path).spec())
        assert result.output.width == int(width)
