"""The examples of layouts name things that exist."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from imgsvc_http.settings import SETTINGS, Settings
from tests.support import requires

_ROOT = Path(__file__).parents[3]
_EXAMPLES = _ROOT / "examples"
_CLUSTER = _EXAMPLES / "cluster"
_CLOSING_SECONDS = 20


def known() -> set[str]:
    """The environment variables of all settings."""
    return {item.variable for item in SETTINGS.values()}


@pytest.mark.parametrize(
    "path",
    [_CLUSTER / "compose.yml", _CLUSTER / "secrets.env.example", _EXAMPLES / "imgsvc.service"],
    ids=lambda path: path.name,
)
def test_settings_exist(path: Path) -> None:
    named = set(re.findall(r"\bIMGSVC_[A-Z_]+", path.read_text()))
    assert named
    assert named <= known()


def test_the_values_of_the_cluster_are_valid() -> None:
    values: dict[str, Any] = yaml.safe_load((_CLUSTER / "compose.yml").read_text())["services"]["node1"][
        "environment"
    ]
    environment = {name: str(value) for name, value in values.items()}
    settings = Settings.load(environ={**environment, "IMGSVC_DATABASE_URL": "postgresql://u:p@h/d"})
    assert settings.server.base_url == "https://images.example.org"
    assert len(settings.server.trusted_proxies) == 2


def test_the_deployment_of_kubernetes_is_valid_and_has_time_to_stop() -> None:
    page = (_ROOT / "docs" / "cluster.md").read_text()
    (text,) = re.findall(r"^```yaml\n(.+?)^```$", page, re.MULTILINE | re.DOTALL)
    pod = yaml.safe_load(text)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    environment = {item["name"]: item["value"] for item in container["env"]}
    assert environment.keys() <= known()
    assert set(re.findall(r"`(IMGSVC_[A-Z_]+)`", page)) <= known()
    settings = Settings.load(environ={**environment, "IMGSVC_DATABASE_URL": "postgresql://u:p@h/d"})
    server = settings.server
    longest = server.drain_seconds + 2 * server.shutdown_seconds + _CLOSING_SECONDS
    assert pod["terminationGracePeriodSeconds"] >= longest
    probes = [container[name]["httpGet"] for name in ("readinessProbe", "livenessProbe")]
    assert [probe["path"] for probe in probes] == ["/readyz", "/healthz"]
    assert {probe["port"] for probe in probes} == {server.port}


def test_files_that_are_named_exist() -> None:
    layout = yaml.safe_load((_CLUSTER / "compose.yml").read_text())
    build = layout["services"]["node1"]["build"]
    assert (_CLUSTER / build["context"] / build["dockerfile"]).is_file()
    mounted = {volume.split(":")[0] for volume in layout["services"]["balancer"]["volumes"]}
    assert mounted == {"./haproxy.cfg", "./certificate.pem"}
    assert (_CLUSTER / "haproxy.cfg").is_file()
    nodes = re.findall(r"^ *server (\w+) \1:8443$", (_CLUSTER / "haproxy.cfg").read_text(), re.MULTILINE)
    assert nodes == [name for name in layout["services"] if name.startswith("node")]
    assert {name for service in layout["services"].values() for name in service.get("depends_on", ())} <= set(
        layout["services"]
    )


def copied() -> set[str]:
    """What the image is made of."""
    lines = re.findall(r"^COPY (.+) \S+$", (_CLUSTER / "Dockerfile").read_text(), re.MULTILINE)
    return {name for line in lines for name in line.split()}


def test_the_image_has_all_that_installing_needs(tmp_path: Path) -> None:
    requires.module("hatchling")
    source = tmp_path / "source"
    for name in copied():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        if (_ROOT / name).is_dir():
            shutil.copytree(
                _ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "_build")
            )
        else:
            shutil.copy(_ROOT / name, source / name)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").iterdir()
    with zipfile.ZipFile(wheel) as files:
        names = set(files.namelist())
    assert {"imgsvc_http/playground/examples/portrait.jpg", "imgsvc_cli/pages/index.md"} <= names


def test_secrets_stay_out_of_the_image_and_of_version_control() -> None:
    names = copied()
    pages = {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs"}
    assert names == pages | {"pyproject.toml", "LICENSE", "src", "examples/pictures"}
    ignored = (_ROOT / ".dockerignore").read_text().split("\n")
    assert ignored[1] == "*"
    assert {line[1:] for line in ignored if line.startswith("!")} == names
    secret = {"examples/cluster/secrets.env", "examples/cluster/certificate.pem"}
    assert secret <= set((_ROOT / ".gitignore").read_text().splitlines())


def test_stopping_has_the_time_that_it_may_take() -> None:
    node = yaml.safe_load((_CLUSTER / "compose.yml").read_text())["services"]["node1"]
    unit = (_EXAMPLES / "imgsvc.service").read_text()
    environments = {
        node["stop_grace_period"]: node["environment"],
        re.findall(r"^TimeoutStopSec=(.+)$", unit, re.MULTILINE)[0]: dict(
            re.findall(r"^Environment=(\w+)=(.+)$", unit, re.MULTILINE)
        ),
    }
    for limit, environment in environments.items():
        texts = {name: str(value) for name, value in environment.items()}
        server = Settings.load(environ=texts).server
        assert server.drain_seconds > 0
        needed = server.drain_seconds + 2 * server.shutdown_seconds + _CLOSING_SECONDS
        assert int(limit.rstrip("s")) >= needed


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_the_unit_is_valid(tmp_path: Path) -> None:
    text = (_EXAMPLES / "imgsvc.service").read_text().replace("/opt/imgsvc/bin/imgsvc", "/bin/true")
    (tmp_path / "imgsvc.service").write_text(text)
    subprocess.run(["systemd-analyze", "verify", str(tmp_path / "imgsvc.service")], check=True)
