"""The examples of layouts name things that exist."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

from imgsvc_http.settings import Settings

_EXAMPLES = Path(__file__).parents[2] / "examples"
_CLUSTER = _EXAMPLES / "cluster"


def known() -> set[str]:
    """The environment variables of all settings."""
    return {
        f"IMGSVC_{section.name}_{field.name}".upper()
        for section in attrs.fields(Settings)
        for field in attrs.fields(type(getattr(Settings(), section.name)))
    }


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
    environment: dict[str, Any] = yaml.safe_load((_CLUSTER / "compose.yml").read_text())["services"][
        "imgsvc"
    ]["environment"]
    settings = Settings.load(environ={**environment, "IMGSVC_DATABASE_URL": "postgresql://u:p@h/d"})
    assert settings.server.base_url == "https://images.example.org"
    assert len(settings.server.trusted_proxies) == 2


def test_files_that_are_named_exist() -> None:
    layout = yaml.safe_load((_CLUSTER / "compose.yml").read_text())
    build = layout["services"]["imgsvc"]["build"]
    assert (_CLUSTER / build["context"] / build["dockerfile"]).is_file()
    assert (_CLUSTER / "Caddyfile").is_file()
    assert {name for service in layout["services"].values() for name in service.get("depends_on", ())} <= set(
        layout["services"]
    )


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_the_unit_is_valid(tmp_path: Path) -> None:
    text = (_EXAMPLES / "imgsvc.service").read_text().replace("/opt/imgsvc/bin/imgsvc", "/bin/true")
    (tmp_path / "imgsvc.service").write_text(text)
    subprocess.run(["systemd-analyze", "verify", str(tmp_path / "imgsvc.service")], check=True)
