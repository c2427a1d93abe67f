"""Accounts, keys and the master key from the command."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import dedent
from typing import IO, Any, TypeVar

import pytest

from imgsvc_cli import service_settings
from imgsvc_cli.app import run
from imgsvc_http.cache.opening import open_place_tier
from imgsvc_http.gate.authentication import find_principal, find_signing_key
from imgsvc_http.settings import Settings
from imgsvc_http.state import accounts, encrypted, keyfiles, migrating
from imgsvc_http.state.database import Database
from imgsvc_http.state.keys import digest_of
from imgsvc_http.state.vault import new_master_key, open_vault
from imgsvc_http.webhooks import records
from imgsvc_http.webhooks.records import AsyncRequest
from tests.http.cache.pictures import entry
from tests.http.state.test_keyfiles import KEYFILE
from tests.support import forked_python

T = TypeVar("T")


@pytest.fixture(scope="session")
def empty_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder with a database without accounts."""
    folder = tmp_path_factory.mktemp("empty") / "state"
    asyncio.run(migrating.migrate(Settings.load(None, {}, {"server.state_folder": folder}).database_url))
    return folder


@pytest.fixture(autouse=True)
def state_folder(empty_state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IMGSVC_SERVER_STATE_FOLDER", str(tmp_path / "state"))
    return shutil.copytree(empty_state, tmp_path / "state")


@pytest.fixture
def settings(state_folder: Path) -> Settings:
    return Settings.load(None, {}, {"server.state_folder": state_folder})


@pytest.fixture
def imgsvc(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Run a command with --json that succeeds; what it printed."""

    def call(*arguments: str) -> Any:
        code = run([*arguments, "--json"])
        printed = capsys.readouterr()
        assert code == 0, printed.out + printed.err
        return json.loads(printed.out)

    return call


def _in_database(settings: Settings, work: Callable[[Database], Awaitable[T]]) -> T:
    async def with_database() -> T:
        async with await Database.open(settings.database_url) as db:
            return await work(db)

    return asyncio.run(with_database())


def _account_of(settings: Settings, secret: str) -> str | None:
    async def look_up(db: Database) -> str | None:
        found = await find_principal(db, digest_of(secret))
        return found.account_id if found else None

    return _in_database(settings, look_up)


def test_from_nothing_to_a_working_key(imgsvc: Callable[..., Any], settings: Settings) -> None:
    account = imgsvc("accounts", "create", "Acme Ltd")
    assert (account["plan"], account["period"], account["quota"]) == ("standard", "monthly", 100_000)
    assert datetime.fromisoformat(account["created_at"]).tzinfo is not None
    made = imgsvc("keys", "create", account["id"], "--name", "site", "--scope", "admin", "--scope", "process")
    assert made["scopes"] == ["process", "admin"]
    assert _account_of(settings, made["secret"]) == account["id"]
    listed = imgsvc("keys", "list", "--account", account["id"])
    assert [key["id"] for key in listed] == [made["id"]]
    assert "secret" not in listed[0]
    another = imgsvc("accounts", "create", "Another Ltd")
    assert imgsvc("keys", "list", "--account", another["id"]) == []


def test_keys_are_rotated_and_revoked(imgsvc: Callable[..., Any], settings: Settings) -> None:
    account = imgsvc("accounts", "create", "Acme")
    first = imgsvc("keys", "create", account["id"])
    second = imgsvc("keys", "rotate", first["id"])
    assert second["id"] == first["id"]
    secrets = [first["secret"], second["secret"]]
    assert [_account_of(settings, secret) for secret in secrets] == [account["id"]] * 2
    third = imgsvc("keys", "rotate", first["id"], "--grace", "0")
    secrets.append(third["secret"])
    assert [_account_of(settings, secret) for secret in secrets] == [None, None, account["id"]]
    assert imgsvc("keys", "revoke", first["id"]) == {"id": first["id"], "revoked": True}
    assert _account_of(settings, third["secret"]) is None
    assert imgsvc("keys", "list")[0]["revoked_at"] is not None


def test_keys_are_of_the_only_account_unless_one_is_named(
    imgsvc: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("keys", "signing-keys"):
        assert run([command, "create"]) == 2
        assert "Name the ACCOUNT, as there are 0" in capsys.readouterr().err
    account = imgsvc("accounts", "create", "Only")
    for command in ("keys", "signing-keys"):
        assert imgsvc(command, "create")["account_id"] == account["id"]
    imgsvc("accounts", "create", "Second")
    for command in ("keys", "signing-keys"):
        assert run([command, "create"]) == 2
        assert "Name the ACCOUNT, as there are 2" in capsys.readouterr().err


def test_signing_keys_are_made_and_revoked(imgsvc: Callable[..., Any], settings: Settings) -> None:
    account = imgsvc("accounts", "create", "Acme")
    first = imgsvc("signing-keys", "create", account["id"], "--name", "site")
    second = imgsvc("signing-keys", "create", account["id"])
    listed = imgsvc("signing-keys", "list", "--account", account["id"])
    assert {key["id"]: key["name"] for key in listed} == {first["id"]: "site", second["id"]: ""}
    assert first["secret"] not in json.dumps(listed)
    assert run(["signing-keys", "list", "--account", "nobody"]) == 2

    async def secret(db: Database) -> str | None:
        found = await find_signing_key(db, open_vault(settings), first["id"])
        return found.secret if found else None

    assert _in_database(settings, secret) == first["secret"]
    assert imgsvc("signing-keys", "revoke", first["id"]) == {"id": first["id"], "revoked": True}
    assert _in_database(settings, secret) is None
    working = [key["id"] for key in imgsvc("signing-keys", "list") if key["revoked_at"] is None]
    assert working == [second["id"]]


def test_presets_are_kept_listed_and_deleted(imgsvc: Callable[..., Any], tmp_path: Path) -> None:
    account = imgsvc("accounts", "create", "Acme")["id"]
    assert imgsvc("presets", "list", account) == []
    (tmp_path / "card.json").write_text('{"filter": {"sepia": {"value": 5}}}')
    spec = ("--spec", str(tmp_path / "card.json"))
    made = imgsvc("presets", "set", account, "card", *spec, "--resize", "40x30", "--mode", "fit")
    request = {"filter": {"sepia": {"value": 5}}, "resize": {"width": 40, "height": 30, "mode": "fit"}}
    assert made["request"] == request
    changed = imgsvc("presets", "set", account, "card", "--quality", "7")
    assert changed["request"] == {"output": {"quality": 7}}
    assert changed["created_at"] == made["created_at"]
    assert imgsvc("presets", "list", account) == [changed]
    assert imgsvc("presets", "delete", account, "card") == {"name": "card", "deleted": True}
    assert imgsvc("presets", "list", account) == []


def test_accounts_list_what_they_used(imgsvc: Callable[..., Any], settings: Settings) -> None:
    assert imgsvc("accounts", "list") == []
    first = imgsvc("accounts", "create", "First", "--quota", "5", "--plan", "large", "--period", "yearly")
    second = imgsvc("accounts", "create", "Second", "--set", "accounts.quota=7")

    async def spend(db: Database) -> None:
        for _ in range(3):
            assert await accounts.spend(db, first["id"], datetime.now(UTC))

    _in_database(settings, spend)
    rows = imgsvc("accounts", "list")
    assert [(row["company"], row["plan"], row["quota"], row["used"]) for row in rows] == [
        ("First", "large", 5, 3),
        ("Second", "standard", 7, 0),
    ]
    assert imgsvc("accounts", "quota", first["id"]) == {"total": 5, "used": 3, "remaining": 2}
    assert imgsvc("accounts", "quota", first["id"], "2") == {"total": 2, "used": 3, "remaining": 0}
    assert imgsvc("accounts", "quota", second["id"])["total"] == 7
    assert imgsvc("accounts", "create", "None", "--quota", "0")["quota"] == 0


def test_webhook_secrets_are_shown_again_until_renewed(imgsvc: Callable[..., Any]) -> None:
    account = imgsvc("accounts", "create", "Acme")
    first = imgsvc("accounts", "webhook-secret", account["id"])["webhook_secret"]
    assert first.startswith("whsec_")
    assert imgsvc("accounts", "webhook-secret", account["id"])["webhook_secret"] == first
    renewed = imgsvc("accounts", "webhook-secret", account["id"], "--renew")["webhook_secret"]
    assert renewed != first
    assert imgsvc("accounts", "webhook-secret", account["id"])["webhook_secret"] == renewed


def test_the_master_key_of_the_state_folder_is_replaced(
    imgsvc: Callable[..., Any], settings: Settings
) -> None:
    account = imgsvc("accounts", "create", "Acme")
    secret = imgsvc("accounts", "webhook-secret", account["id"])["webhook_secret"]

    async def add(db: Database) -> str:
        added = await keyfiles.add(db, open_vault(settings), account["id"], KEYFILE, datetime.now(UTC))
        return added.id

    async def read(db: Database, keyfile_id: str) -> object:
        found = await keyfiles.credentials(db, open_vault(settings), account["id"], keyfile_id)
        return found and found.document

    keyfile_id = _in_database(settings, add)
    file = settings.server.state_folder / "master.keys"
    before = file.read_text().split()
    assert imgsvc("keyfiles", "rotate") == {"encrypted": 2, "dropped": 0}
    during = file.read_text().split()
    assert during[1:] == before
    assert imgsvc("keyfiles", "rotate", "--drop-old") == {"encrypted": 2, "dropped": 1}
    assert file.read_text().split() == during[:1]
    assert imgsvc("accounts", "webhook-secret", account["id"])["webhook_secret"] == secret
    assert _in_database(settings, lambda db: read(db, keyfile_id)) == KEYFILE


def test_rotations_at_the_same_time_lose_nothing(imgsvc: Callable[..., Any], state_folder: Path) -> None:
    """They wait for each other, and for whoever else changes the keys."""
    account = imgsvc("accounts", "create", "Acme")
    secret = imgsvc("accounts", "webhook-secret", account["id"])["webhook_secret"]
    command = *forked_python.COMMAND, "keyfiles", "rotate"
    extras: tuple[tuple[str, ...], ...] = ((), (), ("--drop-old",))
    before = (state_folder / "master.keys").read_text()
    with (state_folder / "master.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        running = [forked_python.start(*command, *extra) for extra in extras]
        waiting = set[int]()
        while len(waiting) < len(running):
            assert [process.poll() for process in running] == [None, None, None]
            waiting = _waiting_for(lock)
            time.sleep(0.02)
        assert waiting == {process.pid for process in running}
        assert (state_folder / "master.keys").read_text() == before
    assert [process.wait(timeout=250) for process in running] == [0, 0, 0]
    assert imgsvc("accounts", "webhook-secret", account["id"])["webhook_secret"] == secret
    assert 1 <= len((state_folder / "master.keys").read_text().split()) <= 3


def _waiting_for(lock: IO[str]) -> set[int]:
    """The processes that wait for the lock of a file, as the kernel tells."""
    locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    inode = str(os.fstat(lock.fileno()).st_ino)
    return {int(words[5]) for words in locks if words[1] == "->" and words[6].split(":")[2] == inode}


def test_the_master_key_of_the_settings_is_replaced(
    imgsvc: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    older, newer = new_master_key(), new_master_key()
    monkeypatch.setenv("IMGSVC_SECURITY_MASTER_KEYS", older)
    account = imgsvc("accounts", "create", "Acme")
    secret = imgsvc("accounts", "webhook-secret", account["id"])["webhook_secret"]
    monkeypatch.setenv("IMGSVC_SECURITY_MASTER_KEYS", f"{newer},{older}")
    assert imgsvc("keyfiles", "rotate") == {"encrypted": 1, "dropped": 0}
    monkeypatch.setenv("IMGSVC_SECURITY_MASTER_KEYS", newer)
    assert imgsvc("accounts", "webhook-secret", account["id"])["webhook_secret"] == secret
    assert run(["keyfiles", "rotate", "--drop-old"]) == 2
    assert "take them out of the settings" in capsys.readouterr().err
    monkeypatch.setenv("IMGSVC_SECURITY_MASTER_KEYS", older)
    for command in (
        ["accounts", "webhook-secret", account["id"]],
        ["accounts", "list"],
        ["webhooks", "list"],
    ):
        assert run(command) == 2
        assert "None of the master keys fits an encrypted value" in capsys.readouterr().err


@pytest.mark.parametrize("left", [[new_master_key()], []])
@pytest.mark.parametrize("extra", [[], ["--drop-old"]])
def test_master_keys_stay_as_they_are_where_none_fits(
    left: list[str],
    extra: list[str],
    imgsvc: Callable[..., Any],
    state_folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that what is lost can be put back without anything in its way."""
    monkeypatch.setattr(encrypted, "_SOME", 0)  # as if others were encrypted earlier, by a key that fits
    account = imgsvc("accounts", "create", "Acme")
    secret = imgsvc("accounts", "webhook-secret", account["id"])["webhook_secret"]
    file = state_folder / "master.keys"
    kept = file.read_text()
    file.unlink()
    if left:
        file.write_text("\n".join(left))
    assert run(["keyfiles", "rotate", *extra]) == 2
    assert "None of the master keys fits" in capsys.readouterr().err
    assert (file.read_text().split() if file.exists() else []) == left
    file.write_text(kept)
    assert imgsvc("accounts", "webhook-secret", account["id"])["webhook_secret"] == secret


def test_new_master_keys_can_be_printed(capsys: pytest.CaptureFixture[str], state_folder: Path) -> None:
    shutil.rmtree(state_folder)
    assert run(["keyfiles", "key"]) == 0
    printed = capsys.readouterr().out.strip()
    assert Settings.load(None, {}, {"security.master_keys": printed}).security.master_keys == (printed,)
    assert not state_folder.exists()


def test_a_settings_file_is_used(imgsvc: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "imgsvc.toml"
    file.write_text(f'[database]\nurl = "sqlite:///{tmp_path}/other.db"\n[accounts]\nplan = "file"\n')
    imgsvc("db", "upgrade", "--config", str(file))
    assert imgsvc("accounts", "create", "Acme", "--config", str(file))["plan"] == "file"
    assert (tmp_path / "other.db").exists()
    assert imgsvc("accounts", "list") == []


def test_a_flag_wins_over_an_assignment_of_its_setting() -> None:
    loaded = service_settings.load_settings(None, ("server.port=1111",), {"server.port": 2222})
    assert loaded.server.port == 2222


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["keys", "create", "nobody"], "There is no account 'nobody': see imgsvc accounts list"),
        (["keys", "list", "--account", "nobody"], "There is no account 'nobody': see imgsvc accounts list"),
        (["keys", "rotate", "nothing"], "There is no working key 'nothing': see imgsvc keys list"),
        *(
            (
                ["keys", "rotate", "x", "--grace", grace],
                "Option '--grace' must be seconds within 0 to 315360000",
            )
            for grace in ("-1", "1e12", "1e300", "inf", "nan")
        ),
        (["keys", "revoke", "nothing"], "There is no working key 'nothing': see imgsvc keys list"),
        (["signing-keys", "create", "nobody"], "There is no account 'nobody': see imgsvc accounts list"),
        (
            ["signing-keys", "revoke", "nothing"],
            "There is no working signing key 'nothing': see imgsvc signing-keys list",
        ),
        (["presets", "list", "nobody"], "There is no account 'nobody': see imgsvc accounts list"),
        (["presets", "set", "nobody", "card"], "There is no account 'nobody': see imgsvc accounts list"),
        (
            ["presets", "delete", "nobody", "card"],
            "see imgsvc presets list nobody",
        ),
        (["accounts", "quota", "nobody"], "There is no account 'nobody'"),
        (["accounts", "quota", "nobody", "5"], "There is no account 'nobody'"),
        (["accounts", "permanent", "nobody", "on"], "There is no account 'nobody'"),
        (["accounts", "webhook-secret", "nobody"], "There is no account 'nobody'"),
        (["accounts", "webhook-secret", "nobody", "--renew"], "There is no account 'nobody'"),
        (
            ["accounts", "create", "Acme", "--quota", "-1"],
            "Account 'quota' parameter must be integer within 0 to",
        ),
        (["accounts", "create", "Acme", "--quota", "9" * 20], "Account 'quota' parameter must be integer"),
        (
            ["accounts", "create", "A\x07"],
            "Account 'company' parameter must be 1 to 200 printable characters",
        ),
        (["accounts", "create", "Acme", "--plan", ""], "Account 'plan' parameter must be 1 to 200 printable"),
        (["accounts", "create", "Acme", "--period", ""], "Account 'period' parameter must be 1 to 200"),
        (["keys", "create", "x", "--scope", "root"], "'root' is not one of"),
        (["accounts", "list", "--set", "server.port"], "must be NAME=VALUE"),
        (["accounts", "list", "--set", "server.prot=1"], "did you mean 'server.port'?"),
        (["accounts", "list", "--config", "missing.toml"], "must be readable TOML"),
        (["db", "upgrade", "--set", "database.url=sqlite:////dev/null/x"], "cannot be made"),
        (["accounts", "list", "--set", "database.url=postgresql://127.0.0.1:1/x"], "cannot be opened"),
        (["accounts", "list", "--set", "database.url=postgresql://127.0.0.1:99999/x"], "cannot be opened"),
    ],
)
def test_mistakes_are_told(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    printed = capsys.readouterr()
    assert told in printed.err
    assert printed.out == ""


@pytest.mark.parametrize("names", ["accounts", "keys", "signing-keys", "webhooks"])
def test_lists_of_nothing_say_so(names: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([names, "list"]) == 0
    assert capsys.readouterr().out == f"There are no {names.replace('-', ' ')}.\n"


def test_people_get_tables_and_are_told_to_keep_the_secret(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["accounts", "create", "Acme"]) == 0
    told = capsys.readouterr()
    account_id = told.out.split()[1]
    assert told.err == f"Next, give it a key: imgsvc keys create {account_id}\n"
    assert run(["presets", "list", account_id]) == 0
    assert capsys.readouterr().out == "There are no presets.\n"
    assert run(["keys", "create", account_id]) == 0
    told = capsys.readouterr()
    assert "secret" in told.out
    assert told.err == "Keep the secret: it is not shown again.\n"
    assert run(["keys", "list"]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split()[0] == "id"
    assert "process, account" in row
    assert run(["signing-keys", "create", account_id]) == 0
    told = capsys.readouterr()
    key_id = told.out.split()[told.out.split().index("id") + 1]
    assert told.err.endswith(f"imgsvc url --key {key_id}\n")
    assert run(["accounts", "webhook-secret", account_id]) == 0
    assert capsys.readouterr().out.startswith("whsec_")


def test_commands_for_pictures_load_nothing_of_the_service() -> None:
    code = """
        import json, sys
        import imgsvc_cli.app
        from imgsvc_cli.commands import batch, explain, formats, inspect, process, url
        print(json.dumps(list(sys.modules)))
    """
    loaded = {
        name.partition(".")[0]
        for name in json.loads(subprocess.check_output([sys.executable, "-c", dedent(code)]))
    }
    assert not loaded & {"aiohttp", "alembic", "asyncio", "cryptography", "sqlalchemy"}


def test_groups_are_listed_with_their_commands() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "imgsvc_cli", "keys", "--help"], capture_output=True, text=True, check=True
    )
    assert all(f"\n  {name}" in done.stdout for name in ("create", "list", "rotate", "revoke"))


def test_credentials_of_stores_in_the_environment_are_no_settings() -> None:
    environment = os.environ | {
        "IMGSVC_STORE_KEY": "key",
        "IMGSVC_STORE_SECRET": "secret",
    }
    command = [sys.executable, "-m", "imgsvc_cli", "accounts", "list"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", [["accounts", "list"], ["db", "status"], ["keyfiles", "rotate"]])
def test_a_database_that_cannot_be_looked_at_is_told(
    command: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run([*command, "--set", f"server.state_folder={tmp_path}/{300 * 'long'}"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "The URL of the database is wrong: its file cannot be made or opened" in line
    assert "File name too long" in line


def test_a_state_folder_without_access_is_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IMGSVC_DATABASE_URL", f"sqlite:///{tmp_path}/state/imgsvc.db")
    assert run(["accounts", "create", "Acme", "--quota", "9"]) == 0
    capsys.readouterr()
    assert run(["accounts", "list", "--set", f"server.state_folder={tmp_path}/{300 * 'long'}"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "The master keys cannot be read" in line


@pytest.mark.parametrize("command", ["accounts list", "keys list", "webhooks list", "db status"])
def test_reading_commands_make_no_database(
    command: str, state_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(state_folder)
    shows_status = command == "db status"
    assert run(command.split()) == (0 if shows_status else 2)
    printed = capsys.readouterr()
    assert ("missing" in printed.out) if shows_status else ("imgsvc db upgrade" in printed.err)
    assert not state_folder.exists()


def test_the_first_account_needs_no_other_command_before(
    imgsvc: Callable[..., Any], state_folder: Path
) -> None:
    shutil.rmtree(state_folder)
    account = imgsvc("accounts", "create", "Acme")
    assert [found["id"] for found in imgsvc("accounts", "list")] == [account["id"]]
    made = [state_folder, *state_folder.rglob("*")]
    assert not [path for path in made if path.stat().st_mode & 0o077]


NEWER_TABLES = """
import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "9999", "{before}", None, None


def upgrade() -> None:
    op.add_column("webhooks", sa.Column("newer", sa.Integer))
"""


def test_only_an_upgrade_changes_tables_of_an_older_version(
    imgsvc: Callable[..., Any],
    state_folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    account = imgsvc("accounts", "create", "Acme")
    current = imgsvc("db", "status")
    assert current["state"] == "current"
    assert current["present"] == current["newest"]
    before = current["newest"]
    newer = tmp_path / "migrations"
    shutil.copytree(Path(migrating.__file__).parent / "migrations", newer)
    (newer / "versions" / "9999_newer.py").write_text(NEWER_TABLES.format(before=before))
    monkeypatch.setattr(migrating, "_MIGRATIONS", newer)
    files = _files(state_folder)
    assert imgsvc("db", "status") == {"present": before, "newest": "9999", "state": "outdated"}
    for command in (["accounts", "list"], ["accounts", "create", "Another"], ["webhooks", "show", "x"]):
        assert run(command) == 2
        message = f"has tables of version {before}, and 9999 is needed: run imgsvc db upgrade"
        assert message in capsys.readouterr().err
    assert _files(state_folder) == files
    assert imgsvc("db", "upgrade") == {"present": "9999", "newest": "9999", "state": "current"}
    assert [row["id"] for row in imgsvc("accounts", "list")] == [account["id"]]


def test_a_renewed_webhook_secret_leaves_the_one_before_a_grace(
    imgsvc: Callable[..., Any], settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    account = imgsvc("accounts", "create", "Acme")["id"]
    first = imgsvc("accounts", "webhook-secret", account)["webhook_secret"]

    def previous(after: timedelta) -> str | None:
        moment = datetime.now(UTC) + after
        vault = open_vault(settings)
        return _in_database(settings, lambda db: accounts.previous_webhook_secret(db, vault, account, moment))

    second = imgsvc("accounts", "webhook-secret", account, "--renew")["webhook_secret"]
    assert previous(timedelta(hours=23)) == first
    assert previous(timedelta(hours=25)) is None
    imgsvc("accounts", "webhook-secret", account, "--renew", "--grace", "600")
    assert previous(timedelta(seconds=590)) == second
    assert previous(timedelta(seconds=601)) is None
    imgsvc("accounts", "webhook-secret", account, "--renew", "--grace", "0")
    assert previous(timedelta()) is None
    assert run(["accounts", "webhook-secret", account, "--grace", "600"]) == 2
    assert "'--grace' must come together with --renew" in capsys.readouterr().err
    for grace in ("-1", "nan", "1e12"):
        assert run(["accounts", "webhook-secret", account, "--renew", "--grace", grace]) == 2
        assert "'--grace' must be seconds within 0 to" in capsys.readouterr().err


def test_the_grace_of_a_rotated_key_is_in_seconds(imgsvc: Callable[..., Any]) -> None:
    account = imgsvc("accounts", "create", "Acme")["id"]
    key = imgsvc("keys", "create", account)
    rotated = imgsvc("keys", "rotate", key["id"], "--grace", "600")
    moments = [datetime.fromisoformat(rotated[name]) for name in ("rotated_at", "previous_until")]
    assert moments[1] - moments[0] == timedelta(seconds=600)


def test_the_cache_is_counted_and_purged(
    imgsvc: Callable[..., Any], settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    account, other = (imgsvc("accounts", "create", name)["id"] for name in ("Acme", "Other"))
    url = "https://example.org/shoe.jpg"
    made = [entry(1, account=account), entry(2, account=account), entry(1, account=other)]
    made.append(entry(1, account=account, source="photos/shoe.jpg"))

    async def fill(db: Database) -> None:
        tier = open_place_tier(settings)
        assert tier is not None
        for item in made:
            tier.put(item)
        await tier.close()

    _in_database(settings, fill)
    assert imgsvc("cache", "stats")["entries"] == 4
    assert imgsvc("cache", "stats")["bytes"] == 4 * 4096
    assert imgsvc("cache", "purge", url, "--account", other) == {"purged": 1}
    assert imgsvc("cache", "purge", url) == {"purged": 2}
    assert imgsvc("cache", "purge", "--all") == {"purged": 1}
    assert imgsvc("cache", "stats")["entries"] == 0
    assert run(["cache", "purge", url, "--account", "nobody"]) == 2
    assert "There is no account 'nobody'" in capsys.readouterr().err
    for wrong in (
        ["cache", "purge"],
        ["cache", "purge", url, "--all"],
        ["cache", "purge", "--all", "--account", account],
    ):
        assert run(wrong) == 2


def test_the_newest_webhooks_are_listed_up_to_a_limit(
    imgsvc: Callable[..., Any], settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    account = imgsvc("accounts", "create", "Acme")["id"]
    first, vault = datetime(2026, 11, 21, tzinfo=UTC), open_vault(settings)

    async def keep(db: Database) -> None:
        for number in range(60):
            moment = first + timedelta(seconds=number)
            request = AsyncRequest(document={"webhook": {"url": "https://example.org/"}})
            assert await records.create(db, vault, f"id{number}", account, request, moment, ())

    _in_database(settings, keep)
    newest = [f"id{number}" for number in reversed(range(60))]
    for limit in (1, 2, 55, 61):
        listed = imgsvc("webhooks", "list", "--limit", str(limit))
        assert [webhook["id"] for webhook in listed] == newest[:limit]
    assert [webhook["id"] for webhook in imgsvc("webhooks", "list")] == newest[:50]
    assert run(["webhooks", "list", "--limit", "0"]) == 2
    assert "'--limit'" in capsys.readouterr().err
