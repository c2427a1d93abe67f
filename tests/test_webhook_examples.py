"""The examples that verify notifications accept what the service signs, and nothing else."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import pytest
import standardwebhooks

from imgsvc_http.webhooks.delivery import signature
from tests.stores.servers import cache
from tests.support import requires

EXAMPLES = Path(__file__).parent.parent / "examples" / "webhooks"
SECRET = "whsec_" + base64.b64encode(b"thirty-two random bytes, or more").decode()
# Go compiles its library first where it has never been used: without C and optimization in 2/3 of the time.
_ENVIRONMENT = os.environ | {"GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
_QUICKLY = "-gcflags=all=-N -l"
BODY = '{"success":true,"id":"21fca4f8","output":{"name":"tür.webp"}}'


@attrs.frozen
class Notification:
    """What a receiver is given, and whether it should believe it."""

    headers: Mapping[str, str]
    body: str
    genuine: bool
    secret: str = SECRET


def _cases() -> dict[str, Notification]:
    now = int(time.time())
    good = signature("21fca4f8", now, BODY.encode(), [SECRET])
    other = "whsec_" + base64.b64encode(b"another secret of thirty-two bytes").decode()
    return {
        "signed": Notification(good, BODY, True),
        "signed by a newer secret as well": Notification(
            signature("21fca4f8", now, BODY.encode(), [other, SECRET]), BODY, True
        ),
        "signed by an older secret as well": Notification(
            signature("21fca4f8", now, BODY.encode(), [SECRET, other]), BODY, True
        ),
        "signed by other secrets": Notification(
            signature("21fca4f8", now, BODY.encode(), [other, other]), BODY, False
        ),
        "another body": Notification(good, BODY.replace("true", "false"), False),
        "another id": Notification({**good, "webhook-id": "other"}, BODY, False),
        "another secret": Notification(good, BODY, False, other),
        "no signature": Notification({**good, "webhook-signature": "v1,"}, BODY, False),
        "old": Notification(signature("21fca4f8", now - 600, BODY.encode(), [SECRET]), BODY, False),
        "in the future": Notification(signature("21fca4f8", now + 600, BODY.encode(), [SECRET]), BODY, False),
        "no time": Notification({**good, "webhook-timestamp": "today"}, BODY, False),
        "a time of 5,000 digits": Notification({**good, "webhook-timestamp": "9" * 5000}, BODY, False),
        "a time in other digits": Notification({**good, "webhook-timestamp": "\u0661" * 10}, BODY, False),
        "no headers": Notification({"content-type": "application/json"}, BODY, False),
    }


PYTHON = """
import json, sys
from verify import is_genuine
cases = json.load(sys.stdin)
print([int(is_genuine(case["headers"], case["body"].encode(), case["secret"])) for case in cases])
"""
NODE = """
import { readFileSync } from "node:fs";
import { isGenuine } from "./verify.mjs";
const cases = JSON.parse(readFileSync(0));
console.log(cases.map(({ headers, body, secret }) => Number(isGenuine(headers, Buffer.from(body), secret))));
"""
REFERENCE = """
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
const { Webhook } = createRequire(process.argv[2] + "/")("standardwebhooks");
const cases = JSON.parse(readFileSync(0));
console.log(cases.map(({ headers, body, secret }) => {
  try {
    new Webhook(secret).verify(body, headers);
    return 1;
  } catch {
    return 0;
  }
}));
"""
PHP = """<?php
require './verify.php';
$cases = json_decode(stream_get_contents(STDIN), true);
foreach ($cases as $case) {
    echo (int) is_genuine($case['headers'], $case['body'], $case['secret']);
}
"""
GO = """package main
import ("encoding/json"; "fmt"; "net/textproto"; "os"; "example/webhooks")
func main() {
	var cases []struct { Headers map[string]string; Body, Secret string }
	json.NewDecoder(os.Stdin).Decode(&cases)
	for _, given := range cases {
		header := textproto.MIMEHeader{} // as http.Header, which takes longer to compile
		for name, value := range given.Headers { header.Set(name, value) }
		genuine := webhooks.IsGenuine(header, []byte(given.Body), given.Secret)
		fmt.Print(map[bool]int{true: 1}[genuine])
	}
}
"""


@attrs.frozen
class Language:
    """How to run an example: its files, and the command that reads cases and prints ones and zeros.

    Those that are ``built`` are compiled first, which may take longer than a notification is genuine.
    """

    example: str
    place: str
    program: str
    files: Mapping[str, str]
    arguments: tuple[str, ...]
    built: tuple[str, ...] = ()


LANGUAGES = (
    Language("verify.py", "verify.py", sys.executable, {"run.py": PYTHON}, ("run.py",)),
    Language("verify.mjs", "verify.mjs", "node", {"run.mjs": NODE}, ("run.mjs",)),
    Language("verify.php", "verify.php", "php", {"run.php": PHP}, ("run.php",)),
    Language(
        "verify.go",
        "webhooks/verify.go",
        "go",
        {"go.mod": "module example\n\ngo 1.19\n", "main.go": GO},
        ("run", _QUICKLY, "."),
        ("build", _QUICKLY, "-o", os.devnull, "."),
    ),
)


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.example)
def test_only_signed_notifications_are_genuine(language: Language, tmp_path: Path) -> None:
    place = tmp_path / language.place
    place.parent.mkdir(exist_ok=True)
    shutil.copy(EXAMPLES / language.example, place)
    for name, text in language.files.items():
        (tmp_path / name).write_text(text)
    program = requires.program(language.program)
    if language.built:
        subprocess.run([program, *language.built], cwd=tmp_path, env=_ENVIRONMENT, check=True)
    cases, command = _cases(), [program, *language.arguments]
    assert _believed(command, tmp_path, cases) == _genuine(cases)


def test_the_reference_in_python_agrees() -> None:
    def believes(case: Notification) -> bool:
        try:
            standardwebhooks.Webhook(case.secret).verify(case.body, dict(case.headers))
        except standardwebhooks.WebhookVerificationError:
            return False
        return True

    cases = _cases()
    assert {name: believes(case) for name, case in cases.items()} == _genuine(cases)


def test_the_reference_in_node_agrees(tmp_path: Path) -> None:
    cases = _cases()
    (tmp_path / "run.mjs").write_text(REFERENCE)
    command = [requires.program("node"), "run.mjs", str(cache.folder("standardwebhooks"))]
    assert _believed(command, tmp_path, cases) == _genuine(cases)


def _genuine(cases: Mapping[str, Notification]) -> dict[str, bool]:
    return {name: case.genuine for name, case in cases.items()}


def _believed(command: Sequence[str], folder: Path, cases: Mapping[str, Notification]) -> dict[str, bool]:
    """Which cases a program believes that reads them and prints ones and zeros."""
    given = [{"headers": dict(c.headers), "body": c.body, "secret": c.secret} for c in cases.values()]
    printed = subprocess.check_output(
        command,
        cwd=folder,
        env=_ENVIRONMENT,
        input=json.dumps(given),
        text=True,
    )
    return dict(zip(cases, map(bool, map(int, re.findall("[01]", printed))), strict=True))
