"""Encryption at rest, with master keys that can be replaced."""

from __future__ import annotations

import base64
import binascii
import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs
from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from imgsvc_core.errors import ImgsvcError
from imgsvc_http.settings import Settings
from imgsvc_http.state.failures import is_missing_file


class MissingMasterKey(ImgsvcError):
    """A value was encrypted with another key than the master keys. It may become one of them later."""


@attrs.define
class Vault:
    """Encrypts with the newest master key, and decrypts with any of them.

    ``read_keys`` gives the keys, newest first. It is called again before something is encrypted and when no
    key fits, because another process may have added one meanwhile.
    """

    _read_keys: Callable[[], Sequence[str]] = attrs.field(repr=False)
    _fernet: MultiFernet = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._load()

    def encrypt(self, plain: bytes) -> bytes:
        """Encrypt bytes."""
        self._load()
        return self._fernet.encrypt(plain)

    def decrypt(self, encrypted: bytes) -> bytes:
        """Decrypt bytes; raise `MissingMasterKey` if none of the master keys fits."""
        return self._with_keys(encrypted, lambda: self._fernet.decrypt(encrypted))

    def reencrypt(self, encrypted: bytes) -> bytes:
        """Encrypt encrypted bytes with the newest master key."""
        return self._with_keys(encrypted, lambda: self._fernet.rotate(encrypted))

    def _load(self) -> None:
        try:
            self._fernet = MultiFernet([Fernet(key) for key in self._read_keys()])
        except (OSError, ValueError) as error:
            raise ImgsvcError(
                f"The master keys cannot be read ({error}): restore their file in the state folder"
            ) from error

    def _with_keys(self, encrypted: bytes, work: Callable[[], bytes]) -> bytes:
        try:
            return work()
        except InvalidToken:
            self._load()
        try:
            return work()
        except InvalidToken as error:
            if not _is_encrypted(encrypted):
                raise ImgsvcError("An encrypted value in the database is damaged.") from error
            raise MissingMasterKey(
                "None of the master keys fits an encrypted value: add the key that it was encrypted with "
                "after the newer ones, in the setting security.master_keys or in the state folder."
            ) from error


def _is_encrypted(token: bytes) -> bool:
    """Return True if bytes have the form of a Fernet token of any key."""
    try:
        parts = base64.b64decode(token, altchars=b"-_", validate=True)
    except (binascii.Error, TypeError, ValueError):
        return False
    return len(parts) >= 73 and parts[0] == 0x80 and (len(parts) - 57) % 16 == 0


def open_vault(settings: Settings) -> Vault:
    """Return the vault of a service; make a master key in the state folder if the settings have none."""
    if settings.security.master_keys:
        return Vault(lambda: settings.security.master_keys)
    file = key_file(settings)
    if is_missing_file(file):
        _write(file, [new_master_key()], replace=False)
    return Vault(lambda: file.read_text(encoding="ascii").split())


def present_vault(settings: Settings) -> Vault:
    """Return the vault of a service without making a master key. If it has none, nothing can be decrypted."""
    if settings.security.master_keys or not is_missing_file(key_file(settings)):
        return open_vault(settings)
    passing = new_master_key()
    return Vault(lambda: [passing])


def key_file(settings: Settings) -> Path:
    """Return the file of master keys in the state folder: one a line, newest first."""
    return settings.server.state_folder / "master.keys"


def new_master_key() -> str:
    """Return a new master key."""
    return Fernet.generate_key().decode("ascii")


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Keep other processes from changing the master keys until the block ends."""
    with open(file.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def add_master_key(file: Path) -> None:
    """Add a new key to a file. The older keys stay, so that nothing becomes unreadable."""
    _write(file, [new_master_key(), *file.read_text(encoding="ascii").split()], replace=True)


def drop_old_master_keys(file: Path) -> int:
    """Delete all keys of a file but the newest. Return the number of deleted keys."""
    keys = file.read_text(encoding="ascii").split()
    _write(file, keys[:1], replace=True)
    return len(keys) - 1


def _write(file: Path, keys: Sequence[str], *, replace: bool) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, name = tempfile.mkstemp(dir=file.parent)  # of mode 600
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write("\n".join(keys) + "\n")
            stream.flush()
            os.fsync(descriptor)
        if replace:
            os.replace(name, file)
            return
        try:
            os.link(name, file)
        except FileExistsError:
            return  # another process was first
        finally:
            os.unlink(name)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
