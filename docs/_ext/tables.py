"""Reference tables in Markdown, made from the declarations of the code and from nothing else."""

from __future__ import annotations

import ast
import functools
import inspect
import json
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import click
from gallery import GALLERY
from shown import STRIPS

from imgsvc_core import errors
from imgsvc_core.formats import availability
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.table import FORMATS, Format, LoadScaling
from imgsvc_core.limits import Limits
from imgsvc_core.plan import PHASES
from imgsvc_core.plan.pipeline import PIPELINE
from imgsvc_core.spec import FILTERS, OPERATIONS, Layer, Operation, Param, Redact, params, request_schema
from imgsvc_core.spec.declare import Parameters, doc
from imgsvc_core.spec.facts import FACTS, meaning
from imgsvc_core.spec.options import SHORTHANDS
from imgsvc_core.spec.parts import PartKind, PartsKind
from imgsvc_core.spec.rules import (
    AtLeastOne,
    Needs,
    NotTogether,
    NotWhen,
    OnlyWhen,
    RequiredWhen,
    Rule,
)
from imgsvc_core.spec.store.declarations import OneKind
from imgsvc_http.answering.errors import KINDS, status_of
from imgsvc_http.endpoints.routes import ROUTES
from imgsvc_http.monitoring.metrics import METRICS
from imgsvc_http.routing import Route
from imgsvc_http.settings import SETTINGS, Settings
from imgsvc_http.settings.declaring import toml_value
from imgsvc_stores import PROVIDERS, StoreSpec
from imgsvc_urls import Delivery
from imgsvc_urls.dialects.imagor import Imagor
from imgsvc_urls.dialects.imgproxy.settings import ImgproxySettings
from imgsvc_urls.dialects.ipx import Ipx

NOTHING = "–"
_COLUMNS = 80
_WITH_OPERATIONS = "imgsvc process"
_REFERENCE = Path(__file__).parents[1] / "reference"
_COMPARED = ("libraries", "suites", "others", "servers")
_WITH_RATES = ("others", "servers")
"""Tables of the performance page that begin with requests per second, and have no ratios."""
_FILTERS = {f"filter.{item.key}": item for item in FILTERS}
_BEFORE_FILTERS = PHASES[: PHASES.index("filter")]


def _parts_of(operation: type[Operation]) -> dict[str, type[Operation]]:
    """Return the parameters that are operations themselves, or arrays of them."""
    kinds = {name: item.kind for name, item in params(operation).items()}
    return {name: kind.operation for name, kind in kinds.items() if isinstance(kind, PartKind | PartsKind)}


_OF_LAYERS = _parts_of(Layer)
LAYERS: Mapping[str, type[Operation]] = {"layers": Layer} | {
    f"layers.{path}": item
    for name, operation in _OF_LAYERS.items()
    for path, item in {
        name: operation,
        **{
            f"{name}.{key}": part
            for key, part in _parts_of(operation).items()
            if part not in _OF_LAYERS.values()
        },
    }.items()
}
"""Layers, and what they may be, by path."""
LISTED: Mapping[str, type[Operation]] = {"redact": Redact, **LAYERS}
"""Operations that requests have in lists, and their parts, by path."""
_DECLARED: Mapping[str, type[Operation]] = {
    "redact": LISTED["redact"],
    **{key: item for key, item in OPERATIONS.items() if key in _BEFORE_FILTERS},
    **_FILTERS,
    **{key: item for key, item in OPERATIONS.items() if key not in (*_BEFORE_FILTERS, "output")},
    **LAYERS,
    "output": OPERATIONS["output"],
}
"""Operations and filters by path, in the order of application."""
_SCALING = {
    LoadScaling.NONE: NOTHING,
    LoadScaling.DCT: "by 2, 4 or 8",
    LoadScaling.CONTINUOUS: "to any size",
    LoadScaling.LEVELS: "to stored levels",
}


def phases() -> str:
    """The order of application, with the reason for each place."""
    return table(("phase", "why it comes here"), [(f"`{item.name}`", item.reason) for item in PIPELINE])


def operations() -> str:
    """Every operation with the page that describes it, in the order of application."""
    rows = []
    for key, operation in _DECLARED.items():
        name = key.replace(".", "-")
        anchor = f'<span id="{name}"></span>'  # as if all sections were on the page with this table
        rows.append((f"{anchor}[`{key}`]({page_of(key)}#{name})", _first_sentence(operation)))
    return table(("operation", "what it does"), rows)


def operation(path: str) -> str:
    """The section of an operation or a filter."""
    heading = f"({path.replace('.', '-')})=\n## {path}"
    rules = "\n".join(map(_rule, _DECLARED[path].rules))
    columns = ("parameter", "type and range", "default", "neutral", "meaning")
    parameters = table(columns, (_parameter(param) for param in params(_DECLARED[path]).values()))
    text = _text(_DECLARED[path]).partition("\n\nArgs:\n")[0]  # the table has the parameters
    strip = f"<!-- strip: {path} -->" if path in STRIPS else ""
    below = [name for name in STRIPS if name.startswith(f"{path}.") and name not in _DECLARED]
    parts = [f"<!-- strip: {name} -->" for name in below]
    return "\n\n".join(part for part in (heading, text, strip, parameters, rules, *parts) if part)


def formats() -> str:
    """Names of each format, the package that reads and writes it here, and what it becomes by default."""
    columns = ("name", "format", "suffixes", "media type", "read by", "written by", "becomes")
    return table(columns, (_format_names(row) for row in FORMATS.values()))


def format_abilities() -> str:
    """What each format can carry."""
    columns = (
        "name", "alpha", "animation", "bits per channel", "default quality", "lossless", "progressive",
        "longest side", "scales at decoding",
    )  # fmt: skip
    return table(columns, (_format_abilities(row) for row in FORMATS.values()))


def format_metadata() -> str:
    """What of the metadata results of each format carry."""
    kinds = {"exif": "EXIF", "xmp": "XMP", "iptc": "IPTC", "profile": "color profile"}
    rows = (
        (f"`{row.name}`", *(_yes(kind in row.metadata) for kind in kinds))
        for row in FORMATS.values()
        if row.writable
    )
    return table(("result", *kinds.values()), rows)


def stores() -> str:
    """Every provider's parameters."""
    return "\n\n".join(_store(provider) for provider in PROVIDERS.values())


def shorthands() -> str:
    """Every shorthand of the command and of URLs."""
    rows = ((f"`{item.name}`", item.metavar, item.doc) for item in SHORTHANDS.values())
    return table(("option", "value", "meaning"), rows)


def delivery() -> str:
    """Every option of URLs that is about the delivery."""
    rows = (
        (f"`{item.name}`", f"{item.kind.expectation}{f', in {item.unit}' if item.unit else ''}", item.doc)
        for item in params(Delivery).values()
    )
    return table(("option", "value", "meaning"), rows)


def settings() -> str:
    """Every setting of the service."""
    rows = []
    for item in SETTINGS.values():
        section, _, name = item.path.partition(".")
        default = getattr(getattr(Settings(), section), name)
        shown = NOTHING if item.path == "server.state_folder" else f"`{toml_value(default)}`"
        rows.append((f"`{item.path}`", item.doc + (f" ({item.unit})" if item.unit else ""), shown))
    return table(("setting", "meaning", "default"), rows)


def imgproxy_settings() -> str:
    """Every setting of the dialect imgproxy, with the one of imgproxy that it stands for."""
    return _dialect_settings(ImgproxySettings, "imgproxy")


def imagor_settings() -> str:
    """Every setting of the dialect imagor, with the one of imagor that it stands for."""
    return _dialect_settings(Imagor, "imagor")


def ipx_settings() -> str:
    """Every setting of the dialect ipx, with the one of ipx or next/image that it stands for."""
    return _dialect_settings(Ipx, "ipx or next/image")


def _dialect_settings(settings: type[Parameters], service: str) -> str:
    rows = []
    for param in params(settings).values():
        doc = param.doc.rstrip(".")
        meaning, _, theirs = doc.rpartition(" (") if doc.endswith(")") else (doc, "", "")
        words = theirs.rstrip(")").split(" and ")
        named = " and ".join(f"`{word}`" for word in words) if theirs else NOTHING
        default = (
            NOTHING if param.default in (None, ()) else f"`{toml_value(param.kind.unparse(param.default))}`"
        )
        rows.append((f"`{param.name}`", named, f"{meaning}.", default))
    return table(("setting", f"in {service}", "meaning", "default"), rows)


def metrics() -> str:
    """Every metric of the service."""
    rows = (
        (f"`{item.name}`", item.kind, ", ".join(f"`{name}`" for name in item.labels) or NOTHING, item.doc)
        for item in METRICS
    )
    return table(("metric", "kind", "labels", "meaning"), rows)


def endpoints() -> str:
    """Every endpoint of the service, with the page that describes it."""
    rows = ((_linked(route), route.summary, _who_may_call(route)) for route in ROUTES)
    return table(("call", "what it does", "key of scope"), rows)


def _linked(route: Route) -> str:
    call = f"{route.method} {route.path}"
    name = re.sub(r"[^\w]+", "-", call.lower()).strip("-")
    anchor = f'<span id="{name}"></span>'  # as if all sections were on the page with this table
    (page,) = (
        page
        for page in _REFERENCE.glob("http/*.md")
        if f"<!-- calls: {route.tag} -->" in page.read_text(encoding="utf-8")
    )
    return f"{anchor}[`{call}`]({page.relative_to(_REFERENCE).as_posix()}#{name})"


def _who_may_call(route: Route) -> str:
    if route.authenticate is not None:
        return "a signature"
    return "none" if route.public else route.scope or "any"


def service_errors() -> str:
    """Every error that the service answers: its own kinds, and the errors of the library."""
    own = [(slug, kind.status, _placeholders(kind.sentence)) for slug, kind in KINDS.items()]
    library = [
        (cls.slug, status_of(cls), _first_paragraph(cls))
        for cls in error_classes()
        if cls.slug != errors.ImgsvcError.slug
    ]
    rows = sorted((f"`{slug}`", str(status.value), text) for slug, status, text in (*own, *library))
    return table(("error", "status", "message"), rows)


def _placeholders(sentence: str) -> str:
    """Show the values in braces as an ellipsis."""
    return re.sub(r"\{[^}]*\}", "…", sentence)


def error_tree() -> str:
    """Slug, class, meaning and base of every error."""
    rows = (
        (f"`{cls.slug}`", f"`{cls.__name__}`", _first_paragraph(cls), f"`{cls.__mro__[1].__name__}`")
        for cls in error_classes()
    )
    return table(("slug", "class", "meaning", "is a"), rows)


def error_classes() -> list[type[errors.ImgsvcError]]:
    """All classes of the tree in the order of the module, which puts a base before what derives from it."""
    members = vars(errors).values()
    return [item for item in members if inspect.isclass(item) and issubclass(item, errors.ImgsvcError)]


def limits() -> str:
    """Every limit with its default."""
    rows = (
        (f"`{field.name}`", f"{field.default:,}", field.metadata["unit"], field.metadata["doc"])
        for field in attrs.fields(Limits)
    )
    return table(("limit", "default", "unit", "of what"), rows)


def image_info() -> str:
    """Every fact that `inspect` reports."""
    return table(
        ("field", "meaning"),
        ((f"`{field.name}`", field.metadata["doc"]) for field in attrs.fields(ImageInfo)),
    )


def facts() -> str:
    """Every fact of pixels, and how it is computed."""
    rows = []
    for name, fact in FACTS.items():
        what, *how = meaning(fact).split("\n\n")
        rows.append((f"`{name}`", what.replace("``", "`"), " ".join(how).replace("``", "`")))
    return table(("fact", "what", "how"), rows)


def schema() -> str:
    """JSON Schema of requests."""
    return f"```json\n{json.dumps(request_schema(), indent=2, ensure_ascii=False)}\n```"


def command() -> str:
    """The help of the command and of all its subcommands. Flags of operations stand at one of them."""
    from imgsvc_cli.app import cli

    top = click.Context(cli, info_name="imgsvc", terminal_width=_COLUMNS, **cli.context_settings)
    helps = dict(_helps(cli, top))
    operations = set(helps[_WITH_OPERATIONS].split("\n\n")[1:])
    parts = []
    for path, text in helps.items():
        heading = "" if path == "imgsvc" else f"## {path}\n\n"
        if path != _WITH_OPERATIONS:
            own = [block for block in text.split("\n\n") if block not in operations]
            if len(own) < len(text.split("\n\n")):
                heading += (
                    f"It also takes the flags of operations of [`{_WITH_OPERATIONS}`](#imgsvc-process).\n\n"
                )
            text = "\n\n".join(own)
        parts.append(f"{heading}```text\n{text}\n```")
    return "\n\n".join(parts)


def _helps(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield each command below one, as it is called, with its help."""
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _helps(inner, click.Context(inner, info_name=name, parent=context))


def benchmarks() -> str:
    """Every benchmark with the first sentence of its own documentation."""
    rows = []
    for path in sorted((Path(__file__).parents[2] / "benchmarks").glob("*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"))
        if any(isinstance(item, ast.FunctionDef) and item.name == "main" for item in module.body):
            text = " ".join((ast.get_docstring(module) or "").split("\n\n")[0].split())
            rows.append((f"`{path.stem}`", text.replace("``", "`")))
    return table(("benchmark", "what it measures"), rows)


def figures() -> str:
    """Three figures of the performance page for the first page, with links to their tables."""
    speeds = [float(row[-1]) for row in _measured("libraries") if row[1] == "sharp"]
    _, photographs, _, ours, *_, theirs, _, _ = _measured("sharpness")[0]
    hits = _measured("delivery")[0][2]
    return table(
        (f"{statistics.median(speeds):.2f}×", f"{float(ours):.0f} : {float(theirs):.0f}", hits),
        [
            (
                f"the speed of sharp: the median of [{len(speeds)} jobs]"
                "(performance.md#one-picture-beside-sharp-and-pyvips)",
                f"SSIMULACRA2 of imgsvc and of sharp for the worst of [{photographs} photographs]"
                "(performance.md#sharpness-and-time), 100 pixels wide: 100 is the same picture",
                "signed pictures a second from the [cache](performance.md#pictures-by-url), "
                "over TLS, on two cores",
            )
        ],
    )


def speeds(name: str) -> str:
    """The speed of imgsvc over each other program for each job of a table of the performance page."""
    rows = _measured(name)
    ours = {job: figures for job, by, *figures in rows if by == "imgsvc"}
    ratios: dict[str, dict[str, str]] = {}
    for job, by, *figures in rows:
        if not by.startswith("imgsvc"):
            of_rates = f"{float(ours[job][0]) / float(figures[0]):.2f}"
            ratios.setdefault(job, {})[by] = of_rates if name in _WITH_RATES else figures[-1]
    others = dict.fromkeys(by for of_job in ratios.values() for by in of_job)
    found = ((job, *(of_job.get(by, NOTHING) for by in others)) for job, of_job in ratios.items())
    return table(("speed of imgsvc over", *others), found).replace(" | ---", " | ---:")


def _measured(name: str) -> list[list[str]]:
    """Return the rows that a benchmark wrote into the performance page."""
    text = (_REFERENCE.parent / "performance.md").read_text(encoding="utf-8")
    found = re.search(rf"<!-- {name} -->\n\n\|.*\n\|.*\n((?:\|.*\n)+)", text)
    assert found, f"docs/performance.md has no table {name}"
    return [line.removeprefix("| ").removesuffix(" |").split(" | ") for line in found[1].splitlines()]


TABLES: Mapping[str, Callable[[], str]] = {
    table.__name__: table
    for table in (
        phases,
        operations,
        stores,
        shorthands,
        delivery,
        formats,
        format_abilities,
        format_metadata,
        error_tree,
        limits,
        image_info,
        facts,
        schema,
        command,
        benchmarks,
        figures,
        settings,
        imgproxy_settings,
        imagor_settings,
        ipx_settings,
        metrics,
        endpoints,
        service_errors,
    )
} | {
    **{f"gallery.{name}": functools.partial(getattr, item, "code") for name, item in GALLERY.items()},
    **{f"speeds.{name}": functools.partial(speeds, name) for name in _COMPARED},
}


def page_of(path: str) -> str:
    """Return the page that has the section of an operation."""
    pages = _REFERENCE.glob("operations/*.md")
    placeholder = f"<!-- operation: {path} -->"
    for page in pages:
        if placeholder in page.read_text(encoding="utf-8"):
            return page.relative_to(_REFERENCE).as_posix()
    raise LookupError(f"A page in docs/reference/operations must have the line {placeholder}")


def _store(provider: type[StoreSpec]) -> str:
    heading = f"(store-{provider.provider})=\n### {provider.provider}"
    columns = ("parameter", "what it may be", "default", "meaning")
    rows = ((cells[0], cells[1], cells[2], cells[4]) for cells in map(_parameter, params(provider).values()))
    rules = "\n".join(map(_rule, provider.rules))
    part = provider.part_bytes
    size = f"Uploads in parts of {part / 2**20:g} MiB." if part else "Uploads in one request."
    if "keyfile" in params(provider):
        size += " With a keyfile, uploads in one request."
    return "\n\n".join(part for part in (heading, doc(provider), table(columns, rows), rules, size) if part)


def _parameter(param: Param) -> tuple[str, ...]:
    default = "required" if param.required else _json(param, param.default)
    return (
        f"`{param.name}`",
        param.kind.expectation + (f" ({param.unit})" if param.unit else ""),
        default,
        _json(param, param.neutral),
        param.doc,
    )


def _json(param: Param, value: Any) -> str:
    return NOTHING if value is None else f"`{json.dumps(param.kind.unparse(value))}`"


def _rule(rule: Rule) -> str:
    match rule:
        case AtLeastOne(names):
            return f"- At least one of {_names(names)} is required."
        case RequiredWhen(choice, options, required):
            return f"- {_names(required)} must be given where `{choice}` is {_options(options)}."
        case NotWhen(choice, options, excluded, values=values):
            refused = f"not be {_names(values, 'or')}" if values else "be left out"
            return f"- {_names(excluded, 'or')} must {refused} where `{choice}` is {_options(options)}."
        case OnlyWhen(choice, options, excluded):
            are = "is" if len(excluded) == 1 else "are"
            return f"- {_names(excluded)} {are} used where `{choice}` is {_options(options)} only."
        case Needs(name, other):
            return f"- `{name}` is used together with `{other}` only."
        case OneKind(first, second):
            kinds = f"{_names(first, 'or')} cannot be used together with {_names(second, 'or')}"
            return f"- {kinds}, which are given together or not at all."
        case NotTogether(first, second):
            return f"- {_names(first, 'or')} cannot be used together with {_names(second, 'or')}."
    raise TypeError(rule)


def _options(options: Sequence[str | bool]) -> str:
    return _names([option if isinstance(option, str) else json.dumps(option) for option in options], "or")


def _names(names: Sequence[str], word: str = "and") -> str:
    *others, last = (f"`{name}`" for name in names)
    return f"{', '.join(others)} {word} {last}" if others else last


def _format_names(row: type[Format]) -> tuple[str, ...]:
    return (
        ", ".join(f"`{name}`" for name in (row.name, *row.aliases)),
        row.title,
        " ".join(f"`{suffix}`" for suffix in row.suffixes),
        f"`{row.media_type}`",
        availability.read_support(row.name).backend or NOTHING,
        (row.writable and availability.write_support(row.name).backend) or NOTHING,
        f"`{row.becomes}`",
    )


def _format_abilities(row: type[Format]) -> tuple[str, ...]:
    return (
        f"`{row.name}`",
        _yes(row.alpha),
        _yes(row.animation),
        str(row.depth),
        str(row.quality or NOTHING),
        _yes(row.lossless),
        _yes(row.interlaces),
        f"{row.max_side:,}",
        _SCALING[row.load_scaling],
    )


def _yes(value: bool) -> str:
    return "yes" if value else NOTHING


def _text(cls: type) -> str:
    return inspect.cleandoc(cls.__doc__ or "").replace("``", "`")


def _first_sentence(cls: type) -> str:
    return _first_paragraph(cls).partition(". ")[0].removesuffix(".") + "."


def _first_paragraph(cls: type) -> str:
    return " ".join(_text(cls).split("\n\n")[0].split())


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
