"""Settings: declared once, read strictly from file, environment and flags, written without secrets."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from imgsvc_core.errors import SpecError
from imgsvc_core.limits import Limits
from imgsvc_core.spec.store.declarations import ENDPOINTS
from imgsvc_http.fetching.fetcher import Fetcher
from imgsvc_http.fetching.origins import Origins
from imgsvc_http.fetching.shared_sources import SharedSources
from imgsvc_http.settings import (
    SECTIONS,
    SETTINGS,
    FetchSettings,
    Origin,
    ServerSettings,
    Settings,
    SocialSettings,
    render,
)
from imgsvc_http.settings.declaring import MASK, from_text
from imgsvc_http.settings.sections import default_state_folder
from imgsvc_http.state.engine import create_engine
from imgsvc_http.storage.source_files import SourceFiles
from imgsvc_http.storage.temporary import TemporaryStorage
from imgsvc_stores import PROVIDERS, providers
from tests.support.plugins import install

KEY = "A" * 43 + "="
HOME = {"HOME": "/home/someone"}


def _written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "imgsvc.toml"
    file.write_text(text, encoding="utf-8")
    return file


def _problems(*arguments: Any) -> dict[str, str]:
    with pytest.raises(SpecError) as caught:
        Settings.load(*arguments)
    return {problem.path: problem.message for problem in caught.value.problems}


def test_defaults_are_those_of_the_interface() -> None:
    settings = Settings.load(None, HOME)
    assert settings.server.public_url == "https://localhost:8443"
    assert settings.server.state_folder == Path("/home/someone/.local/state/imgsvc")
    assert settings.database_url == "sqlite:////home/someone/.local/state/imgsvc/imgsvc.db"
    assert settings.temporary_url == "file:///home/someone/.local/state/imgsvc/temporary"
    assert (settings.rate.requests, settings.rate.period_seconds) == (100_000, 900)
    assert settings.temporary.lifetime_seconds == 3600
    assert (settings.webhooks.seconds, settings.webhooks.history_days) == (10, 60)
    assert settings.webhooks.retries == (5, 30, 300, 1800, 7200)
    assert settings.fetch.redirects == 5
    assert settings.fetch.user_agent == "imgsvc/1.0"


def test_plain_http_is_for_one_machine_only() -> None:
    plain = Settings.load(None, HOME, {"server.plain_http": "True"})
    assert plain.server.public_url == "http://localhost:8443"
    for host in ("0.0.0.0", "192.0.2.1", "example.org", "::"):
        with pytest.raises(SpecError, match="must be a loopback address"):
            Settings.load(None, HOME, {"server.plain_http": "true", "server.host": host})
    for host in ("127.0.0.2", "::1", "localhost"):
        Settings.load(None, HOME, {"server.plain_http": "true", "server.host": host})


def test_limits_are_those_of_the_core() -> None:
    settings = Settings.load(None, HOME)
    assert all(getattr(settings.limits, name) == value for name, value in attrs.asdict(Limits()).items())
    assert {f"limits.{name}" for name in attrs.fields_dict(Limits)} < set(SETTINGS)
    lifted = Settings.load(None, {**HOME, "IMGSVC_LIMITS_FRAMES": "none"}, {"limits.seconds": "2.5"})
    assert lifted.limits.frames is None
    assert lifted.limits.seconds == 2.5
    assert set(_problems(None, HOME, {"limits.seconds": 0, "limits.frames": 1.5})) == {
        "limits.seconds",
        "limits.frames",
    }


def test_the_state_folder_follows_the_xdg_specification() -> None:
    assert Settings.load(None, {"XDG_STATE_HOME": "/var/state", **HOME}).server.state_folder == Path(
        "/var/state/imgsvc"
    )
    relative = Settings.load(None, {"XDG_STATE_HOME": "state", **HOME})
    assert relative.server.state_folder == Path("/home/someone/.local/state/imgsvc")


@pytest.mark.parametrize("name", ["a b", "a%20b", "a%b", "a?b=c", "a#b", "büro", "a;b,c", "a*[b]"])
def test_the_state_folder_holds_everything_whatever_its_name(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    settings = Settings(server=ServerSettings(state_folder=folder))
    assert create_engine(settings.database_url).url.database == str(folder / "imgsvc.db")
    assert asyncio.run(TemporaryStorage(settings.temporary_url, 60).sweep(datetime.now(UTC))) == 0
    assert list(tmp_path.iterdir()) == [folder]
    assert (folder / "temporary").is_dir()


def test_flags_win_over_environment_and_environment_over_file(tmp_path: Path) -> None:
    file = _written(tmp_path, '[server]\nport = 1\nhost = "a"\nheader_prefix = "X-File"\n')
    environ = {**HOME, "IMGSVC_SERVER_PORT": "2", "IMGSVC_SERVER_HOST": "b"}
    server = Settings.load(file, environ, {"server.port": "3"}).server
    assert (server.port, server.host, server.header_prefix) == (3, "b", "X-File")


def test_the_environment_can_name_the_file(tmp_path: Path) -> None:
    file = _written(tmp_path, "[server]\nport = 1\n")
    assert Settings.load(None, {**HOME, "IMGSVC_CONFIG": str(file)}).server.port == 1
    assert "must be readable TOML" in _problems(None, {"IMGSVC_CONFIG": f"{file}.missing"})[""]


def test_everything_wrong_is_told_at_once_with_its_origin(tmp_path: Path) -> None:
    file = _written(
        tmp_path,
        '[server]\nport = "x"\nhots = "a"\n[sever]\nport = 1\n[rate]\nrequests = true\n'
        '[fetch]\nprivate_allowed = "localhost"\nredirects = nan\n',
    )
    environ = {**HOME, "IMGSVC_SERVER_PROT": "1", "IMGSVC_WORKERS_QUEUE": "0"}
    problems = _problems(file, environ, {"server.shutdown_seconds": -1, "nonsense": "1", "server": 5})
    assert set(problems) == {
        "server.port", "server.hots", "sever", "rate.requests", "fetch.private_allowed", "fetch.redirects",
        "IMGSVC_SERVER_PROT", "workers.queue", "server.shutdown_seconds", "nonsense", "server",
    }  # fmt: skip
    assert problems["server.port"] == (
        f"Setting 'server.port' must be integer within 0 to 65535 range, got \"x\" in the file {file}"
    )
    assert "did you mean 'server.host'?" in problems["server.hots"]
    assert "did you mean 'server'?" in problems["sever"]
    assert "did you mean 'IMGSVC_SERVER_PORT'?" in problems["IMGSVC_SERVER_PROT"]
    assert problems["workers.queue"].endswith("got 0 in the environment variable IMGSVC_WORKERS_QUEUE")
    assert problems["server.shutdown_seconds"].endswith("got -1 in the flags")


@pytest.mark.parametrize("text", ["[server", "a = 1\na = 2", "\x00"])
def test_files_that_are_no_toml(tmp_path: Path, text: str) -> None:
    assert str(tmp_path / "imgsvc.toml") in _problems(_written(tmp_path, text), HOME)[""]


def test_wrong_values_are_told_even_where_another_wins(tmp_path: Path) -> None:
    file = _written(tmp_path, "[server]\nport = -1\n")
    assert set(_problems(file, HOME, {"server.port": 5})) == {"server.port"}


def test_variables_of_kubernetes_and_of_others_are_left_alone() -> None:
    foreign = {
        "IMGSVC_SERVICE_HOST": "10.0.0.1", "IMGSVC_SERVICE_PORT_HTTPS": "443", "IMGSVC_PORT": "tcp://10.0.0.1",
        "IMGSVC_PORT_443_TCP_ADDR": "10.0.0.1", "_IMGSVC_COMPLETE": "bash_source", "PATH": "/bin",
    }  # fmt: skip
    assert Settings.load(None, {**HOME, **foreign}) == Settings.load(None, HOME)


@pytest.mark.parametrize(
    ("name", "text", "port"),
    [
        ("IMGSVC_SERVER_PORT", "tcp://10.0.0.1:8443", 8443),
        ("IMGSVC_SERVER_PORT", "udp://[fd00::1]:53", 8443),
        ("IMGSVC_SERVER_PORT_8443_SCTP_PORT", "8443", 8443),
        ("IMGSVC_SERVER_PORT", "9443", 9443),
        ("IMGSVC_SERVER_PORT", "9443\n", 9443),
    ],
)
def test_a_port_is_not_taken_for_the_address_of_a_service(name: str, text: str, port: int) -> None:
    assert Settings.load(None, {**HOME, name: text}).server.port == port


def test_every_setting_of_that_kind_is_safe_from_services() -> None:
    links = {item.variable: "tcp://10.0.0.1:80" for item in SETTINGS.values() if item.path.endswith("_port")}
    assert links
    assert Settings.load(None, {**HOME, **links}) == Settings.load(None, HOME)


def test_secrets_come_from_files_without_their_last_newline(tmp_path: Path) -> None:
    url, keys = "postgresql://user:secret@db/imgsvc", tmp_path / "keys"
    (tmp_path / "url").write_text(f"{url}\n")
    keys.write_bytes(f"{KEY},{KEY}\r\n".encode())
    environ = {
        **HOME,
        "IMGSVC_DATABASE_URL_FILE": str(tmp_path / "url"),
        "IMGSVC_SECURITY_MASTER_KEYS_FILE": str(keys),
        "IMGSVC_SOCIAL_GITHUB_TOKEN": "token\n",
    }
    settings = Settings.load(None, environ)
    assert settings.database.url == url
    assert settings.security.master_keys == (KEY, KEY)
    assert settings.social.github_token == "token"


WITHOUT_HOME = """
import os, tempfile
from imgsvc_http.settings import Settings
from imgsvc_http.storage.source_files import SourceFiles
from tests.support.plugins import install
tempfile.tempdir = "/var/temporary"
os.environ.pop("HOME", None)
os.setuid(54321)
print(Settings.load(None, {"HOME": ""}).server.state_folder)
print(Settings.load(None, {"HOME": "/"}).server.state_folder)
print(Settings.load(None, {}, {"server.state_folder": "/srv/state"}).server.state_folder)
try:
    Settings.load(None, {}, {"server.state_folder": "~/state"})
except Exception as error:
    print(error)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become a user without a home folder")
def test_a_user_without_a_home_folder_has_a_state_folder_all_the_same() -> None:
    found = subprocess.check_output([sys.executable, "-c", WITHOUT_HOME], text=True).splitlines()
    assert found[:3] == ["/var/temporary/imgsvc-54321", "/var/temporary/imgsvc-54321", "/srv/state"]
    assert "Setting 'server.state_folder' must be path" in found[3]


def test_a_machine_without_any_temporary_folder_has_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose root is read-only: a state folder that is named needs nothing else."""

    def missing() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "gettempdir", missing)
    assert default_state_folder({"HOME": "/"}) == Path(f"/tmp/imgsvc-{os.getuid()}")
    settings = Settings.load(None, {"HOME": "/"}, {"server.state_folder": "/srv/state"})
    assert settings.server.state_folder == Path("/srv/state")


def test_files_of_values_are_read_strictly(tmp_path: Path) -> None:
    (tmp_path / "port").write_text("many\n")
    environ = {"IMGSVC_SERVER_PORT_FILE": str(tmp_path / "port"), "IMGSVC_DATABASE_URL_FILE": "/missing"}
    found = _problems(None, {**HOME, **environ})
    assert found["server.port"].endswith('got "many" in the file that IMGSVC_SERVER_PORT_FILE names')
    assert "The file '/missing' that IMGSVC_DATABASE_URL_FILE names must be readable" in found["database.url"]
    assert "IMGSVC_SERVER_PORK_FILE" in _problems(None, {**HOME, "IMGSVC_SERVER_PORK_FILE": "x"})


@pytest.mark.parametrize("path", SETTINGS)
def test_every_setting_is_documented_and_can_be_set_everywhere(path: str, tmp_path: Path) -> None:
    item = SETTINGS[path]
    assert item.doc.endswith(".")
    section, _, name = path.partition(".")
    settings = Settings.load(None, HOME)
    plain = item.kind.unparse(getattr(getattr(settings, section), name))
    text = plain if isinstance(plain, str) else json.dumps(plain)
    assert item.variable == f"IMGSVC_{section}_{name}".upper()
    assert item.kind.parse(from_text(item.kind, text)) == getattr(getattr(settings, section), name)
    assert Settings.load(None, {**HOME, item.variable: text}) == settings
    assert Settings.load(None, HOME, {path: text}) == settings


def test_variables_are_unambiguous() -> None:
    assert len({item.variable for item in SETTINGS.values()}) == len(SETTINGS)


def test_what_is_printed_loads_back(tmp_path: Path) -> None:
    settings = Settings.load(
        None,
        HOME,
        {
            "server.trusted_proxies": "10.0.0.0/8, ::1",
            "server.certificate": "/etc/cert.pem",
            "server.private_key": "/etc/key.pem",
            "fetch.private_allowed": '["intranet", "10.1.0.0/16"]',
            "limits.frames": "none",
            "limits.seconds": "0.25",
            "webhooks.retries": "",
        },
    )
    assert settings.server.trusted_proxies == (
        ipaddress.ip_network("10.0.0.0/8"),
        ipaddress.ip_network("::1/128"),
    )
    assert settings.webhooks.retries == ()
    text = render(settings)
    assert Settings.load(_written(tmp_path, text), {"HOME": "/other"}) == settings
    for section in SECTIONS:
        assert f"[{section}]\n" in text
    assert "\n# Port to listen at. When 0, any free port.\nport = 8443\n" in text
    assert "\n# Size of a JSON body. (bytes)\njson_bytes = 1000000\n" in text


def test_settings_are_written_without_docstrings_too() -> None:
    command = ["-OO", "-m", "imgsvc_cli", "serve", "--print-config"]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert set(tomllib.loads(done.stdout)) == set(SECTIONS)


@given(
    plan=st.text(min_size=1, max_size=80),
    hosts=st.lists(st.sampled_from(["intranet", "10.0.0.0/8", "::1", "büro.example."])),
    seconds=st.floats(1, 3600),
)
def test_any_text_and_number_loads_back(
    tmp_path_factory: pytest.TempPathFactory, plan: str, hosts: list[str], seconds: float
) -> None:
    flags = {
        "fetch.private_allowed": hosts,
        "webhooks.seconds": min(seconds, 300),
        "temporary.lifetime_seconds": seconds,
    }
    settings = attrs.evolve(Settings.load(None, HOME, flags))
    settings = attrs.evolve(settings, accounts=attrs.evolve(settings.accounts, plan=plan))
    file = _written(tmp_path_factory.mktemp("any"), render(settings))
    assert Settings.load(file, HOME) == settings


SECRETS = {
    "database.url": "postgresql://someone:hidden-word@host/name",
    "cache.url": "redis://:hidden-word@host/0",
    "cache.place": "sftp://user:hidden-word@host/cache",
    "temporary.url": "s3://key:hidden-word@bucket/folder",
    "permanent.place": "s3://key:hidden-word@bucket/pictures",
    "delivery.origins": {"shop": {"url": "s3://bucket/photos", "secret": "hidden-word"}},
    "delivery.dialects": {"thumbor": {"account": "page", "keys": ["hidden-word"]}},
    "security.master_keys": [KEY, "hiddenword".ljust(43, "B") + "="],
    "social.facebook_token": "hidden-word",
    "social.twitter_token": "hidden-word",
    "social.instagram_token": "hidden-word",
    "social.github_token": "hidden-word",
    "social.gravatar_token": "hidden-word",
}


def test_secrets_are_never_shown(tmp_path: Path) -> None:
    assert set(SECRETS) == {path for path, item in SETTINGS.items() if item.secret}
    base = {"permanent.base": "https://cdn.example.org"}
    settings = Settings.load(None, HOME, {**SECRETS, **base})
    for shown in (render(settings), repr(settings)):
        assert "hidden" not in shown
        assert KEY not in shown
        assert shown.count(MASK) == len(SECRETS) + 1
    assert f"postgresql://someone:{MASK}@host/name" in render(settings)
    assert settings.database.url == SECRETS["database.url"]
    told = _problems(_written(tmp_path, render(settings)), HOME)
    assert set(told) == set(SECRETS)
    assert all("got its mask" in message for message in told.values())


@pytest.mark.parametrize(
    ("path", "url", "shown"),
    [
        (
            "database.url",
            "postgresql://h/db?user=u&password=hidden;word&sslmode=require",
            f"postgresql://h/db?user=u&password={MASK}&sslmode=require",
        ),
        ("database.url", "postgresql://u:hid/den?@h/db", f"postgresql://u:{MASK}@h/db"),
        ("database.url", "postgresql://h/db?user=u&pass%77ord=hidden", f"?user=u&pass%77ord={MASK}"),
        ("cache.url", "redis://h:6379/0?password=hidden", f"redis://h:6379/0?password={MASK}"),
        ("cache.url", "redis://u:hid@den@[::1]:6379/0?db=3", f"redis://u:{MASK}@[::1]:6379/0?db=3"),
        *[
            ("temporary.url", f"s3://bucket/folder?{name}=hidden", f"s3://bucket/folder?{name}={MASK}")
            for name in (
                "passwd", "sslpassword", "client_secret", "access_token", "apiKey", "sig", "X-Amz-Signature",
                "X-Amz-Credential", "authorization", "pwd",
            )
        ],
        (
            "temporary.url",
            "simplecache::s3://key:hidden@bucket/folder?region=x",
            f"simplecache::s3://key:{MASK}@bucket/folder?region=x",
        ),
    ],
)  # fmt: skip
def test_secrets_are_masked_wherever_a_url_holds_them(path: str, url: str, shown: str) -> None:
    settings = Settings.load(None, HOME, {path: url})
    for printed in (render(settings), repr(settings)):
        assert "hid" not in printed
        assert shown in printed


@pytest.mark.parametrize("url", ["redis://[::1]:6379/0?db=3", "redis://someone@h:6379/0?password="])
def test_urls_without_secrets_are_shown_as_they_are(url: str) -> None:
    assert f'url = "{url}"' in render(Settings.load(None, HOME, {"cache.url": url}))


def test_errors_do_not_show_secrets() -> None:
    wrong: dict[str, object] = dict.fromkeys(SECRETS, 5) | {"security.master_keys": ["hidden-word"]}
    wrong |= {"database.url": "mysql://a:hidden-word@b", "cache.url": "http://a:hidden-word@b"}
    told = _problems(None, HOME, wrong)
    assert set(told) == set(SECRETS)
    assert all("hidden" not in message and "got 5" not in message for message in told.values())


def test_certificate_and_key_belong_together() -> None:
    assert "belong together" in _problems(None, HOME, {"server.certificate": "/c"})["server.private_key"]
    assert "belong together" in _problems(None, HOME, {"server.private_key": "/c"})["server.certificate"]


@pytest.mark.parametrize(
    "host",
    [
        "localhost", "a.example.", "büro.example", "my_host", "3com.example", "10.0.0.1", "10.0.0.5/8", "::1",
        "a." * 126 + "a",
    ],
)  # fmt: skip
def test_private_sources_are_hosts_addresses_and_networks(host: str) -> None:
    assert Settings.load(None, HOME, {"fetch.private_allowed": host}).fetch.private_allowed == (host,)


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        *[
            ("fetch.private_allowed", wrong, "host name, address or network")
            for wrong in (
                "300.1.1.1/99", "10.0.0.0/33", "10.0.0.256", "10.0.0", "127.1", "http://a.example", "a b",
                "[::1]", "::1::", "*.example", "a..b", "a.example:80", "10", "a." * 126 + "aa",
            )
        ],
        ("server.base_url", "http://images.example", "must be URL that begins with https://"),
        ("server.base_url", "https://", "must be URL"),
        ("server.base_url", "https:///path", "must be URL"),
        ("server.base_url", "https://localhost:99999", "must be URL"),
        ("server.base_url", "https://[::1]@", "must be URL"),
        *[
            ("server.base_url", wrong, "https://, without credentials, query and fragment, or empty, got")
            for wrong in (
                "https://a.example/?a=b", "https://a.example/?", "https://a.example/#top", "https://a.example#",
                "https://someone:word@a.example", "https://someone@a.example", "https://@a.example",
            )
        ],
        *[
            ("stores.endpoints", wrong, "name is one of aws, google, digitalocean, alibaba, rackspace, micro")
            for wrong in (
                "foo=http://x", "aws=http://x,foo=http://x", "aws", "aws=", "aws=x", "aws=ftp://x",
                "aws=https://x:99999", "=http://x", "AWS=http://x",
            )
        ],
        *[
            (path, wrong, f"must be {words} within")
            for path, words in (("server.port", "integer"), ("limits.seconds", "float"))
            for wrong in ("8_4", "\u0668\u0664", "\uff18\uff14", " 84", "84\n", "--8", "0x54", "")
        ],
        ("webhooks.retries", "5,3_0", "integer within"),
        ("server.base_url", "https://büro..example", "must be URL"),
        ("server.base_url", "https://xn--", "must be URL"),
        ("social.github_url", "https://xn--/{user}", "must be URL"),
        ("social.github_url", "https://localhost:99999/{user}", "must be URL"),
        ("social.github_url", "https://x/", "holds {user}"),
        ("social.gravatar_url", "https://x/{user}", "holds {hash}"),
        ("cache.url", "http://x", "redis://"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_told(path: str, value: str, told: str) -> None:
    problems = _problems(None, HOME, {path: value})
    assert set(problems) == {path}
    assert told in problems[path]


@pytest.mark.parametrize(
    ("path", "text", "value"),
    [
        ("server.port", "+8443", 8443),
        ("webhooks.retries", "5, +30", (5, 30)),
        ("limits.seconds", "+2.5e0", 2.5),
        ("limits.seconds", ".5", 0.5),
        ("server.base_url", "https://a.example:444/images/", "https://a.example:444/images/"),
        (
            "stores.endpoints",
            "aws=http://x,ibm_token=http://[::1]:80",
            ("aws=http://x", "ibm_token=http://[::1]:80"),
        ),
    ],
)
def test_what_can_work_is_taken(path: str, text: str, value: object) -> None:
    settings = Settings.load(None, HOME, {path: text})
    section, _, name = path.partition(".")
    assert getattr(getattr(settings, section), name) == value


def test_every_address_that_stores_ask_for_can_be_replaced() -> None:
    sources = Path(providers.__path__[0]).glob("*.py")
    asked = {
        name
        for file in sources
        for name in re.findall(r'\.endpoint\("(\w+)"', file.read_text(encoding="utf-8"))
    }
    assert asked <= set(ENDPOINTS)
    assert set(ENDPOINTS) == asked | set(PROVIDERS)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("nope://x", "got 'nope://'"),
        ("simplecache::nope://x", "got 'nope://'"),
        ("libarchive://x", "libarchive"),
        ("s3://key:a::B!@bucket", "got another one"),
    ],
)
def test_temporary_storage_that_nothing_can_open_is_told(url: str, told: str) -> None:
    with pytest.raises(SpecError, match=told) as caught:
        TemporaryStorage(url, 60)
    assert [problem.path for problem in caught.value.problems] == ["temporary.url"]


def test_settings_made_in_python_are_checked_too() -> None:
    with pytest.raises(SpecError, match="'port' must be integer within 0 to 65535 range"):
        ServerSettings(port=70_000)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Settings().server.port = 5  # type: ignore[misc]
    assert ServerSettings(base_url="https://images.example/").public_url == "https://images.example"


def test_a_fresh_environment_can_be_read_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/var/state")
    assert Settings().server.state_folder == Path("/var/state/imgsvc")
    assert Settings.load(None, {}).server.state_folder.is_absolute()


PRESETS = """
[presets.card]
resize = {width = 60, height = 40, mode = "fit"}

[presets.old.filter.duotone]
light = "#fff"
dark = "123"
"""


def test_presets_are_read_and_written(tmp_path: Path) -> None:
    settings = Settings.load(_written(tmp_path, PRESETS), HOME)
    assert settings.presets == {
        "card": {"resize": {"width": 60, "height": 40, "mode": "fit"}},
        "old": {"filter": {"duotone": {"light": "FFFFFF", "dark": "112233"}}},
    }
    assert Settings.load(_written(tmp_path, render(settings)), HOME) == settings
    assert Settings(presets=settings.presets).presets == settings.presets
    assert Settings().presets == {}


def test_all_mistakes_in_presets_are_told_with_others(tmp_path: Path) -> None:
    text = PRESETS.replace("60", "0").replace("[presets.old", "[server]\nport = -1\n[presets.Old")
    found = _problems(_written(tmp_path, text), HOME)
    assert found.keys() == {"server.port", "presets.card.resize.width", "presets.Old"}
    assert found["presets.card.resize.width"].endswith(", in preset 'card'")


def test_origins_are_urls_or_tables_with_the_options_of_their_file_systems(tmp_path: Path) -> None:
    text = """
    [delivery.origins]
    photos = "file:///srv/photos"
    shop = {url = "s3://bucket/photos", key = "k", secret = "hidden", client_kwargs = {region_name = "eu"}}
    """
    expected = {
        "photos": Origin("file:///srv/photos"),
        "shop": Origin(
            "s3://bucket/photos", {"key": "k", "secret": "hidden", "client_kwargs": {"region_name": "eu"}}
        ),
    }
    assert Settings.load(_written(tmp_path, text), HOME).delivery.origins == expected
    in_json = '{"photos": "file:///srv/photos"}'
    for arguments in (
        (None, {**HOME, "IMGSVC_DELIVERY_ORIGINS": in_json}),
        (None, HOME, {"delivery.origins": in_json}),
    ):
        assert Settings.load(*arguments).delivery.origins == {"photos": expected["photos"]}


@pytest.mark.parametrize("name", ["delivery.origins", "cache.place", "temporary.url", "permanent.place"])
def test_names_of_folders_may_have_spaces(name: str) -> None:
    url = "file:///srv/my photos ü"
    given: object = {"photos": url} if name == "delivery.origins" else url
    beside = {"permanent.base": "https://cdn.example.org"} if name == "permanent.place" else {}
    settings = Settings.load(None, HOME, {name: given, **beside})
    section, _, field = name.partition(".")
    found = getattr(getattr(settings, section), field)
    assert found == ({"photos": Origin(url)} if name == "delivery.origins" else url)


@pytest.mark.parametrize(
    ("origins", "path", "told"),
    [
        ("photos", "", "must be table of names and URLs"),
        (
            {"photos": "/srv/photos"},
            ".photos",
            "must be a URL such as https://example.org/photos, file:///srv",
        ),
        ({"photos": {"key": "hidden"}}, ".photos", "or a table with such a url"),
        ({"photos": 5}, ".photos", "must be a URL such as"),
        ({"photos": "https://example.org/my photos"}, ".photos", "must be a URL such as"),
        ({"photos": "file:///srv/photos\n"}, ".photos", "must be a URL such as"),
        ({"photos": "file:///srv/photos "}, ".photos", "must be a URL such as"),
        ({"plain": "file:///srv"}, ".plain", "must have a name of lower-case letters"),
        ({"resize": "file:///srv"}, ".resize", "that is no option of URLs"),
        ({"Photos": "file:///srv"}, ".Photos", "must have a name of lower-case letters"),
        (
            {"web": {"url": "https://example.org", "key": "hidden"}},
            ".web",
            "must have no options beside its url",
        ),
    ],
)
def test_wrong_origins_are_named_without_their_secrets(origins: object, path: str, told: str) -> None:
    problems = _problems(None, HOME, {"delivery.origins": origins})
    assert list(problems) == [f"delivery.origins{path}"]
    assert told in problems[f"delivery.origins{path}"]
    assert "hidden" not in str(problems)


def test_origins_that_nothing_can_open_are_told(tmp_path: Path) -> None:
    async def open_origins() -> None:
        fetcher = Fetcher(FetchSettings(), SocialSettings())
        try:
            shared = SharedSources(SourceFiles(tmp_path, 0, folder_bytes=0), kept_bytes=0)
            Origins({"photos": Origin("nothing://srv/photos")}, fetcher, shared, seconds=5)
        finally:
            await fetcher.close()

    with pytest.raises(SpecError, match=r"'delivery\.origins\.photos' must be a URL that fsspec can open"):
        asyncio.run(open_origins())


def test_dialects_are_names_or_tables_with_their_settings(tmp_path: Path) -> None:
    text = """
    [delivery]
    unsigned = "page"
    [delivery.dialects.imgproxy]
    keys = ["6c6f"]
    salts = ["7361"]
    account = "shop"
    sources = ["https://pics.example/"]
    [delivery.dialects.thumbor]
    """
    found = Settings.load(_written(tmp_path, text), HOME).delivery.dialects
    assert list(found) == ["imgproxy", "thumbor"]
    assert (found["imgproxy"].account, found["imgproxy"].sources) == ("shop", ("https://pics.example/",))
    assert "6c6f" not in repr(found)
    for names in ("thumbor,imgproxy", '["thumbor", "imgproxy"]', '{"thumbor": {}, "imgproxy": {}}'):
        environ = {**HOME, "IMGSVC_DELIVERY_DIALECTS": names, "IMGSVC_DELIVERY_UNSIGNED": "page"}
        assert list(Settings.load(environ=environ).delivery.dialects) == ["thumbor", "imgproxy"]


@pytest.mark.parametrize(
    ("dialects", "path", "told"),
    [
        ("nosuch", ".nosuch", "A dialect must be one of imagor, imgproxy, ipx, thumbor"),
        ({"imgproxy": "6c6f"}, ".imgproxy", "must be a table of settings"),
        ({"imgproxy": {"keys": ["6c6f"]}}, ".imgproxy.salts", "as many salts as keys"),
        ({"imgproxy": {"key": "6c6f"}}, ".imgproxy.key", "is unknown: dialect 'imgproxy' has account, "),
        ({"imagor": {"signer_type": "6c6f"}}, ".imagor.signer_type", "must be one of sha1, sha256, sha512"),
        ({"ipx": {"widths": [0]}}, ".ipx.widths", "must be array of integers within 1 to 65535 range"),
        ({"thumbor": {"account": 5}}, ".thumbor.account", "must be the id of an account"),
        ({"thumbor": {"sources": ["https://a.example"]}}, ".thumbor.sources", "slash after its host"),
        ({"thumbor": {}}, ".thumbor.account", "must be the id of the account that pays"),
        (5, "", "must be array of names"),
    ],
)
def test_wrong_settings_of_dialects_are_named_without_secrets(dialects: object, path: str, told: str) -> None:
    problems = _problems(None, HOME, {"delivery.dialects": dialects})
    assert list(problems) == [f"delivery.dialects{path}"]
    assert told in problems[f"delivery.dialects{path}"]
    assert f"'delivery.dialects{path}'" in problems[f"delivery.dialects{path}"]
    assert "6c6f" not in str(problems)


def test_wrong_settings_of_other_dialects_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = """
    class Closed:
        def __init__(self, days):
            if not isinstance(days, int):
                raise TypeError("days must be an integer")
            if days < 1:
                raise ValueError("days must be 1 or more")
    """
    install(tmp_path, "closed", "closed_dialect:Closed", dedent(module))
    monkeypatch.syspath_prepend(tmp_path)
    for days, told in ((0, "days must be 1 or more"), ("9", "days must be an integer")):
        problems = _problems(None, HOME, {"delivery.dialects": {"closed": {"days": days}}})
        assert list(problems) == ["delivery.dialects.closed"]
        assert told in problems["delivery.dialects.closed"]
