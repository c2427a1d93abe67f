"""All settings of the service.

They come from a TOML file, environment variables (``IMGSVC_SECTION_NAME``) and flags, and the later ones win.
`render` writes them as a TOML file.
"""

from __future__ import annotations

import re
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import attrs

from imgsvc_core.errors import Problem, SpecError, os_reason
from imgsvc_core.spec.presets import parse_presets
from imgsvc_http.settings.declaring import (
    Setting,
    flattened,
    from_text,
    settings_of,
    toml_value,
    unknown,
    without_newline,
)
from imgsvc_http.settings.problems import setting_problem, wrong_setting
from imgsvc_http.settings.sections import (
    AccountsSettings,
    CacheSettings,
    DatabaseSettings,
    DeliverySettings,
    FetchSettings,
    FontsSettings,
    MonitoringSettings,
    PermanentSettings,
    PlaygroundSettings,
    RateSettings,
    SecuritySettings,
    ServerSettings,
    ServiceLimits,
    SocialSettings,
    StoresSettings,
    TemporarySettings,
    WebhookSettings,
    WorkersSettings,
    default_state_folder,
)
from imgsvc_http.settings.url_host import is_loopback
from imgsvc_stores import PROVIDERS

PRESETS = "presets"
FILE_VARIABLE = "IMGSVC_CONFIG"
"""The environment variable that names the settings file."""

# Kubernetes sets such variables to the addresses of services whose names begin with imgsvc. That of a service
# imgsvc-server has the name of a setting.
_OF_KUBERNETES = re.compile(r"IMGSVC_(.+_)?(SERVICE_(HOST|PORT.*)|PORT(_\d+_(TCP|UDP|SCTP).*)?)")
_ADDRESS = re.compile(r"(tcp|udp|sctp)://.*")
_IN_FILE = "_FILE"


@attrs.frozen(kw_only=True)
class Settings:
    """All settings; `load` reads them."""

    server: ServerSettings = attrs.field(factory=ServerSettings)
    database: DatabaseSettings = attrs.field(factory=DatabaseSettings)
    cache: CacheSettings = attrs.field(factory=CacheSettings)
    temporary: TemporarySettings = attrs.field(factory=TemporarySettings)
    permanent: PermanentSettings = attrs.field(factory=PermanentSettings)
    limits: ServiceLimits = attrs.field(factory=ServiceLimits)
    rate: RateSettings = attrs.field(factory=RateSettings)
    accounts: AccountsSettings = attrs.field(factory=AccountsSettings)
    fetch: FetchSettings = attrs.field(factory=FetchSettings)
    social: SocialSettings = attrs.field(factory=SocialSettings)
    workers: WorkersSettings = attrs.field(factory=WorkersSettings)
    security: SecuritySettings = attrs.field(factory=SecuritySettings)
    fonts: FontsSettings = attrs.field(factory=FontsSettings)
    stores: StoresSettings = attrs.field(factory=StoresSettings)
    webhooks: WebhookSettings = attrs.field(factory=WebhookSettings)
    delivery: DeliverySettings = attrs.field(factory=DeliverySettings)
    monitoring: MonitoringSettings = attrs.field(factory=MonitoringSettings)
    playground: PlaygroundSettings = attrs.field(factory=PlaygroundSettings)
    presets: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict, converter=parse_presets)
    """Parts of requests by name, which requests name as ``preset``; a file has them as ``[presets.NAME]``."""

    def __attrs_post_init__(self) -> None:
        if (self.server.certificate is None) != (self.server.private_key is None):
            missing = "private_key" if self.server.private_key is None else "certificate"
            expected = "must be given too: certificate and key belong together"
            raise wrong_setting(f"server.{missing}", expected)
        if bool(self.permanent.place) != bool(self.permanent.base):
            missing = "base" if self.permanent.place else "place"
            expected = "must be given too: a place and its address belong together"
            raise wrong_setting(f"permanent.{missing}", expected)
        for name, dialect in self.delivery.dialects.items():
            if not (dialect.account or self.delivery.unsigned):
                expected = (
                    "must be the id of the account that pays, or 'delivery.unsigned' must be, got neither"
                )
                raise wrong_setting(f"delivery.dialects.{name}.account", expected)
        if self.server.plain_http and not is_loopback(self.server.host):
            expected = "must be a loopback address together with 'server.plain_http'"
            raise wrong_setting("server.host", f"{expected}, got '{self.server.host}'")

    @property
    def database_url(self) -> str:
        """The URL of the database."""
        file = (self.server.state_folder / "imgsvc.db").absolute()
        return self.database.url or f"sqlite:///{quote(str(file))}"

    @property
    def temporary_url(self) -> str:
        """The fsspec URL of temporary storage."""
        folder = (self.server.state_folder / "temporary").absolute()
        return self.temporary.url or f"file://{folder}"  # fsspec takes percent signs as they are

    @property
    def cache_place(self) -> str:
        """The fsspec URL of the cache."""
        folder = (self.server.state_folder / "cache").absolute()
        return self.cache.place or f"file://{folder}"

    @classmethod
    def load(
        cls,
        file: Path | None = None,
        environ: Mapping[str, str] | None = None,
        flags: Mapping[str, object] | None = None,
    ) -> Settings:
        """Read settings from a TOML file, environment variables and flags, all of them optional.

        Args:
            file: the TOML file; by default the one that ``IMGSVC_CONFIG`` names.
            environ: environment variables, such as ``os.environ``.
            flags: values by path, such as ``{"server.port": 443}``; texts are read like variables.

        Raises:
            SpecError: lists everything that is wrong, and where.
        """
        environ = {} if environ is None else environ
        named = environ.get(FILE_VARIABLE)
        problems: list[Problem] = []
        values: dict[str, Any] = {"server.state_folder": default_state_folder(environ)}
        file = file or (Path(named) if named else None)
        for path, value, origin in (
            *_in_file(file, problems),
            *_in_environ(environ, problems),
            *_in_flags(flags or {}),
        ):
            if path not in SETTINGS and path != PRESETS:
                problems.append(_unknown(path, origin))
                continue
            try:
                values[path] = (
                    parse_presets(value) if path == PRESETS else SETTINGS[path].parse(value, origin)
                )
            except SpecError as error:
                problems += error.problems
        if problems:
            raise SpecError(problems)
        sections = {name: section(**_below(name, values)) for name, section in SECTIONS.items()}
        return cls(**sections, presets=values.get(PRESETS, {}))


SECTIONS: dict[str, type] = {
    field.name: field.default.factory  # type: ignore[union-attr]
    for field in attrs.fields(Settings)
    if field.name != PRESETS
}
"""The sections by name, in the order of declaration."""

SETTINGS: dict[str, Setting] = {
    item.path: item for name, section in SECTIONS.items() for item in settings_of(name, section).values()
}
"""Every setting by its path, ``section.name``."""

_OTHER_VARIABLES = {
    FILE_VARIABLE,
    "IMGSVC_SIGNING_SECRET",
    *(f"IMGSVC_STORE_{name.upper()}" for store in PROVIDERS.values() for name in store.credentials),
}
"""Variables that are no settings: the settings file, and secrets of ``imgsvc url`` and ``imgsvc process``."""

_BY_VARIABLE = {item.variable: item for item in SETTINGS.values()}


def render(settings: Settings) -> str:
    """Return settings as a TOML file with their documentation and with masked secrets."""
    blocks = []
    for name, section in SECTIONS.items():
        heading, _, _ = (section.__doc__ or "").partition("\n")  # there is none with python -OO
        lines = [f"# {heading}", f"[{name}]"]
        for key, item in settings_of(name, section).items():
            unit = f" ({item.unit})" if item.unit else ""
            comment = textwrap.wrap(f"{item.doc}{unit}", 96, initial_indent="# ", subsequent_indent="# ")
            value = toml_value(item.masked(getattr(getattr(settings, name), key)))
            lines += [*comment, f"{key} = {value}"]
        blocks.append("\n".join(lines))
    for name, preset in settings.presets.items():
        lines = [f"[{PRESETS}.{name}]", *(f"{key} = {toml_value(part)}" for key, part in preset.items())]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


_Found = Iterator[tuple[str, Any, str]]


def _in_file(file: Path | None, problems: list[Problem]) -> _Found:
    if file is None:
        return
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        problems.append(Problem("", f"The settings file '{file}' must be readable TOML: {os_reason(error)}"))
        return
    for path, value in flattened(document, SECTIONS).items():
        yield path, value, f"the file {file}"


def _in_environ(environ: Mapping[str, str], problems: list[Problem]) -> _Found:
    for name, text in sorted(environ.items()):
        if not name.startswith("IMGSVC_") or name in _OTHER_VARIABLES:
            continue
        setting = name.removesuffix(_IN_FILE)
        if _OF_KUBERNETES.fullmatch(name) and (name not in _BY_VARIABLE or _ADDRESS.fullmatch(text)):
            continue
        if name in _BY_VARIABLE:
            item = _BY_VARIABLE[name]
            yield item.path, from_text(item.kind, without_newline(text)), f"the environment variable {name}"
        elif setting in _BY_VARIABLE:
            item = _BY_VARIABLE[setting]
            try:
                text = Path(text).read_text(encoding="utf-8")
            except (OSError, ValueError) as error:
                message = f"The file '{text}' that {name} names must be readable text: {error}"
                problems.append(Problem(item.path, message))
                continue
            yield item.path, from_text(item.kind, without_newline(text)), f"the file that {name} names"
        else:
            yield name, text, "the environment"


def _in_flags(flags: Mapping[str, object]) -> _Found:
    for path, value in flags.items():
        known = path in SETTINGS and isinstance(value, str)
        yield path, from_text(SETTINGS[path].kind, str(value)) if known else value, "the flags"


def _unknown(path: str, origin: str) -> Problem:
    if path.startswith("IMGSVC_"):
        return unknown("environment variable", path, _BY_VARIABLE, origin)
    if path in SECTIONS:
        return setting_problem(path, f"must be a table of settings, in {origin}")
    return unknown("setting", path, [*SETTINGS, *SECTIONS], origin)


def _below(section: str, values: Mapping[str, Any]) -> dict[str, Any]:
    head = f"{section}."
    return {path.removeprefix(head): value for path, value in values.items() if path.startswith(head)}
