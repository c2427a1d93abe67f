"""The sections of the settings. Each setting is declared here and nowhere else."""

from __future__ import annotations

import ipaddress
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import attrs

from imgsvc_core.limits import Limits
from imgsvc_core.spec.declaring import Boolean, Integer, Matching, Number, Text
from imgsvc_http.settings.declaring import setting
from imgsvc_http.settings.dialects import Dialects, DialectSettings
from imgsvc_http.settings.kinds import FilePath, Host, Many, Network, Replacement, Url
from imgsvc_http.settings.origins import Origin, Origins
from imgsvc_http.settings.url_host import url_host
from imgsvc_stores import ENDPOINTS, PROVIDERS

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
    return Path(tempfile.gettempdir(), f"imgsvc-{os.getuid()}")


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
        "Folder for temporary files of pictures that are too large for memory while they are processed; one "
        "in the state folder when empty.",
        default=None,
    )
    host: str = setting(Text(255), "Name or address to listen at.", default="127.0.0.1")
    port: int = setting(Integer(0, 65535), "Port to listen at; 0 takes a free one.", default=8443)
    base_url: str = setting(
        Url(("https",), optional=True, bare=True),
        "Public address of the service or of a proxy in front; that of the host and the port when empty, "
        "with localhost for 127.0.0.1 and for all addresses.",
        default="",
    )
    certificate: Path | None = setting(
        FilePath(optional=True),
        "Certificate chain in PEM; one for localhost and the public address is made when empty.",
        default=None,
    )
    private_key: Path | None = setting(
        FilePath(optional=True), "Private key of the certificate in PEM.", default=None
    )
    plain_http: bool = setting(
        Boolean(),
        "Answer plain HTTP too, for trials; the host must be a loopback address such as 127.0.0.1.",
        default=False,
    )
    trusted_proxies: Networks = setting(
        Many(Network()),
        "Addresses of proxies that terminate TLS, whose X-Forwarded-Proto and X-Forwarded-For are trusted; "
        "where both are missing, Forwarded is.",
        default=(),
    )
    strict_transport_security: str = setting(
        Matching(r"max-age=\d{1,10}(; ?includeSubDomains)?(; ?preload)?", "max-age=SECONDS", optional=True),
        "Strict-Transport-Security header (HSTS) of all answers over TLS, such as max-age=31536000; "
        "includeSubDomains; none when empty.",
        default="",
    )
    header_prefix: str = setting(_HEADER, "Prefix of the service's own headers.", default="X-Svc")
    header_seconds: float = setting(
        Number(0.1, 3600),
        "How long a new connection may take for its TLS handshake, and again for the headers of its first "
        "request.",
        unit="s",
        default=10,
    )
    idle_seconds: float = setting(
        Number(0.1, 86_400),
        "How long a connection stays open for its next request; make it longer than in a proxy in front.",
        unit="s",
        default=75,
    )
    connections: int = setting(
        Integer(0, 10**6),
        "Open connections; one more closes the one that has been idle for longest, or is refused. No account "
        "has more requests at a time than are left for others. Half of the files that a process may open "
        "when 0.",
        default=0,
    )
    processes: int = setting(
        Integer(0, 1024),
        "Processes that accept connections, each with its part of the workers: never more than there are "
        "workers. One for two cores when 0.",
        default=0,
    )
    unresponsive_seconds: float = setting(
        Number(1, 86_400),
        "How long a process that accepts connections may not respond until it is killed and replaced, which "
        "costs the requests on its connections. After some seconds, others get the new connections.",
        unit="s",
        default=30,
    )
    connections_per_second: float = setting(
        Number(0, 10**6),
        "New connections that an address may open in a second; more wait for their turn after a burst of two "
        "seconds. Addresses of IPv6 count by their networks of 64 bits, trusted proxies do not count, and "
        "there is no limit when 0.",
        unit="/s",
        default=50,
    )
    body_seconds: float = setting(
        Number(0.1, 3600), "How long a request body may take to arrive.", unit="s", default=60
    )
    slow_seconds: float = setting(
        Number(0.1, 3600),
        "How long a client may take less of a response than slow_bytes_per_second, on the average.",
        unit="s",
        default=30,
    )
    slow_bytes_per_second: int = setting(
        Integer(1, 10**9),
        "What a client must take of a response that waits for it; slower connections are closed.",
        unit="bytes/s",
        default=1000,
    )
    response_memory_bytes: int = setting(
        Integer(2**20, 2**46),
        "Memory of each listening process for bodies of responses until clients have them: each counts once "
        "for all who get it, and each connection with 56 kB. Beyond that the connections are closed that "
        "take the fewest bytes a second, and if none is slow, requests are answered 503.",
        unit="bytes",
        default=120_000_000,
    )
    upload_memory_bytes: int = setting(
        Integer(0, 2**46),
        "Memory for sources while they are processed; those that do not fit are kept in the state folder. A "
        "quarter of it keeps sources for a moment afterwards.",
        unit="bytes",
        default=2**27,
    )
    upload_disk_bytes: int = setting(
        Integer(2**20, 2**50),
        "Disk for those sources, counted as they arrive. No account takes more than is left for others; "
        "beyond that requests are answered 507.",
        unit="bytes",
        default=2**33,
    )
    drain_seconds: float = setting(
        Number(0, 3600),
        "How long to accept requests after a signal, while /readyz tells balancers to send no more.",
        unit="s",
        default=0,
    )
    shutdown_seconds: float = setting(
        Number(0, 3600), "How long requests in flight may take to finish after that.", unit="s", default=30
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
        "redis://host:6379/0 to count requests of all nodes together; each node counts alone when empty.",
        default="",
        secret=True,
    )
    memory_bytes: int = setting(
        Integer(0, 2**46), "Memory for cached pictures of a node.", unit="bytes", default=2**26
    )
    place: str = setting(
        Url(optional=True),
        "Any fsspec URL for cached pictures, such as s3://bucket/cache, which nodes may share; a folder in "
        "the state folder when empty.",
        default="",
        secret=True,
    )
    place_bytes: int = setting(
        Integer(0, 2**50), "Bytes of cached pictures there; none when 0.", unit="bytes", default=2**30
    )
    default_seconds: float = setting(
        Number(0, 2**31),
        "How long a picture is fresh if its source says nothing about it; after that the source is asked "
        "whether it has changed.",
        unit="s",
        default=3600,
    )
    min_seconds: float = setting(
        Number(0, 2**31),
        "How long a picture is fresh at least. Sources that forbid to store them are never cached.",
        unit="s",
        default=0,
    )
    max_seconds: float = setting(
        Number(0, 2**31), "How long a picture is fresh at most.", unit="s", default=2_592_000
    )
    stale_seconds: float = setting(
        Number(0, 2**31),
        "How long after that it is still answered while its source is asked in the background.",
        unit="s",
        default=3600,
    )
    stale_error_seconds: float = setting(
        Number(0, 2**31),
        "How long after that it is still answered if its source cannot be reached.",
        unit="s",
        default=86_400,
    )


@attrs.frozen(kw_only=True)
class TemporarySettings:
    """Temporary storage of results."""

    url: str = setting(
        Url(optional=True),
        "Any fsspec URL, such as s3://bucket/folder; a folder in the state folder when empty.",
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
        "Any fsspec URL of a folder, such as s3://bucket/pictures; without one, results go to temporary "
        "storage.",
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
        Integer(1, 10**9), "Requests of a key, or of an address without one, in a period.", default=100_000
    )
    misses: int = setting(
        Integer(1, 10**9),
        "Pictures by URL in a period that are made for an account, as the cache does not have them.",
        default=100_000,
    )
    period_seconds: int = setting(Integer(1, 86_400), "Length of a period.", unit="s", default=900)
    pictures: int = setting(
        Integer(1, 10**9),
        "Requests of an address for pictures by URL in a period of theirs. Make it larger if many visitors "
        "share an address.",
        default=1500,
    )
    pictures_period_seconds: int = setting(
        Integer(1, 86_400), "Length of a period of pictures by URL.", unit="s", default=60
    )
    not_counted: Networks = setting(
        Many(Network()),
        "Addresses of CDNs, whose requests for pictures by URL and for results do not count, as they carry "
        "those of all visitors.",
        default=(),
    )


@attrs.frozen(kw_only=True)
class AccountsSettings:
    """The account of the first run, and defaults of new ones."""

    plan: str = setting(Text(80), "Name of its subscription.", default="standard")
    period: str = setting(_PERIODS, "Billing period of its subscription.", default="monthly")
    quota: int = setting(QUOTA, "Pictures in a calendar month (UTC).", default=100_000)


@attrs.frozen(kw_only=True)
class FetchSettings:
    """Fetching sources from their URLs."""

    connect_seconds: float = setting(Number(0.1, 300), "Time to connect.", unit="s", default=5)
    total_seconds: float = setting(Number(0.1, 3600), "Time for everything.", unit="s", default=20)
    redirects: int = setting(Integer(0, 50), "Redirects that are followed.", default=5)
    private_allowed: tuple[str, ...] = setting(
        Many(Host()),
        "Private host names, addresses and networks that may be fetched from and notified.",
        default=(),
    )
    user_agent: str = setting(
        Matching(r"[\x21-\x7e]([\x20-\x7e]{0,198}[\x21-\x7e])?", "User-Agent of printable ASCII"),
        "User-Agent of fetches and notifications.",
        default="imgsvc/1.0",
    )


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
        "Pictures that are processed at a time; when 0, one for each core that the control group allows, as "
        "far as it has memory for them. One process more is kept ready, and there are up to twice as many "
        "while several accounts need them.",
        default=0,
    )
    memory_bytes: int = setting(
        Integer(2**28, 2**46),
        "Most data that one process may hold; less if the control group has less memory for each.",
        unit="bytes",
        default=2**31,
    )
    tasks: int = setting(
        Integer(0, 10**9), "Pictures after which a process is replaced; never when 0.", default=10_000
    )
    queue: int = setting(
        Integer(1, 10**6),
        "Requests that may wait for a worker. Beyond that, the account with the most waiting requests "
        "has its newest one answered 503.",
        default=64,
    )
    queue_seconds: float = setting(
        Number(0.1, 3600), "Longest wait for a worker; after it the answer is 503.", unit="s", default=10.0
    )


@attrs.frozen(kw_only=True)
class SecuritySettings:
    """Encryption at rest."""

    master_keys: tuple[str, ...] = setting(
        Many(_FERNET_KEY),
        "Fernet keys that encrypt keyfiles, signing keys and webhook secrets, newest first; several nodes "
        "need the same. One is made and kept in the state folder when there is none.",
        default=(),
        secret=True,
    )


@attrs.frozen(kw_only=True)
class IdempotencySettings:
    """Answers to repeated requests."""

    hours: float = setting(
        Number(0.01, 8760), "How long an answer is repeated for its Idempotency-Key.", unit="h", default=24
    )


@attrs.frozen(kw_only=True)
class StoresSettings:
    """External object stores that requests send results to."""

    endpoints: tuple[str, ...] = setting(
        Many(Replacement(ENDPOINTS, Url(_WEB, bare=True))),
        "Addresses that replace a provider's, for other stores that speak its protocol, such as "
        "aws=https://minio.example.org.",
        default=(),
    )
    public_urls: tuple[str, ...] = setting(
        Many(Replacement(tuple(PROVIDERS), Url(_WEB))),
        "Addresses where the objects of a provider's bucket are read, such as aws=https://cdn.example.org; "
        "output.url begins with them, and the object's name follows.",
        default=(),
    )
    sessions: int = setting(
        Integer(1, 10_000),
        "Connections to stores that are kept open, one for each set of credentials.",
        default=64,
    )


@attrs.frozen(kw_only=True)
class MonitoringSettings:
    """What the service tells of itself."""

    access_log: Literal["text", "json", "off"] = setting(
        Matching("text|json|off", "text, json or off"),
        "How each request is logged to standard error: as text or JSON in a line, or not at all.",
        default="text",
    )
    metrics_host: str = setting(
        Text(255), "Name or address at which Prometheus reads metrics, at /metrics.", default="127.0.0.1"
    )
    metrics_port: int = setting(
        Integer(0, 65535), "Port of the metrics, over plain HTTP and without a key; none when 0.", default=0
    )


@attrs.frozen(kw_only=True)
class PlaygroundSettings:
    """The pages at /playground, where requests are tried, and /dashboard, which shows an account."""

    enabled: bool = setting(
        Boolean(), "Show the pages. What they ask of the service needs a key, as always.", default=True
    )


@attrs.frozen(kw_only=True)
class DeliverySettings:
    """Pictures by URL, at /1.0/image/. Without origins and signing keys there are none."""

    origins: Mapping[str, Origin] = setting(
        Origins(),
        "Places that URLs name: a web address, or any fsspec URL such as file:///srv/photos or "
        "s3://bucket/photos, or a table with url and the options of its file system, such as key and secret; "
        "JSON in a variable.",
        factory=dict,
        secret=True,
    )
    unsigned: str = setting(
        Text(64, minimum=0),
        "Id of the account that pays for URLs without a signature, which may name only origins and presets; "
        "such URLs are refused when empty.",
        default="",
    )
    dialects: Mapping[str, DialectSettings] = setting(
        Dialects(),
        "URLs of other services that are answered below their name, such as /imgproxy/: names, or a table "
        "with the settings of each; account is the id of the account that pays, by default that of unsigned; "
        "sources are beginnings of URLs of sources; JSON in a variable.",
        factory=dict,
        secret=True,
    )
    presets_only: bool = setting(
        Boolean(), "Whether URLs may name presets only, and no operations of their own.", default=False
    )
    max_age: int = setting(
        Integer(0, 31_536_000),
        "How long browsers and CDNs may keep a picture; never longer than its URL is valid.",
        unit="s",
        default=86_400,
    )
    source_age: bool = setting(
        Boolean(),
        "Whether they may keep it for as long as its source says, if it does, in place of max_age.",
        default=False,
    )
    client_hints: bool = setting(
        Boolean(),
        "Whether Sec-CH-DPR, Sec-CH-Width and Save-Data give the density, the width and the quality that a "
        "URL leaves open.",
        default=False,
    )
    gateway_statuses: bool = setting(
        Boolean(),
        "Whether a source that fails is 502, or 504 if it does not answer in time, as of any gateway, so "
        "that proxies answer with what they kept of it; 424 otherwise.",
        default=False,
    )
    fallback: Path | None = setting(
        FilePath(optional=True),
        "Picture that is shown instead of an error, with its status; errors are JSON when empty.",
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
