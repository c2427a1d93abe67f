"""The documentation says what the code says."""

from __future__ import annotations

import ast
import importlib
import itertools
import json
import re
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs
import click
import pytest

import imgsvc_core as imgsvc
from imgsvc_cli.app import cli
from imgsvc_cli.flags import request_document
from imgsvc_core.limits import Limits
from imgsvc_core.spec.options import SHORTHANDS
from imgsvc_http.answering.errors import KINDS
from imgsvc_http.endpoints.routes import ROUTES
from imgsvc_http.receiving.processing_request import parse_request
from imgsvc_http.routing import Route
from imgsvc_stores import PROVIDERS
from imgsvc_urls import Delivery

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
START = (DOCS / "start.md").read_text(encoding="utf-8")
sys.path.insert(0, str(DOCS / "_ext"))
strips, tables, plans, calls, declarations = map(
    importlib.import_module, ("strips", "tables", "plans", "calls", "declarations")
)


def section(text: str, heading: str) -> str:
    """What stands below a heading, up to the next."""
    body = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert body, f"there is no heading {heading}"
    return body[1]


@pytest.mark.parametrize("key", imgsvc.OPERATIONS)
def test_reference_has_every_parameter_of_every_operation(key: str) -> None:
    found = tables.operation(key)
    for name, param in imgsvc.params(imgsvc.OPERATIONS[key]).items():
        (row,) = [line for line in found.splitlines() if line.startswith(f"| `{name}` |")]
        assert param.doc in row
        assert param.kind.expectation in row
        assert ("required" in row) == param.required


@pytest.mark.parametrize("path", tables.LISTED)
def test_reference_has_every_parameter_of_layers(path: str) -> None:
    found = tables.operation(path)
    for name, param in imgsvc.params(tables.LISTED[path]).items():
        (row,) = [line for line in found.splitlines() if line.startswith(f"| `{name}` |")]
        assert param.doc in row
        assert param.kind.expectation in row


@pytest.mark.parametrize("item", imgsvc.FILTERS, ids=lambda item: item.key)
def test_reference_has_every_parameter_of_every_filter(item: type[imgsvc.Filter]) -> None:
    found = tables.operation(f"filter.{item.key}")
    assert re.findall(r"^\| `(\w+)` \|", found, re.MULTILINE) == list(imgsvc.params(item))


def test_reference_has_every_rule_between_parameters() -> None:
    found = tables.operation("resize")
    assert "- At least one of `width`, `height`, `min_width` and `min_height` is required." in found
    assert "- `width` and `height` must be given where `mode` is `fit`, `fill` or `stretch`." in found
    assert "- `background` must be left out where `mode` is `fit`." in found
    assert "- `padding` is used together with `gravity` only." in tables.operation("watermark")


def test_reference_has_every_format_error_limit_and_fact() -> None:
    assert all(f"| `{name}`" in tables.formats() for name in imgsvc.FORMATS)
    assert all(f"| `{name}` |" in tables.format_abilities() for name in imgsvc.FORMATS)
    assert all(
        f"| `{item.slug}` | `{item.__name__}` |" in tables.error_tree() for item in tables.error_classes()
    )
    assert all(f"| `{field.name}` |" in tables.limits() for field in attrs.fields(Limits))
    assert all(f"| `{field.name}` |" in tables.image_info() for field in attrs.fields(imgsvc.ImageInfo))


def test_reference_has_every_error_that_the_service_answers() -> None:
    library = {item.slug for item in tables.error_classes()} - {imgsvc.ImgsvcError.slug}
    listed = re.findall(r"^\| `(\w+)` \| \d{3} \| \S", tables.service_errors(), re.MULTILINE)
    assert sorted(listed) == sorted({*KINDS, *library})
    assert "<!-- table: service_errors -->" in (DOCS / "reference/service.md").read_text(encoding="utf-8")


def test_reference_has_every_command_with_its_flags() -> None:
    page = tables.command()
    assert "<!-- table: command -->" in (DOCS / "reference/command.md").read_text(encoding="utf-8")
    found = {part.split("\n", 1)[0]: part for part in page.split("\n## ")[1:]}
    commands: list[tuple[str, click.Command]] = [("imgsvc", cli)]
    for path, command in commands:
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                commands.append((f"{path} {name}", inner))
    assert set(found) == {path for path, _ in commands[1:]}
    for path, command in commands[1:]:
        flags = {flag for item in command.params for flag in item.opts if flag.startswith("--")}
        shared = found["imgsvc process"] if "(#imgsvc-process)" in found[path] else ""
        assert [flag for flag in flags if f"{flag} " not in found[path] + shared] == []
    assert "--padding-top" not in found["imgsvc explain"]


def test_code_in_descriptions_of_calls_is_not_escaped() -> None:
    text = calls.calls("Processing")
    assert "`<img src>`" in text
    assert "&lt;platform>" in text


def test_reference_has_every_option_of_urls_that_is_no_parameter() -> None:
    assert re.findall(r"^\| `(.+?)` \|", tables.shorthands(), re.MULTILINE) == list(SHORTHANDS)
    assert re.findall(r"^\| `(.+?)` \|", tables.delivery(), re.MULTILINE) == list(imgsvc.params(Delivery))
    page = (DOCS / "reference/urls.md").read_text(encoding="utf-8")
    assert "<!-- table: shorthands -->" in page
    assert "<!-- table: delivery -->" in page


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_reference_has_every_call_with_its_parameters_and_answers(route: Route) -> None:
    found = calls.calls(route.tag).split(f"## {route.method} {route.path}\n")[1].split("\n## ")[0]
    signed = route.authenticate is not None
    assert ("Needs a signature" in found) == signed
    assert f"`{route.scope}`" in found or route.public or signed or "any key" in found
    for parameter in route.parameters:
        assert f"| `{parameter.name}` | {parameter.where} |" in found
    for media_type, schema in route.bodies.items():
        assert f"Body: {media_type}" in found
        assert all(f"| `{name}` |" in found for name in schema.get("properties", ()))
    for name in attrs.fields_dict(route.answer) if route.answer else ():
        assert f"| `{name}` |" in found


@pytest.mark.parametrize("name", PROVIDERS)
def test_reference_has_every_parameter_of_every_store(name: str) -> None:
    found = section(tables.stores(), name)
    assert re.findall(r"^\| `(\w+)` \|", found, re.MULTILINE) == list(imgsvc.params(PROVIDERS[name]))
    assert f"| `{name}` | `http" in (DOCS / "reference/stores.md").read_text(encoding="utf-8")


HOSTS = {
    "distributed.dask.org", "doi.org", "filesystem-spec.readthedocs.io", "github.com", "keepachangelog.com",
    "nginx.org", "semver.org", "www.itu.int", "www.standardwebhooks.com",
}  # fmt: skip
"""Sites that the documentation links to; ``nox -s links`` asks them."""


def test_links_lead_out_to_known_sites_by_https() -> None:
    texts = [*PAGES, *(DOCS.parent / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
    found = set()
    for path in texts:
        for url in re.findall(
            r"\]\(<?([a-z]+:[^)>\s]*)|<([a-z]+://[^>\s]*)>", path.read_text(encoding="utf-8")
        ):
            parts = urlsplit("".join(url))
            assert parts.scheme == "https", f"{path.name}: {parts.geturl()}"
            found.add(parts.netloc)
    assert found == HOSTS


def test_tables_are_rectangular() -> None:
    for make in tables.TABLES.values():
        lines = [line for line in make().splitlines() if line.startswith("|")]
        for upper, lower in itertools.pairwise(lines):
            if lower.startswith("| ---"):
                assert upper.count(" | ") == lower.count(" | ")


def test_schema_page_is_the_schema() -> None:
    assert json.loads(tables.schema().removeprefix("```json").removesuffix("```")) == imgsvc.request_schema()


def test_formulas_are_given_for_every_adjustment_and_filter() -> None:
    page = (DOCS / "looks.md").read_text(encoding="utf-8")
    for name in imgsvc.params(imgsvc.Adjust):
        assert f"\n| {name} |" in section(page, "Adjustments")
    for item in imgsvc.FILTERS:
        assert re.search(rf"^\| {item.key}\b", section(page, "Filters"), re.MULTILINE)


UNSEEN = {"output.format", "output.encoding", "output.lossless", "output.effort", "output.metadata"}
UNSEEN |= {"output.facts", "output.keep_pixels", "output.if_smaller", "output.subsampling", "output.look"}
UNSEEN |= {"output.transcode", "watermark.id", "resize.scaling", "scale.scaling"}
IN_PART = {"crop.gravity", "resize.gravity"}  # some gravities give the same picture


@pytest.mark.parametrize("path", [*imgsvc.OPERATIONS, *(f"filter.{item.key}" for item in imgsvc.FILTERS)])
def test_every_parameter_is_shown_in_pictures(path: str) -> None:
    operation, _, item = path.partition(".")
    declared = {item.key: item for item in imgsvc.FILTERS}[item] if item else imgsvc.OPERATIONS[operation]
    found: dict[str, set[str]] = {}
    for name, strip in strips.STRIPS.items():
        for _, request in strip.shown if name == path or name.startswith(f"{path}.") else ():
            given = request.get(operation, {})
            for param in imgsvc.params(declared):
                value = (given.get(item, {}) if item else given).get(param)
                found.setdefault(param, set()).add(json.dumps(value))
    for name, param in imgsvc.params(declared).items():
        if f"{path}.{name}" not in UNSEEN:
            choices = () if f"{path}.{name}" in IN_PART else param.kind.schema().get("enum", ())
            assert name in found, f"docs/_ext/shown.py has no picture of {path}"
            assert found[name] > {"null"} or len(found[name] - {"null"}) > 1, f"{name} is not varied"
            assert found[name] >= {json.dumps(choice) for choice in choices}


def test_the_picture_of_a_plan_shows_ten_wishes_and_fewer_steps() -> None:
    asked, steps = plans.folded().split('<ol class="steps">')
    assert asked.count("<li>") == 10
    folded = [step for step in steps.split("<li>") if "LUT of" in step]
    assert len(folded) == 1
    for name in ("exposure", "contrast", "gamma", "invert", "saturation", "hue", "sepia"):
        assert name in folded[0]


def test_neighbors_in_a_strip_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All strips are rendered with the documentation."""
    monkeypatch.setattr(strips, "FOLDER", tmp_path)
    name, strip = next(iter(strips.STRIPS.items()))
    files = re.findall(r'src="STATIC/strips/(.+?)"', strips.figures(name))
    assert [(tmp_path / file).is_file() for file in files] == [True] * len(strip.shown)
    monkeypatch.setitem(strips.STRIPS, name, attrs.evolve(strip, shown=strip.shown[:1] * 2))
    with pytest.raises(ValueError, match="two neighbors"):
        strips.figures(name)


def test_api_page_has_every_public_name_without_a_table_of_its_own() -> None:
    page = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\.\. (?:auto\w+|data):: (\w+)", page, re.MULTILINE))
    operations = (*imgsvc.OPERATIONS.values(), *imgsvc.FILTERS, *tables.LISTED.values())
    tabled = {item.__name__ for item in (*tables.error_classes(), *operations)}
    assert set(imgsvc.__all__) - tabled - {"__version__"} == listed


def test_every_page_is_reachable() -> None:
    listed = {DOCS / "index.md"}
    for page in PAGES:
        for tree in re.findall(r"```\{toctree\}.*?```", page.read_text(encoding="utf-8"), re.DOTALL):
            names = [line for line in tree.splitlines()[1:-1] if line and not line.startswith(":")]
            listed |= {page.parent / f"{name}.md" for name in names}
    assert listed == set(PAGES)


SEARCHED = (
    "macOS", "Windows", "Docker", "Kubernetes", "Lambda", "ARM64", "offline", "FastAPI", "Django", "Flask",
    "Jupyter", "Node.js", "WordPress", "nginx", "Cloudflare", "CloudFront", "CDN", "CORS", "OpenAPI", "S3",
    "MinIO", "GCS", "Azure", "PostgreSQL", "Prometheus", "HEIC", "PDF", "RAW", "video", "favicon", "EXIF",
    "GPS", "watermark", "emoji", "GPU", "license", "privacy", "telemetry", "backup", "upgrade", "uninstall",
)  # fmt: skip


@pytest.mark.parametrize("word", SEARCHED)
def test_a_page_answers_what_people_search_for(word: str) -> None:
    """The search finds whole words, so the page of questions has them, beside an answer."""
    lines = (DOCS / "questions.md").read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    assert any(re.search(rf"\b{re.escape(word)}\b", " ".join(row)) and len(row) == 2 for row in rows)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_packages_are_installed_before_the_environment_is_activated(page: Path) -> None:
    """It has no pip of its own, and its python3 comes first from then on."""
    after = page.read_text(encoding="utf-8").partition(". .venv/bin/activate")[2]
    assert "-m pip --python" not in after


def test_pages_of_operations_have_them_all_in_the_order_of_application() -> None:
    sections = []
    for name in re.findall(r"^operations/\w+$", (DOCS / "reference/operations.md").read_text(), re.MULTILINE):
        page = (DOCS / "reference" / f"{name}.md").read_text(encoding="utf-8")
        sections += re.findall(r"^<!-- operation: (\S+) -->$", page, re.MULTILINE)
    assert sections == re.findall(r"\[`(\S+)`\]", tables.operations())
    filters = {f"filter.{item.key}" for item in imgsvc.FILTERS}
    assert {*sections} == {*imgsvc.OPERATIONS, *filters, *tables.LISTED}
    phases = [section.partition(".")[0] for section in sections]
    assert sorted(phases, key=imgsvc.PHASES.index) == phases


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_of_pages_work_on_github_too(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.findall(r"\{(?:doc|ref|any|term)\}`", text)
    links = re.findall(r"\]\((?!\w+:)([^)#\s]+)", text)
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tables_of_pages_are_those_of_the_code(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert declarations.as_page(text) == text, "run nox -s tables"


def test_a_page_that_is_stale_is_made_again() -> None:
    before = "# A\n\n<!-- table: limits -->\nstale\n<!-- /table -->\n\n<!-- table: phases -->\n\nend\n"
    page = declarations.as_page(before)
    assert "stale" not in page
    assert tables.limits() in page
    assert tables.phases() in page
    assert page.startswith("# A\n\n<!-- table: limits -->\n")
    assert page.endswith("<!-- /table -->\n\nend\n")
    assert declarations.as_page(page) == page
    site = declarations.as_site(page)
    assert tables.limits() in site
    assert "<!--" not in site


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_placeholders_and_pictures_of_pages_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r"^<!-- table: (\w+) -->$", text, re.MULTILINE)) <= tables.TABLES.keys()
    assert set(re.findall(r"^<!-- strip: (\S+) -->$", text, re.MULTILINE)) <= strips.STRIPS.keys()
    assert set(re.findall(r"^<!-- plan: (\S+) -->$", text, re.MULTILINE)) <= plans.PLANS.keys()
    for picture in re.findall(r"```\{image\} (\S+)", text):
        assert (page.parent / picture).is_file()


def json_requests(text: str) -> list[dict[str, Any]]:
    """The JSON objects of a page that are requests, wherever they stand."""
    found, position = [], 0
    while match := re.compile(r'\{\s*"').search(text, position):
        try:
            value, position = json.JSONDecoder().raw_decode(text, match.start())
        except ValueError:
            position = match.end()
            continue
        if imgsvc.OPERATIONS.keys() & value.keys() and value not in MISTAKES:
            found.append(value)
    return found


def test_blocks_of_json_are_json() -> None:
    """Sphinx warns of others, which ends the build."""
    for page in PAGES:
        for block in re.findall(r"^```json\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S):
            json.loads(block)


MISTAKES = (
    {"filter": {"sepia": {"value": 101}}},
    {"adjust": {"contrast": 130, "hue": "red"}, "resise": {"width": 300}},
)
"""Requests that pages show together with the errors that they give."""


PRESETS: dict[str, dict[str, Any]] = {"card": {}, "old": {}}
"""Those that a page defines in its settings before it asks for them."""


def test_every_request_of_the_pages_is_valid() -> None:
    requests = [request for page in PAGES for request in json_requests(page.read_text(encoding="utf-8"))]
    assert len(requests) > 80
    for request in requests:
        parse_request(request, Limits(), fetching="url" in request, presets=PRESETS)


def shown_commands() -> list[list[str]]:
    """The words of commands that pages show without running them, as their servers have no names here."""
    blocks = [
        block
        for page in PAGES
        for block in re.findall(
            r"^```text\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        )
    ]
    lines = [line for block in blocks for line in block.replace("\\\n", "").splitlines()]
    commands = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    calls = [f"curl -X {line}" for line in lines if re.match(r"(GET|POST|PUT|DELETE) /", line)]
    return [shlex.split(command) for command in (*commands, *calls)]


def test_commands_that_pages_show_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    commands = [words for words in shown_commands() if words[0] == "imgsvc"]
    assert len(commands) > 15
    for _, *words in commands:
        for name in words:
            if name.endswith((".json", ".txt")):
                Path(name).write_text("{}", encoding="utf-8")
        command: click.Command = cli
        while isinstance(command, click.Group):
            inner = command.get_command(click.Context(command), words[0])
            command, words = (command.commands["run"], words) if inner is None else (inner, words[1:])
        flags = command.make_context(command.name, list(words)).params
        imgsvc.parse(request_document(flags))


def test_calls_that_pages_show_are_known() -> None:
    calls = [words for words in shown_commands() if words[0] == "curl" and "/1.0/" in " ".join(words)]
    assert len(calls) > 5
    for words in calls:
        path = next(re.sub(r"^https?://[^/]+|\?.*", "", word) for word in words if "/1.0/" in word)
        sends = {"-F", "-d"} & set(words)
        method = words[words.index("-X") + 1] if "-X" in words else "POST" if sends else "GET"
        patterns = [re.sub(r"\{\w+\}", "[^ ]+", route.path) for route in ROUTES if route.method == method]
        assert any(re.fullmatch(pattern, path) for pattern in patterns), words


SOUGHT = ["backup", "docker", "exif", "gps", "jupyter", "kubernetes", "license", "macos", "windows"]
"""Words that readers type into the search of the site, whatever our own words are."""


@pytest.mark.parametrize("word", SOUGHT)
def test_the_search_finds(word: str) -> None:
    assert any(re.search(rf"\b{word}s?\b", page.read_text(encoding="utf-8"), re.IGNORECASE) for page in PAGES)


def test_every_extra_is_listed() -> None:
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = [line.split("|")[1] for line in section(START, "Choose parts").splitlines() if "|" in line]
    listed = re.findall(r"`(\w+)`", "".join(rows))
    assert {*listed, "all"} == project["optional-dependencies"].keys()


def test_every_test_that_holds_a_promise_of_safety_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (DOCS / "safety.md").read_text(encoding="utf-8"))
    assert len(named) > 30
    for file, name in named:
        tree = ast.parse((DOCS.parent / file).read_text(encoding="utf-8"))
        kinds = ast.FunctionDef | ast.AsyncFunctionDef
        functions = {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
        assert name in functions, f"{file} has no test {name}"
