"""The description of the service: valid, complete, and true of the running service."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies
from jsonschema import Draft202012Validator

from imgsvc_core.errors import SpecError
from imgsvc_core.spec import Output
from imgsvc_core.spec.declaring import request_object
from imgsvc_core.spec.presets import parse_preset
from imgsvc_core.spec.rules import NotTogether
from imgsvc_http.answering.answers import Result
from imgsvc_http.answering.headers import HeaderNames
from imgsvc_http.answering.json_schema import body_schema, failure_schema
from imgsvc_http.endpoints import openapi
from imgsvc_http.endpoints.routes import ROUTES
from tests.http.service_process import Service, running
from tests.support import encoded

_OF: Any = (ROUTES, "https://localhost", HeaderNames("X-Svc"))
DOCUMENT: dict[str, Any] = openapi.document(*_OF)
IN_FULL: dict[str, Any] = openapi.in_full(*_OF)


def without(rules: list[Any], document: Any) -> Any:
    """Return a document that allows what some rules forbid."""
    if isinstance(document, dict):
        return {key: without(rules, value) for key, value in document.items() if value not in rules}
    if isinstance(document, list):
        return [without(rules, item) for item in document if item not in rules]
    return document


# The generator cannot model any more rules of one object than there are without these.
TOO_MANY = [
    NotTogether(("look",), ("quality",)).schema(),
    *(
        rule.schema()
        for rule in Output.rules
        if getattr(rule, "names", ()) in (("metadata",), ("transcode",))
    ),
    request_object()["else"],
]


@pytest.fixture(scope="module")
def schema() -> Any:
    """What generates calls; its import takes a second."""
    from schemathesis import openapi

    return openapi.from_dict(without(TOO_MANY, json.loads(json.dumps(DOCUMENT))))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service of its own, as strange requests may leave strange things behind."""
    with running(tmp_path_factory.mktemp("openapi") / "state") as service:
        yield service


def test_the_document_is_valid() -> None:
    from openapi_spec_validator import validate

    assert DOCUMENT["openapi"].startswith("3.1")
    validate(DOCUMENT)


def in_place(value: Any) -> Any:
    """Return a part of the document with each component where it is referred to."""
    if isinstance(value, list):
        return [in_place(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        _, _, kind, name = value["$ref"].split("/")
        return in_place(DOCUMENT["components"][kind][name]) | {
            key: item for key, item in value.items() if key != "$ref"
        }
    found = {key: in_place(item) for key, item in value.items()}
    match found:
        case {"anyOf": [{"title": str(), "type": "object"} as known, {"type": "null"}], **rest}:
            return {**known, "type": ["object", "null"], **rest}
    return found


def test_components_say_what_calls_would_say_without_them() -> None:
    said, without = (json.loads(json.dumps(document["paths"])) for document in (DOCUMENT, IN_FULL))
    assert said != without
    assert in_place(said) == in_place(without)


@pytest.mark.parametrize(
    "preset",
    [
        {"resize": {"mode": "fit"}},
        {"resize": {"gravity": "focus", "width": None}},
        {"crop": {"mode": "ratio"}},
        {"scale": {"size": None}},
        {"rotate": {"background": "#fff"}},
        {"mask": {"shape": None}},
        {"watermark": {"opacity": 0.5}},
        {"background": {"kind": "gradient"}},
        {"output": {"format": "jpeg", "lossless": True}},
        {"filter": {"blur": {"mode": None}, "sepia": None}},
        {"filter": [{"blur": {"value": 3}, "sepia": None}]},
        {"filter": [{"blur": {"value": 3}, "sepia": {"value": 3}}]},
        {"filter": [{}]},
        {"redact": [{"faces": True}]},
        {"redact": [{"faces": False, "x": "3%"}]},
        {"layers": [{"text": {"text": "a", "size": 4}}]},
        {"layers": [{"text": {"text": "a"}}]},
        {"layers": [{}]},
        {"resize": {"wide": 3}},
        {"preset": "a"},
    ],
)
def test_presets_are_described_as_they_are_taken(preset: dict[str, Any]) -> None:
    """What is required in a request may be missing; elements of arrays, which are replaced, are whole."""
    try:
        parse_preset("a", preset)
        taken = True
    except SpecError:
        taken = False
    body = IN_FULL["paths"]["/1.0/presets/{name}"]["put"]["requestBody"]["content"]["application/json"]
    assert Draft202012Validator(body["schema"]).is_valid(preset) is taken


def test_the_document_is_the_same_without_assertions() -> None:
    code = """if True:
        import json
        from imgsvc_http.answering.headers import HeaderNames
        from imgsvc_http.endpoints import openapi
        from imgsvc_http.endpoints.routes import ROUTES
        print(json.dumps(openapi.document(ROUTES, "https://localhost", HeaderNames("X-Svc"))))
    """
    run = subprocess.run([sys.executable, "-O", "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == json.loads(json.dumps(DOCUMENT))


def test_a_generated_client_sends_and_reads_types(service: Service, tmp_path: Path) -> None:
    """No call is left out of it, and requests, answers and failures have types of their own."""
    source = tmp_path / "openapi.json"
    source.write_text(json.dumps(DOCUMENT))
    command = ["openapi_python_client", "generate", "--path", str(source), "--meta", "none"]
    run = subprocess.run(
        [sys.executable, "-m", *command, "--output-path", str(tmp_path / "generated_client")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Endpoint will not be generated" not in run.stdout + run.stderr
    script = tmp_path / "use.py"
    script.write_text(_USE)
    picture = tmp_path / "a.jpg"
    picture.write_bytes(encoded.jpeg().data)
    own = [service.url, service.key, str(service.certificate), str(picture)]
    used = subprocess.run([sys.executable, str(script), *own], capture_output=True, text=True, check=True)
    assert used.stdout.split() == ["webp", "12", "invalid_parameter", "resize.width"]


_USE = """
import ssl, sys
from generated_client import AuthenticatedClient, models, types
from generated_client.api.processing import processing_upload

url, key, certificate, picture = sys.argv[1:]
context = ssl.create_default_context(cafile=certificate)
client = AuthenticatedClient(base_url=url, token=key, verify_ssl=context)

def upload(**operations):
    form = models.ProcessingUploadBody(
        file=types.File(payload=open(picture, "rb"), file_name="a.jpg"),
        data=models.UploadRequest(**operations),
    )
    return processing_upload.sync(client=client, body=form)

output = models.Output(format_=models.OutputFormatType1.WEBP)
filters = [models.Filter(sepia=models.Sepia(value=60))]
done = upload(resize=models.Resize(width=12), filter_=filters, output=output)
assert isinstance(done, models.Result), done
print(done.output.format_, done.output.width)
failed = upload(resize=models.Resize(width=-1))
assert isinstance(failed, models.Failure), failed
print(failed.error, failed.errors[0].path)
"""


def test_every_route_is_described() -> None:
    described = {(path, method) for path, item in DOCUMENT["paths"].items() for method in item}
    assert described == {(route.path, route.method.lower()) for route in ROUTES}
    ids = [operation["operationId"] for item in DOCUMENT["paths"].values() for operation in item.values()]
    assert len(set(ids)) == len(ids)


def test_every_answer_tells_the_rate() -> None:
    for item in IN_FULL["paths"].values():
        for operation in item.values():
            for reply in operation["responses"].values():
                assert {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} <= set(
                    reply["headers"]
                )


def test_what_any_call_may_be_answered_is_described_for_all() -> None:
    for item in IN_FULL["paths"].values():
        for operation in item.values():
            expected = {"400", "403", "429", "500", "503"}
            if operation.get("security") != []:
                expected |= {"401"}
            if "requestBody" in operation:
                expected |= {"408", "413", "415", "422"}
            assert expected <= set(operation["responses"]), operation["operationId"]
            assert "Retry-After" in operation["responses"]["503"]["headers"]


def test_what_is_wrong_with_the_download_of_an_image_is_described() -> None:
    operation = IN_FULL["paths"]["/1.0/images/{name}"]["get"]
    assert {"Range", "If-Match", "If-None-Match"} <= {item["name"] for item in operation["parameters"]}
    for status in ("404", "410", "412", "416"):
        content = operation["responses"][status]["content"]["application/json"]
        assert content["schema"] == failure_schema()


def test_own_headers_begin_as_the_settings_say(tmp_path: Path) -> None:
    """In the description as in the service."""
    with running(tmp_path / "state", {"server.header_prefix": "X-Acme"}) as service:
        request = urllib.request.Request(
            f"{service.url}/1.0/upload",
            b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\n'
            + encoded.jpeg().data
            + b"\r\n--x--",
            {
                "Authorization": f"Bearer {service.key}",
                "Content-Type": "multipart/form-data; boundary=x",
                "X-Acme-Binary": "1",
            },
        )
        with urllib.request.urlopen(request, context=service.tls) as reply:
            sent = {name for name in reply.headers if name.startswith("X-Acme")}
        with urllib.request.urlopen(f"{service.url}/1.0/openapi.json", context=service.tls) as reply:
            described = json.load(reply)
    for path in ("/1.0/fetch", "/1.0/upload"):
        operation = described["paths"][path]["post"]
        assert "X-Acme-Binary" in [item["name"] for item in operation["parameters"]]
        assert {name for name in operation["responses"]["200"]["headers"] if "Meta" in name} == sent
    assert sent == {"X-Acme-Metadata", "X-Acme-Meta"}
    text = json.dumps(described)
    assert "X-Svc" not in text
    assert "{prefix}" not in text


def test_requests_are_described_by_their_declarations() -> None:
    body = IN_FULL["paths"]["/1.0/fetch"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert (
        body["properties"]["filter"]["anyOf"][0]["properties"]["sepia"]["properties"]["value"]["maximum"]
        == 100
    )
    assert body["properties"]["webhook"]["properties"]["delay"]["maximum"] == 604_800
    stores, null = body["properties"]["store"]["anyOf"]
    assert null == {"type": "null"}
    assert {item["properties"]["provider"]["const"] for item in stores["oneOf"]} == {
        "aws", "google", "digitalocean", "alibaba", "rackspace", "microsoft", "ibm",
    }  # fmt: skip


@pytest.mark.parametrize(("path", "method"), [(route.path, route.method) for route in ROUTES])
def test_the_running_service_answers_as_described(
    path: str, method: str, schema: Any, service: Service
) -> None:
    """No server error, no status and no content type that is not described, to calls right and wrong."""
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    calls = [schema[path][method].as_strategy(generation_mode=mode) for mode in GenerationMode]

    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(strategies.one_of(calls))
    def check(case: Any) -> None:
        response = case.call(
            base_url=service.url,
            headers={"Authorization": f"Bearer {service.key}"},
            verify=str(service.certificate),
            timeout=60,
        )
        checks = [not_a_server_error, status_code_conformance]
        metadata = {name.lower(): value for name, value in response.headers.items()}.get("x-svc-metadata")
        if metadata is not None:  # a binary answer, whose failures have no body
            described = failure_schema() if response.status_code >= 400 else body_schema(Result)
            Draft202012Validator(described).validate(json.loads(metadata[0]))
        else:
            checks += [content_type_conformance, response_schema_conformance]
        case.validate_response(response, checks=checks)

    check()


def test_the_service_gives_the_same_document(service: Service, tmp_path: Path) -> None:
    import ssl
    import urllib.request

    context = ssl.create_default_context(cafile=service.certificate)
    with urllib.request.urlopen(f"{service.url}/1.0/openapi.json", context=context) as answer:
        served = json.load(answer)
    assert served["paths"] == json.loads(json.dumps(DOCUMENT["paths"]))
    assert served["servers"] == [{"url": service.url}]
