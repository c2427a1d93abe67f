"""The first minute of an operator: start, one printed command, a picture."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import pyvips

from imgsvc_cli.app import run
from imgsvc_core.errors import SpecError
from imgsvc_http.serve import Greeting, sample_command, serve
from imgsvc_http.server.certificate import certificate_files
from imgsvc_http.settings import ServerSettings, Settings
from imgsvc_http.settings.sections import temporary_state_folder
from tests.http.calls import upload
from tests.http.service_process import Service, await_start, ended, running, start
from tests.support import encoded, requires
from tests.support.folders import contents


def test_the_printed_command_works_as_it_stands(service: Service, tmp_path: Path) -> None:
    requires.program("curl")
    subprocess.run(service.command, shell=True, check=True, capture_output=True, cwd=tmp_path)
    picture = pyvips.Image.new_from_file(str(tmp_path / "sample.webp"))
    assert (picture.width, picture.height) == (480, 320)
    red, _, blue = picture.bandsplit()[:3]
    assert red.avg() - blue.avg() > 20  # sepia


@pytest.mark.parametrize("proxies", ["", "127.0.0.1/32"])
def test_the_printed_command_trusts_the_certificate_that_clients_see(proxies: str, tmp_path: Path) -> None:
    """At a public address that is a proxy's, they see that of the proxy."""
    flags = {
        "server.state_folder": tmp_path,
        "server.base_url": "https://pictures.example.org",
        "server.trusted_proxies": proxies,
    }
    command = sample_command(Settings.load(flags=flags), "key")
    assert command.endswith("https://pictures.example.org/1.0/upload")
    assert ("--cacert" in command) is not bool(proxies)


def test_the_printed_command_works_at_every_host(tmp_path: Path) -> None:
    """One state folder, whose certificate is made anew only where it does not hold the host."""
    requires.program("curl")
    key, certificates = "", []
    for host, verbose in (("127.0.0.2", False), ("127.0.0.3", True)):
        process = start(tmp_path / "state", {"server.host": host}, verbose=verbose)
        try:
            service = await_start(process, tmp_path / "state", key)
            key = service.key
            assert service.url == f"https://{host}:{service.port}"
            command = service.command.replace("<your key>", key)
            subprocess.run(command, shell=True, check=True, capture_output=True, cwd=tmp_path)
            assert (tmp_path / "sample.webp").exists()
            (tmp_path / "sample.webp").unlink()
            certificates.append(service.certificate.read_bytes())
        finally:
            process.terminate()
            process.wait(timeout=60)
            process.communicate()
        assert ("Finishing requests" in (tmp_path / "state.log").read_text()) is verbose
    assert certificates[0] != certificates[1]
    kept = ServerSettings(state_folder=tmp_path / "state", host="0.0.0.0")
    assert certificate_files(kept)[0].read_bytes() == certificates[1]


def test_the_printed_command_works_in_every_folder_and_with_a_certificate_of_ones_own(tmp_path: Path) -> None:
    """Also where the machine itself is trusted as a proxy, through which the command does not come."""
    requires.program("curl")
    own, state = tmp_path / "own, 'and' \"odd\"", tmp_path / "a, b; c=\"d\" \\ 'e' %20?f#"
    certificate, private_key = certificate_files(ServerSettings(state_folder=own))
    settings = {
        "server.certificate": certificate,
        "server.private_key": private_key,
        "server.trusted_proxies": "127.0.0.1",
    }
    with running(state, settings) as service:
        subprocess.run(service.command, shell=True, check=True, capture_output=True, cwd=tmp_path)
        results = list((state / "temporary").iterdir())
        assert [stat.S_IMODE(result.stat().st_mode) for result in results] == [0o600]
    made = [own, state, tmp_path / f"{state.name}.log", tmp_path / "sample.webp"]
    assert sorted(tmp_path.iterdir()) == sorted(made)


def test_secrets_of_the_state_folder_are_its_owners(service: Service) -> None:
    assert stat.S_IMODE(service.state.stat().st_mode) == 0o700
    for name in ("localhost.key", "master.keys"):
        assert stat.S_IMODE((service.state / name).stat().st_mode) == 0o600
    for path, data in contents(service.state):
        assert service.key.encode() not in data, f"the key is kept in {path}"


def test_the_key_is_shown_once_and_state_survives(tmp_path: Path) -> None:
    with running(tmp_path / "state") as first:
        key, certificate = first.key, first.certificate.read_bytes()
    assert key
    process = start(tmp_path / "state")
    try:
        again = await_start(process, tmp_path / "state")
        assert again.key == ""
        assert "<your key>" in again.command
        assert "imgsvc keys create" in again.greeting
        assert again.certificate.read_bytes() == certificate
        account = subprocess.run(
            ["curl", "-s", "--cacert", str(again.certificate), "-u", f"{key}:", f"{again.url}/1.0/account"],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        assert '"success":true' in account.stdout
    finally:
        process.terminate()
        process.wait(timeout=60)
        process.communicate()


def test_settings_are_printed_and_read_back(service: Service, tmp_path: Path) -> None:
    text = service.imgsvc("serve", "--print-config", "--set", "rate.requests=77")
    assert tomllib.loads(text)["rate"]["requests"] == 77
    (tmp_path / "settings.toml").write_text(text)
    again = service.imgsvc("serve", "--print-config", "--config", str(tmp_path / "settings.toml"))
    assert again == text


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--set", "rate.requests=0"], "rate.requests"),
        (["--set", "nonsense=1"], "nonsense"),
        (["--set", "server.certificate=/nowhere.pem"], "server.private_key"),
        (["--database", "mysql://x/y"], "database.url"),
        (["--set", "server.base_url=https://localhost:99999"], "server.base_url"),
        (["--port", "8_443"], "'server.port' must be integer within 0 to 65535 range"),
    ],
)
def test_wrong_settings_are_named(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["serve", "--port", "0", *arguments, "--print-config"]) == 2
    assert expected in capsys.readouterr().err


@pytest.fixture
def _umask() -> Iterator[None]:
    """A start changes what is allowed to others, for good."""
    before = os.umask(0o077)
    yield
    os.umask(before)


def never(greeting: Greeting) -> None:
    raise AssertionError(greeting)


@pytest.mark.usefixtures("_umask")
@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("server.state_folder", f"{__file__}/below", "server.state_folder"),
        ("server.state_folder", "/proc/x", "server.state_folder"),
        ("server.state_folder", "/proc", "server.state_folder"),
        ("server.host", "203.0.113.1", "server.host"),
        ("server.host", "ü" * 70, "server.host"),
    ],
)
def test_settings_that_cannot_be_used_are_named(name: str, value: str, expected: str, tmp_path: Path) -> None:
    settings = Settings.load(flags={"server.port": 0, "server.state_folder": tmp_path, name: value})
    with pytest.raises(SpecError, match=expected):
        serve(settings, never)


def test_a_user_without_a_home_folder_starts_it_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state and the links to fonts that programs make are both in the folder for temporary files then."""
    temporary, file = tmp_path / "temporary", tmp_path / "file"
    temporary.mkdir()
    file.write_text("no folder")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    state = temporary_state_folder()
    within = ["env", f"TMPDIR={temporary}", "HOME=/nonexistent", f"XDG_CACHE_HOME={file}"]
    draws = "from imgsvc_core.fonts import name_fonts; name_fonts()"
    subprocess.run([*within, sys.executable, "-c", draws], check=True)
    for _ in range(2):
        process = start(state, within=within)
        try:
            await_start(process, state)
        finally:
            process.terminate()
            process.communicate(timeout=60)


@pytest.mark.asyncio
async def test_a_machine_without_any_temporary_folder_serves(tmp_path: Path) -> None:
    """As in a container whose root is read-only, where the state folder is all that can be written."""
    (tmp_path / "sitecustomize.py").write_text("import tempfile\ntempfile.tempdir = '/nonexistent'\n")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    process = start(
        tmp_path / "state",
        within=["env", "HOME=/nonexistent", "XDG_CACHE_HOME=/dev/null", f"PYTHONPATH={path}"],
    )
    try:
        service = await asyncio.to_thread(await_start, process, tmp_path / "state")
        async with service.client() as client:
            assert (await upload(client, encoded.png().data)).status == 200
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert "Traceback" not in (tmp_path / "state.log").read_text()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--cache", "redis://h:99999/0"], "cache.url"),
        (["--state", __file__], "'server.state_folder' must be a folder in which files can be made, got"),
        (
            ["--host", "nowhere.invalid"],
            "'server.host' must be a name or address of this machine, got 'nowhere.invalid'",
        ),
    ],
)
def test_a_start_with_wrong_settings_ends(
    arguments: list[str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IMGSVC_SERVER_STATE_FOLDER", str(tmp_path))
    code, told = ended(tmp_path / "log", *arguments)
    assert code == 2
    assert expected in told
    assert "Traceback" not in told


def test_a_port_that_is_taken_is_named(service: Service, tmp_path: Path) -> None:
    code, told = ended(tmp_path / "log", "--port", str(service.port), "--state", str(tmp_path / "state"))
    assert code == 2
    assert "'server.port' must be free to listen at" in told


def test_a_crash_of_native_code_tells_where_it_was(tmp_path: Path) -> None:
    process = start(tmp_path / "state")
    try:
        await_start(process, tmp_path / "state")
        process.send_signal(signal.SIGSEGV)
        assert process.wait(60) == -signal.SIGSEGV
    finally:
        process.kill()
        process.communicate()
    report = (tmp_path / "state.log").read_text()
    assert "Fatal Python error: Segmentation fault" in report
    assert "commands/serve.py" in report
