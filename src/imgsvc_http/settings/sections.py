"""The sections of the settings. Each setting is declared here and nowhere else."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import re
import tempfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import attrs

from imgsvc_core.fonts import FOLDERS, SYSTEM
from imgsvc_core.limits import Limits
from imgsvc_core.spec.declaring import Boolean, Integer, Matching, Number, Text
from imgsvc_http.settings.declaring import setting
from imgsvc_http.settings.dialects import Dialects, DialectSettings
from imgsvc_http.settings.kinds import BEGINNINGS, FilePath, Host, Many, Network, Replacement, Url
from imgsvc_http.settings.origins import Origin, Origins
from imgsvc_http.settings.url_host import url_host
from imgsvc_stores import ENDPOINTS, PROVIDERS
from imgsvc_urls.dialects import climbs, url_pattern

Networks = tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]

_FERNET_KEY = Matching(r"[A-Za-z0-9_-]{43}=", "32 bytes in URL-safe base64")
_HEADER = Matching(r"[A-Za-z][A-Za-z0-9-]{0,40}", "beginning of a header name such as X-Svc")
_PERIODS = Matching(r"[a-z]{1,40}", "word such as monthly")
_WEB = ("http", "https")
QUOTA = Integer(0, 10**12)
MOST_RETRIES = 19
_NO_HOMES = (Path("/"), Path("/nonexistent"))  # of users whom a container does not know, and of nobody


def default_state_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder for the state of a user's programs, by the XDG base directory specification.

    A user without a home folder, as in some containers, has one for temporary files.
    """
    base = environ.get("XDG_STATE_HOME", "")
    if base.startswith("/"):
        return Path(base) / "imgsvc"
    try:
        home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    except RuntimeError:
        return temporary_state_folder()
    return temporary_state_folder() if home in _NO_HOMES else home / ".local/state/imgsvc"


def temporary_state_folder() -> Path:
    """Return the folder for the state of a user without a home folder."""
    base = "/tmp"
    with contextlib.suppress(FileNotFoundError):  # no such folder can be written: whoever needs one says so
        base = tempfile.gettempdir()
    return Path(base, f"imgsvc-{os.getuid()}")


@attrs.frozen(kw_only=True)
class ServerSettings:
    """Where and how the service listens."""

    state_folder: Path = setting(
        FilePath(),
        "Folder for the database, temporary pictures, certificate and master key.",
        factory=lambda: default_state_folder(os.environ),
    )
    scratch_folder: Path | None = setting(
        FilePath(optional=True),
        "Folder for temporary files of pictures that are too large for memory. When empty, a folder in "
        "the state folder.",
        default=None,
    )
    host: str = setting(Text(255), "Name or address to listen at.", default="127.0.0.1")
    port: int = setting(Integer(0, 65535), "Port to listen at. When 0, any free port.", default=8443)
    base_url: str = setting(
        Url(("https",), optional=True, bare=True),
        "Public address of the service, or of a proxy in front. When empty, it is made of host and port; "
        "127.0.0.1 and all addresses become localhost.",
        default="",
    )
    certificate: Path | None = setting(
        FilePath(optional=True),
        "Certificate chain in PEM. When empty, the service makes one for localhost and the public address.",
        default=None,
    )
    private_key: Path | None = setting(
        FilePath(optional=True), "Private key of the certificate in PEM.", default=None
    )
    plain_http: bool = setting(
        Boolean(),
        "Answer plain HTTP, too, for trials. The host must be a loopback address such as 127.0.0.1.",
        default=False,
    )
    trusted_proxies: Networks = setting(
        Many(Network()),
        "Addresses of proxies that terminate TLS. Their X-Forwarded-Proto and X-Forwarded-For are "
        "trusted, or Forwarded if both are missing.",
        default=(),
    )
    strict_transport_security: str = setting(
        Matching(r"max-age=\d{1,10}(; ?includeSubDomains)?(; ?preload)?", "max-age=SECONDS", optional=True),
        "Strict-Transport-Security header (HSTS) of all answers over TLS, such as max-age=31536000; "
        "includeSubDomains. When empty, it is not sent.",
        default="",
    )
    header_prefix: str = setting(_HEADER, "Prefix of the service's own headers.", default="X-Svc")
    header_seconds: float = setting(
        Number(0.1, 3600),
        "How long the TLS handshake of a new connection may take. The headers of its first request may "
        "take as long again.",
        unit="s",
        default=10,
    )
    idle_seconds: float = setting(
        Number(0.1, 86_400),
        "How long a connection stays open for its next request. A proxy in front should use a shorter time.",
        unit="s",
        default=75,
    )
    connections: int = setting(
        Integer(0, 10**6),
        "Open connections. When 0, half of the files that a process may open. One connection more closes "
        "the one that has been idle for longest, or is refused. No account has more requests at a time "
        "than are left for others.",
        default=0,
    )
    processes: int = setting(
        Integer(0, 1024),
        "Processes that accept connections, each with its part of the workers. When 0, one for two cores. "
        "There are never more than workers.",
        default=0,
    )
    unresponsive_seconds: float = setting(
        Number(1, 86_400),
        "A process that accepts connections is killed and replaced if it does not respond for so long. "
        "Requests on its connections are lost. After some seconds, new connections go to others.",
        unit="s",
        default=30,
    )
    connections_per_second: float = setting(
        Number(0, 10**6),
        "New connections that an address may open in a second. When 0, there is no limit. After a burst "
        "of two seconds, further ones wait for their turn. IPv6 addresses count by networks of 64 bits. "
        "Trusted proxies do not count.",
        unit="/s",
        default=50,
    )
    body_seconds: float = setting(
        Number(0.1, 3600), "How long a request body may take to arrive.", unit="s", default=60
    )
    slow_seconds: float = setting(
        Number(0.1, 3600),
        "A connection is closed if its client takes fewer than slow_bytes_per_second of a response, on "
        "average over so long.",
        unit="s",
        default=30,
    )
    slow_bytes_per_second: int = setting(
        Integer(1, 10**9), "Slowest rate at which a client may take a response.", unit="bytes/s", default=1000
    )
    response_memory_bytes: int = setting(
        Integer(2**20, 2**46),
        "Memory of each listening process for responses that clients have not taken yet. A body counts "
        "once for all clients that get it, and each connection counts 56 kB. If it is full, the slowest "
        "connections are closed. If none is slow, requests are answered 503.",
        unit="bytes",
        default=120_000_000,
    )
    upload_memory_bytes: int = setting(
        Integer(0, 2**46),
        "Memory for sources while they are processed. Sources that do not fit are kept in the state "
        "folder. A quarter of it keeps sources for a moment afterwards.",
        unit="bytes",
        default=2**27,
    )
    upload_disk_bytes: int = setting(
        Integer(2**20, 2**50),
        "Disk space for sources that do not fit into memory, counted as they arrive. No account takes "
        "more than is left for others. If it is full, requests are answered 507.",
        unit="bytes",
        default=2**33,
    )
    drain_seconds: float = setting(
        Number(0, 3600),
        "How long requests are still accepted after a signal. Meanwhile /readyz tells balancers to send "
        "no more.",
        unit="s",
        default=0,
    )
    shutdown_seconds: float = setting(
        Number(0, 3600),
        "How long running requests may take to finish after drain_seconds.",
        unit="s",
        default=30,
    )

    @property
    def scratch(self) -> Path:
        """The folder for temporary files."""
        return (self.scratch_folder or self.state_folder / "scratch").absolute()

    @property
    def public_url(self) -> str:
        """Public address of the service, without a slash at its end."""
        scheme = "http" if self.plain_http else "https"
        return (self.base_url or f"{scheme}://{url_host(self.host)}:{self.port}").rstrip("/")


@attrs.frozen(kw_only=True)
class DatabaseSettings:
    """The database of accounts, keys, watermarks and webhooks."""

    url: str = setting(
        Url(("sqlite", "postgresql"), optional=True),
        "sqlite:////path/file.db or postgresql://user:password@host/name; "
        "SQLite in the state folder when empty.",
        default="",
        secret=True,
    )


@attrs.frozen(kw_only=True)
class CacheSettings:
    """The cache of pictures that URLs ask for, and what the nodes of a service share."""

    url: str = setting(
        Url(("redis", "rediss"), optional=True),
        "Address of Redis, such as redis://host:6379/0, where the nodes count requests together. When "
        "empty, each node counts alone.",
        default="",
        secret=True,
    )
    memory_bytes: int = setting(
        Integer(0, 2**46), "Memory for cached pictures of a node.", unit="bytes", default=2**26
    )
    place: str = setting(
        Url(optional=True),
        "Any fsspec URL for cached pictures, such as s3://bucket/cache. Nodes may share it. When empty, a "
        "folder in the state folder.",
        default="",
        secret=True,
    )
    place_bytes: int = setting(
        Integer(0, 2**50),
        "Size of the cached pictures in 'cache.place'. When 0, no picture is cached there.",
        unit="bytes",
        default=2**30,
    )
    default_seconds: float = setting(
        Number(0, 2**31),
        "How long a picture is fresh if its source does not say. After that, the service asks the source "
        "if it has changed.",
        unit="s",
        default=3600,
    )
    min_seconds: float = setting(
        Number(0, 2**31),
        "How long a picture is fresh at least. A source that forbids storing is never cached.",
        unit="s",
        default=0,
    )
    max_seconds: float = setting(
        Number(0, 2**31), "How long a picture is fresh at most.", unit="s", default=2_592_000
    )
    stale_seconds: float = setting(
        Number(0, 2**31),
        "How long an old picture is still answered while its source is asked in the background.",
        unit="s",
        default=3600,
    )
    stale_error_seconds: float = setting(
        Number(0, 2**31),
        "How long an old picture is still answered if its source cannot be reached.",
        unit="s",
        default=86_400,
    )


@attrs.frozen(kw_only=True)
class TemporarySettings:
    """Temporary storage of results."""

    url: str = setting(
        Url(optional=True),
        "fsspec URL of the folder of results, such as s3://bucket/folder. When empty, a folder in the state "
        "folder.",
        default="",
        secret=True,
    )
    lifetime_seconds: float = setting(Number(1, 604_800), "How long a result stays.", unit="s", default=3600)
    call_seconds: float = setting(
        Number(0.1, 3600), "How long a call of the file system may take.", unit="s", default=60
    )


@attrs.frozen(kw_only=True)
class PermanentSettings:
    """The service's own cloud storage: results go there, and stay, unless requests say otherwise."""

    place: str = setting(
        Url(optional=True),
        "fsspec URL of a folder, such as s3://bucket/pictures. When empty, results go to temporary storage.",
        default="",
        secret=True,
    )
    base: str = setting(
        Url(_WEB, optional=True, bare=True),
        "Public address of the files in 'permanent.place', such as https://cdn.example.org/pictures.",
        default="",
    )


@attrs.frozen(kw_only=True)
class ServiceLimits(Limits):
    """What one request may cost. A request can lower the limits of pictures."""

    json_bytes: int = setting(Integer(1, 10**9), "Size of a JSON body.", unit="bytes", default=1_000_000)
    store_seconds: float = setting(
        Number(0.1, 3600), "Time to write a result into a store.", unit="s", default=60
    )


@attrs.frozen(kw_only=True)
class RateSettings:
    """Rate limits of keys, of addresses, and of the pictures that accounts pay for.

    Addresses of IPv6 count by their networks of 64 bits.
    """

    requests: int = setting(
        Integer(1, 10**9),
        "Requests in a period. They count by key, or by address if they have no key.",
        default=100_000,
    )
    misses: int = setting(
        Integer(1, 10**9),
        "Pictures by URL in a period that are made for an account. Pictures from the cache do not count.",
        default=100_000,
    )
    period_seconds: int = setting(Integer(1, 86_400), "Length of a period.", unit="s", default=900)
    pictures: int = setting(
        Integer(1, 10**9),
        "Requests of an address for pictures by URL, in a period of 'rate.pictures_period_seconds'. Make "
        "it larger if many visitors share an address.",
        default=1500,
    )
    pictures_period_seconds: int = setting(
        Integer(1, 86_400), "Length of a period of pictures by URL.", unit="s", default=60
    )
    not_counted: Networks = setting(
        Many(Network()),
        "Addresses of CDNs. Their requests for pictures by URL and for results do not count, because they "
        "serve all visitors.",
        default=(),
    )


@attrs.frozen(kw_only=True)
class AccountsSettings:
    """The account of the first run, and defaults of new ones."""

    plan: str = setting(Text(80), "Name of the subscription of a new account.", default="standard")
    period: str = setting(_PERIODS, "Billing period of that subscription.", default="monthly")
    quota: int = setting(
        QUOTA, "Pictures that a new account may make in a calendar month (UTC).", default=100_000
    )


@attrs.frozen(kw_only=True)
class FetchSettings:
    """Fetching sources from their URLs."""

    connect_seconds: float = setting(Number(0.1, 300), "Time to connect.", unit="s", default=5)
    total_seconds: float = setting(
        Number(0.1, 3600), "Time to fetch a source, with redirects.", unit="s", default=20
    )
    redirects: int = setting(Integer(0, 50), "Redirects that are followed.", default=5)
    private_allowed: tuple[str, ...] = setting(
        Many(Host()),
        "Private host names, addresses and networks that the service may fetch from and notify.",
        default=(),
    )
    layers: tuple[str, ...] = setting(
        BEGINNINGS,
        "Beginnings of the URLs of pictures that layers may name, with wildcards. Without any, pictures of "
        "layers are uploaded ones.",
        default=(),
    )
    user_agent: str = setting(
        Matching(r"[\x21-\x7e]([\x20-\x7e]{0,198}[\x21-\x7e])?", "User-Agent of printable ASCII"),
        "User-Agent of fetches and notifications.",
        default="imgsvc/1.0",
    )

    @cached_property
    def _layers(self) -> tuple[re.Pattern[str], ...]:
        return tuple(map(url_pattern, self.layers))

    def allows_layer(self, url: str) -> bool:
        """Return True if a layer may name its picture by this URL."""
        return any(pattern.match(url) for pattern in self._layers) and not climbs(url)


def _template(platform: str, fields: str, default: str) -> Any:
    doc = f"Address of a picture, or of the profile that names it, at {platform}; {fields} is filled in."
    return setting(Url(_WEB, holding=fields), doc, default=default)


def _token(platform: str, note: str = "") -> Any:
    return setting(Text(4096, minimum=0), f"Access token of {platform}{note}.", default="", secret=True)


_NEEDED = ", which is required there"


@attrs.frozen(kw_only=True)
class SocialSettings:
    """Profile pictures of social platforms."""

    facebook_url: str = _template(
        "Facebook", "{user}", "https://graph.facebook.com/v23.0/{user}/picture?type=large"
    )
    facebook_token: str = _token("Facebook", _NEEDED)
    twitter_url: str = _template(
        "Twitter",
        "{user}",
        "https://api.twitter.com/2/users/by/username/{user}?user.fields=profile_image_url",
    )
    twitter_token: str = _token("Twitter", _NEEDED)
    instagram_url: str = _template(
        "Instagram", "{user}", "https://i.instagram.com/api/v1/users/web_profile_info/?username={user}"
    )
    instagram_token: str = _token("Instagram")
    github_url: str = _template("GitHub", "{user}", "https://github.com/{user}.png")
    github_token: str = _token("GitHub")
    gravatar_url: str = _template("Gravatar", "{hash}", "https://gravatar.com/avatar/{hash}?d=404&s=2048")
    gravatar_token: str = _token("Gravatar")


@attrs.frozen(kw_only=True)
class WorkersSettings:
    """The worker processes."""

    number: int = setting(
        Integer(0, 1024),
        "Pictures that are processed at a time. When 0, one for each core of the control group, as far as "
        "its memory allows. One more process is kept ready. While several accounts need workers, there "
        "are up to twice as many.",
        default=0,
    )
    memory_bytes: int = setting(
        Integer(2**28, 2**46),
        "Memory that one worker may use. It is less if the control group does not have so much for each.",
        unit="bytes",
        default=2**31,
    )
    tasks: int = setting(
        Integer(0, 10**9), "Pictures after which a worker is replaced. When 0, never.", default=10_000
    )
    queue: int = setting(
        Integer(1, 10**6),
        "Requests that may wait for a worker. If there are more, the newest one of the account with the "
        "most waiting requests is answered 503.",
        default=64,
    )
    queue_seconds: float = setting(
        Number(0.1, 3600), "Longest wait for a worker. After that the answer is 503.", unit="s", default=10.0
    )


@attrs.frozen(kw_only=True)
class SecuritySettings:
    """Encryption at rest."""

    master_keys: tuple[str, ...] = setting(
        Many(_FERNET_KEY),
        "Fernet keys that encrypt keyfiles, signing keys and webhook secrets, newest first. All nodes "
        "need the same. When empty, the service makes one and keeps it in the state folder.",
        default=(),
        secret=True,
    )


@attrs.frozen(kw_only=True)
class StoresSettings:
    """External object stores that requests send results to."""

    endpoints: tuple[str, ...] = setting(
        Many(Replacement(ENDPOINTS, Url(_WEB, bare=True))),
        "Addresses of other stores that speak a provider's protocol, such as aws=https://minio.example.org.",
        default=(),
    )
    public_urls: tuple[str, ...] = setting(
        Many(Replacement(tuple(PROVIDERS), Url(_WEB))),
        "Addresses at which the objects of a bucket can be read, such as aws=https://cdn.example.org. "
        "output.url is such an address and the name of the object.",
        default=(),
    )


@attrs.frozen(kw_only=True)
class FontsSettings:
    """The fonts of texts in layers and drawings, beside those of the extra ``fonts``."""

    folders: tuple[Path, ...] = setting(
        Many(FilePath()), "Folders of fonts, in the formats ttf, otf, ttc and otc.", default=()
    )
    system: bool = setting(
        Boolean(),
        "Allow the fonts of the system, too. Then a text may look different on another machine.",
        default=False,
    )

    def export(self) -> None:
        """Tell the library, in this process and in those that it starts."""
        os.environ[FOLDERS] = json.dumps([str(folder.absolute()) for folder in self.folders])
        os.environ[SYSTEM] = "true" if self.system else "false"


@attrs.frozen(kw_only=True)
class MonitoringSettings:
    """Logs and metrics."""

    access_log: Literal["text", "json", "off"] = setting(
        Matching("text|json|off", "text, json or off"),
        "How each request is logged to standard error: as text or JSON in a line, or not at all.",
        default="text",
    )
    metrics_host: str = setting(
        Text(255), "Name or address at which Prometheus reads metrics, at /metrics.", default="127.0.0.1"
    )
    metrics_port: int = setting(
        Integer(0, 65535),
        "Port of the metrics, over plain HTTP and without a key. When 0, there are none.",
        default=0,
    )


@attrs.frozen(kw_only=True)
class PlaygroundSettings:
    """The pages at /playground, where requests are tried, and /dashboard, which shows an account."""

    enabled: bool = setting(
        Boolean(), "Show the pages. Their calls of the service need a key, like all others.", default=True
    )
    source_bytes: int = setting(
        Integer(2**20, 2**46),
        "Room beside temporary.url for sources of previews, which stay as long as results. A key has at most "
        "8 of them and a quarter of the bytes. The oldest go first.",
        unit="bytes",
        default=2**29,
    )


@attrs.frozen(kw_only=True)
class DeliverySettings:
    """Pictures by URL, at /1.0/image/. They need origins or signing keys."""

    origins: Mapping[str, Origin] = setting(
        Origins(),
        "Places that URLs name: a web address, an fsspec URL such as file:///srv/photos or "
        "s3://bucket/photos, or a table with url and the options of its file system, such as key and "
        "secret. As an environment variable, JSON.",
        factory=dict,
        secret=True,
    )
    unsigned: str = setting(
        Text(64, minimum=0),
        "Id of the account that pays for URLs without a signature. Such URLs may name only origins and "
        "presets. When empty, they are refused.",
        default="",
    )
    dialects: Mapping[str, DialectSettings] = setting(
        Dialects(),
        "URLs of other services that are answered below their name, such as /imgproxy/: names, or a table "
        "with the settings of each. account is the id of the account that pays, by default that of "
        "unsigned. sources are the beginnings of allowed source URLs. As an environment variable, JSON.",
        factory=dict,
        secret=True,
    )
    presets_only: bool = setting(
        Boolean(), "Allow only presets in URLs, and no other operations.", default=False
    )
    max_age: int = setting(
        Integer(0, 31_536_000),
        "How long browsers and CDNs may keep a picture. It is never longer than its URL is valid.",
        unit="s",
        default=86_400,
    )
    source_age: bool = setting(
        Boolean(),
        "Let browsers and CDNs keep a picture for as long as its source says, instead of max_age.",
        default=False,
    )
    client_hints: bool = setting(
        Boolean(),
        "Let Sec-CH-DPR, Sec-CH-Width and Save-Data choose the density, the width and the quality if a "
        "URL leaves them open.",
        default=False,
    )
    gateway_statuses: bool = setting(
        Boolean(),
        "Answer 502 if a source fails, and 504 if it does not answer in time, as gateways do. Proxies "
        "then answer with their older copy. Otherwise the answer is 424.",
        default=False,
    )
    fallback: Path | None = setting(
        FilePath(optional=True),
        "Picture that is shown instead of an error, with the status of the error. When empty, errors are "
        "JSON.",
        default=None,
    )

    @property
    def paying(self) -> dict[str, str]:
        """The ids of the accounts that pay for URLs, by the settings that name them."""
        named = {"delivery.unsigned": self.unsigned}
        for name, dialect in self.dialects.items():
            named[f"delivery.dialects.{name}.account"] = dialect.account
        return {path: account for path, account in named.items() if account}


@attrs.frozen(kw_only=True)
class WebhookSettings:
    """Notifications of finished requests."""

    seconds: float = setting(Number(0.1, 300), "Time an endpoint has to answer.", unit="s", default=10)
    retries: tuple[int, ...] = setting(
        Many(Integer(0, 604_800), most=MOST_RETRIES),
        "Seconds before each retry; 0 or none at all turns retries off.",
        unit="s",
        default=(5, 30, 300, 1800, 7200),
    )
    history_days: int = setting(Integer(1, 36_500), "How long records are kept.", unit="days", default=60)

    @property
    def waits(self) -> tuple[int, ...]:
        """The waits before each retry."""
        return tuple(wait for wait in self.retries if wait)
