"""``imgsvc playground``: a service of one's own, which keeps nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

START = [sys.executable, "-m", "imgsvc_cli", "playground"]


def test_the_printed_address_works_until_interrupted(tmp_path: Path) -> None:
    browser, opened = tmp_path / "bin" / "xdg-open", tmp_path / "opened"
    browser.parent.mkdir()
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    folder = tmp_path / "temporary"
    folder.mkdir()
    environment = {
        **os.environ,
        "PATH": f"{browser.parent}:{os.environ['PATH']}",
        "TMPDIR": str(folder),
        "HOME": str(tmp_path / "home"),
        "IMGSVC_SERVER_HOST": "192.0.2.1",  # settings of a service do not matter
    }
    process = subprocess.Popen(START, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        name, _, printed = process.stdout.readline().strip().partition(" ")
        address, _, fragment = printed.partition("#key=")
        assert name == "Playground:"
        assert address.startswith("http://localhost:")
        assert b"<title>imgsvc playground</title>" in urllib.request.urlopen(address).read()
        account = urllib.request.Request(address.replace("playground", "1.0/account"))
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(account)
        account.add_header("Authorization", f"Bearer {fragment}")
        assert json.load(urllib.request.urlopen(account))["success"]
        source = json.dumps({"source": "http://127.0.0.1/a.jpg", "request": {}}).encode()
        urls = urllib.request.Request(
            address + "/urls", source, {**account.headers, "Content-Type": "application/json"}
        )
        made = json.load(urllib.request.urlopen(urls))
        assert made["signed"]
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(made["url"])
        assert refused.value.code == 424  # the signature is right, and the source not public
        assert "Press Ctrl-C to end." in process.stdout.readline()
        assert process.stdout.readline() == "Documentation: imgsvc docs\n"
        with urllib.request.urlopen(address.removesuffix("playground")) as first:
            assert first.url == address
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.communicate()
    assert opened.read_text().strip() == f"{address}#key={fragment}"
    assert list(folder.iterdir()) == []
    assert not (tmp_path / "home").exists()
