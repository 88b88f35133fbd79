"""The remote record store: against Medplum's own router, and against servers that misbehave."""

import json
import logging
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qs, unquote

import httpx
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from docgemma.ehr.auth import ClientCredentials, Token, auth_from
from docgemma.ehr.base import Provenance
from docgemma.ehr.client import RemoteError, error_of
from docgemma.ehr.fhir import KEY_SYSTEM
from docgemma.ehr.open import open_store, seed_resources
from docgemma.ehr.remote import RemoteStore
from docgemma.ehr.sqlite import SqliteStore
from docgemma.errors import ConfigError, ErrorType, StoreError, ToolError
from docgemma.settings import Settings
from tests.standin import misbehave
from tests.standin.misbehave import Misbehaving, status

FIXTURES = Path(__file__).resolve().parents[2] / "shared" / "fixtures" / "fhir"
recorded = pytest.mark.skipif(not FIXTURES.is_dir(), reason="the recorded responses are not here")
MEDPLUM = Path(__file__).parent / "medplum"
TOKEN = "secret-token-5e7"
FHIR = {"Content_Type": "application/fhir+json"}


def allergy(patient_id: str, substance: str = "penicillin") -> dict:
    active = {
        "coding": [{"system": "http://terminology.hl7.org/CodeSystem/allergyintolerance-clinical", "code": "active"}]
    }
    return {
        "resourceType": "AllergyIntolerance", "clinicalStatus": active, "code": {"text": substance},
        "patient": {"reference": f"Patient/{patient_id}"},
    }  # fmt: skip


def by(key: str) -> Provenance:
    return Provenance(actor="Dr. Lee", thread="thread-7", key=key)


# Medplum


@pytest.fixture(scope="session")
def medplum() -> Iterator[str]:
    """The base URL of Medplum's router with the synthetic patients in it."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("Node and npm are not installed")
    if not (MEDPLUM / "node_modules" / "@medplum" / "fhir-router").is_dir():
        quiet = ["--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        done = subprocess.run(["npm", "install", *quiet], cwd=MEDPLUM, capture_output=True, timeout=600)
        if done.returncode:
            pytest.skip("npm could not install Medplum's router (no network?)")
    environment = {**os.environ, "TOKEN": TOKEN}
    with subprocess.Popen(
        ["node", "server.mjs"], cwd=MEDPLUM, env=environment, stdout=subprocess.PIPE, text=True
    ) as node:
        try:
            base = f"http://127.0.0.1:{int(node.stdout.readline())}/fhir/R4"
            with httpx.Client(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as client:
                for resource in seed_resources():
                    url = f"{base}/{resource['resourceType']}/{resource['id']}"
                    client.put(url, json=resource).raise_for_status()
            yield base
        finally:
            node.kill()


@pytest.fixture
def store(medplum: str) -> RemoteStore:
    return RemoteStore(medplum, Token(TOKEN), timeout_s=60)


@pytest.fixture(scope="session")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    path = tmp_path_factory.mktemp("same") / "ehr.sqlite"
    with closing(SqliteStore(path, seed_resources())) as store:
        yield store


def kept(store: RemoteStore, kind: str, **params: str) -> list[dict]:
    """What the server holds, asked without our code."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    url = f"{store.base_url}/{kind}"
    bundle = httpx.get(url, params={"_count": "1000", **params}, headers=headers, timeout=60).json()
    return [entry["resource"] for entry in bundle.get("entry", [])]


@pytest.mark.parametrize(
    "typed",
    [
        "John Smith", "SMITH, John", "Dr. John Smith", "abc-123", "555", "James Wilson", "maria garcia", "Garcia",
        "O'Brien", "Suparman", "王小明", "Jhon Smith", "Jon Smith", "J. Smith", "John Q. Smith", "Nobody Here", "", ".",
    ],
)  # fmt: skip
def test_both_stores_find_the_same_patients(store: RemoteStore, local: SqliteStore, typed: str) -> None:
    assert store.search_patients(typed) == local.search_patients(typed)


@pytest.mark.parametrize("patient_id", ["abc-123", "ghi-789", "555"])
def test_both_stores_show_the_same_chart(store: RemoteStore, local: SqliteStore, patient_id: str) -> None:
    here, there = local.chart(patient_id), store.chart(patient_id)
    assert here.patient == there.patient == store.patient(patient_id)
    for section in [name for name, value in vars(here).items() if isinstance(value, list)]:
        assert sorted(map(bare, getattr(here, section))) == sorted(map(bare, getattr(there, section)))


def bare(resource: dict) -> str:
    content = {key: value for key, value in resource.items() if key != "meta"}
    # JavaScript writes 5.0 as 5
    return json.dumps(json.loads(json.dumps(content), parse_int=float), sort_keys=True)


def test_nobody_is_none(store: RemoteStore) -> None:
    assert store.patient("nobody") is None
    assert store.chart("nobody") is None
    assert store.chart("../Patient/abc-123") is None and store.patient("abc-123/_history") is None


def test_a_write_happens_once_per_key(store: RemoteStore) -> None:
    first = store.create(allergy("402", "shellfish"), by("t1:1:add_allergy"))
    assert store.create(allergy("402", "something else"), by("t1:1:add_allergy")) == first
    assert first["meta"]["versionId"] and first["id"]
    (stored,) = kept(store, "AllergyIntolerance", identifier=f"{KEY_SYSTEM}|t1:1:add_allergy")
    assert stored["id"] == first["id"]
    (record,) = kept(store, "Provenance", target=f"AllergyIntolerance/{first['id']}")
    assert record["agent"][0]["who"]["display"] == "Dr. Lee"
    assert record["entity"][0]["what"]["identifier"]["value"] == "thread-7"


def test_a_key_with_characters_of_the_search_syntax_still_writes_once(store: RemoteStore) -> None:
    key = "t|1,2$3\\4 ?&%é"
    assert store.create(allergy("402", "dust"), by(key))["id"] == store.create(allergy("402", "dust"), by(key))["id"]
    assert (
        store.create(allergy("402", "dust"), by(key + "!"))["id"] != store.create(allergy("402", "dust"), by(key))["id"]
    )


def test_eight_threads_with_one_key_make_one_resource(store: RemoteStore) -> None:
    ids: list[str] = []

    def work() -> None:
        ids.append(store.create(allergy("402", "pollen"), by("one key"))["id"])

    threads = [threading.Thread(target=work) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(ids) == 8 and len(set(ids)) == 1


def test_what_the_server_refuses_is_typed_and_not_written(store: RemoteStore) -> None:
    with pytest.raises(ToolError) as caught:  # valid for fhir.resources; Medplum also checks the invariants
        store.create({k: v for k, v in allergy("402", "cats").items() if k != "clinicalStatus"}, by("refused"))
    assert caught.value.error_type is ErrorType.INVALID_ARGS
    with pytest.raises(ToolError) as caught:
        store.create(allergy("nobody"), by("refused"))
    assert caught.value.error_type is ErrorType.NOT_FOUND
    with pytest.raises(ToolError) as caught:
        store.create(allergy("402") | {"colour": "red"}, by("refused"))
    assert caught.value.error_type is ErrorType.INVALID_ARGS
    assert kept(store, "AllergyIntolerance", identifier=f"{KEY_SYSTEM}|refused") == []


def test_every_page_is_read(store: RemoteStore) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    person = {"resourceType": "Patient", "id": "many-1", "name": [{"given": ["Many"], "family": "Entries"}]}
    dose = {"resourceType": "Immunization", "status": "completed", "vaccineCode": {"text": "x"}}
    dose |= {"patient": {"reference": "Patient/many-1"}, "occurrenceDateTime": "2020-01-01"}
    with httpx.Client(headers=headers, timeout=60) as client:
        client.put(f"{store.base_url}/Patient/many-1", json=person).raise_for_status()
        for _ in range(230):
            client.post(f"{store.base_url}/Immunization", json=dose).raise_for_status()
    assert len(store.chart("many-1").immunizations) == 230


def test_a_wrong_token_is_not_an_empty_chart(medplum: str) -> None:
    for action in actions(RemoteStore(medplum, Token("wrong"), timeout_s=60)):
        with pytest.raises(RemoteError) as caught:
            action()
        assert caught.value.error_type is ErrorType.NOT_PERMITTED
        assert "DOCGEMMA_EHR_TOKEN" in caught.value.line() and "wrong" not in caught.value.line()


# servers that misbehave


def actions(store: RemoteStore) -> list[Callable[[], object]]:
    return [
        lambda: store.search_patients("John Smith"),
        lambda: store.patient("abc-123"),
        lambda: store.chart("abc-123"),
        lambda: store.create(allergy("abc-123"), by("k1")),
    ]


def outcome(code: str, severity: str = "error") -> bytes:
    issue = {"severity": severity, "code": code, "diagnostics": "Patient John Smith has no such thing"}
    return json.dumps({"resourceType": "OperationOutcome", "issue": [issue]}).encode()


BEHAVIOURS = {
    "hang": (misbehave.hang, ErrorType.TIMEOUT),
    "drip_body": (misbehave.drip_body, ErrorType.TIMEOUT),
    "drip_headers": (misbehave.drip_headers, ErrorType.TIMEOUT),
    "half": (misbehave.half, ErrorType.INVALID_RESPONSE),
    "nothing": (misbehave.nothing, ErrorType.INVALID_RESPONSE),
    "endless": (misbehave.endless, ErrorType.INVALID_RESPONSE),
    "bomb": (misbehave.bomb, ErrorType.INVALID_RESPONSE),
    "html": (misbehave.HTML, ErrorType.INVALID_RESPONSE),
    "html 404": (misbehave.HTML_404, ErrorType.INVALID_RESPONSE),
    "broken json": (misbehave.BROKEN_JSON, ErrorType.INVALID_RESPONSE),
    "a list": (misbehave.A_LIST, ErrorType.INVALID_RESPONSE),
    "deep json": (misbehave.DEEP_JSON, ErrorType.INVALID_RESPONSE),
    "bad gzip": (misbehave.BAD_GZIP, ErrorType.INVALID_RESPONSE),
    "not utf-8": (misbehave.NOT_UTF8, ErrorType.INVALID_RESPONSE),
    "redirect": (misbehave.OFF_HOST, ErrorType.INVALID_RESPONSE),
    "empty object": (status(200, b"{}"), ErrorType.INVALID_RESPONSE),
    "empty 200": (status(200, b""), ErrorType.INVALID_RESPONSE),
    "empty 204": (status(204, b""), ErrorType.INVALID_RESPONSE),
    "another bundle": (status(200, b'{"resourceType": "Bundle", "type": "history"}'), ErrorType.INVALID_RESPONSE),
    "no entries": (
        status(200, b'{"resourceType": "Bundle", "type": "searchset", "entry": 1}'),
        ErrorType.INVALID_RESPONSE,
    ),
    "400": (status(400, outcome("invalid")), ErrorType.INVALID_ARGS),
    "401": (status(401, b""), ErrorType.NOT_PERMITTED),
    "403": (status(403, outcome("forbidden")), ErrorType.NOT_PERMITTED),
    "429": (status(429, b"", Retry_After="600"), ErrorType.RATE_LIMIT),
    "500": (status(500, outcome("exception")), ErrorType.SERVER_ERROR),
    "502": (status(502, b"<html>"), ErrorType.SERVICE_UNAVAILABLE),
    "503": (status(503, b"", Retry_After="600"), ErrorType.SERVICE_UNAVAILABLE),
    "504": (status(504, b""), ErrorType.TIMEOUT),
    "a failure called 200": (status(200, outcome("exception")), ErrorType.INVALID_RESPONSE),
    "throttled": (status(400, outcome("throttled")), ErrorType.RATE_LIMIT),
    "locked": (status(409, outcome("lock-error")), ErrorType.SERVICE_UNAVAILABLE),
}  # fmt: skip


@pytest.mark.parametrize("action", range(4), ids=["search", "patient", "chart", "create"])
@pytest.mark.parametrize("name", BEHAVIOURS)
def test_an_outage_is_typed_and_never_nothing_found(name: str, action: int) -> None:
    behaviour, expected = BEHAVIOURS[name]
    with Misbehaving(behaviour) as server:
        store = RemoteStore(server.url, Token(TOKEN), timeout_s=0.6 if expected is ErrorType.TIMEOUT else 30)
        with pytest.raises(RemoteError) as caught:
            actions(store)[action]()
    error = caught.value
    assert error.error_type is expected
    assert isinstance(error, StoreError) and isinstance(error, ToolError)
    assert "\n" not in error.line() and error.line() != str(error.error_type)
    for secret in ("John", "Smith", TOKEN, "abc-123"):
        assert secret not in error.line()


def test_nobody_listens() -> None:
    for action in actions(RemoteStore("http://127.0.0.1:9/fhir", timeout_s=2)):
        with pytest.raises(RemoteError, match="cannot be reached") as caught:
            action()
        assert caught.value.error_type is ErrorType.SERVICE_UNAVAILABLE


def test_a_fhir_servers_404_is_a_patient_who_is_not_there() -> None:
    for code in (404, 410):
        with Misbehaving(status(code, outcome("not-found"), **FHIR)) as server:
            store = RemoteStore(server.url, timeout_s=5)
            assert store.patient("abc-123") is None and store.chart("abc-123") is None
            with pytest.raises(ToolError) as caught:
                store.create(allergy("abc-123"), by("k1"))
            assert caught.value.error_type is ErrorType.NOT_FOUND
            with pytest.raises(RemoteError):  # but a search that is not there is not an empty one
                store.search_patients("John Smith")


def test_an_empty_search_result_has_no_entry_and_is_an_empty_list() -> None:
    with Misbehaving(status(200, b'{"resourceType": "Bundle", "type": "searchset", "total": 0}', **FHIR)) as server:
        assert RemoteStore(server.url, timeout_s=5).search_patients("John Smith") == []


SMITH = {"resourceType": "Patient", "id": "abc-123", "name": [{"given": ["John"], "family": "Smith"}]}


@pytest.mark.parametrize("first", [status(503, b""), status(429, b"", Retry_After="0"), misbehave.nothing, status(502)])
def test_a_moments_failure_is_tried_again(first) -> None:
    with Misbehaving(first, status(200, json.dumps(SMITH).encode(), **FHIR)) as server:
        assert RemoteStore(server.url, timeout_s=10).patient("abc-123").name == "John Smith"
        assert server.count == 2


@pytest.mark.parametrize(
    ("behaviour", "tries"),
    [
        (status(500), 1),
        (status(400), 1),
        (status(403), 1),
        (status(503, b""), 3),
        (status(503, b"", Retry_After="60"), 1),
    ],
)
def test_tries_are_bounded(behaviour, tries: int) -> None:
    with Misbehaving(behaviour) as server:
        with pytest.raises(RemoteError):
            RemoteStore(server.url, timeout_s=10).patient("abc-123")
        assert server.count == tries


def test_another_patient_than_asked_for_is_an_error() -> None:
    other = SMITH | {"id": "def-456"}
    with Misbehaving(status(200, json.dumps(other).encode(), **FHIR)) as server, pytest.raises(RemoteError):
        RemoteStore(server.url, timeout_s=5).patient("abc-123")


# servers that answer, oddly


def searchset(*resources: dict, **more) -> Response:
    entries = [{"resource": item, "search": {"mode": "match"}} for item in resources]
    return fhir({"resourceType": "Bundle", "type": "searchset", "entry": entries, **more})


def fhir(body: dict, code: int = 200) -> Response:
    return Response(json.dumps(body), code, content_type="application/fhir+json;charset=UTF-8")


def serve(httpserver: HTTPServer, answer: Callable[[Request], Response]) -> RemoteStore:
    httpserver.expect_request(re.compile("/.*")).respond_with_handler(answer)
    return RemoteStore(httpserver.url_for("/fhir"), timeout_s=10)


def test_a_server_that_ignores_the_patient_parameter_is_refused(httpserver: HTTPServer) -> None:
    def answer(request: Request) -> Response:
        if request.path.endswith("/Patient/abc-123"):
            return fhir(SMITH)
        return searchset(allergy("def-456") | {"id": "a1"}) if "Allergy" in request.path else searchset()

    with pytest.raises(RemoteError, match="another patient"):
        serve(httpserver, answer).chart("abc-123")


def test_the_token_never_goes_to_another_host(httpserver: HTTPServer) -> None:
    with Misbehaving(status(200, b"{}")) as elsewhere:
        link = [{"relation": "next", "url": f"{elsewhere.url}/fhir?page=2"}]
        store = serve(httpserver, lambda request: searchset(SMITH, link=link))
        with pytest.raises(RemoteError, match="another server"):
            store.search_patients("John Smith")
        assert elsewhere.count == 0


def test_pages_without_end_are_an_error_and_not_a_part(httpserver: HTTPServer) -> None:
    def answer(request: Request) -> Response:
        if request.path.endswith("/Patient/abc-123"):
            return fhir(SMITH)
        return searchset(link=[{"relation": "next", "url": "?page=more"}])

    with pytest.raises(RemoteError, match="pages"):
        serve(httpserver, answer).chart("abc-123")


def test_a_relative_link_to_the_next_page_is_followed(httpserver: HTTPServer) -> None:
    def answer(request: Request) -> Response:
        if "page" in request.args:
            return searchset(SMITH)
        return searchset(link=[{"relation": "self", "url": "x"}, {"relation": "next", "url": "Patient?page=2"}])

    assert [match.id for match in serve(httpserver, answer).search_patients("John Smith")] == ["abc-123"]


def test_requests_are_strict_uncached_and_encoded(httpserver: HTTPServer) -> None:
    serve(httpserver, lambda request: searchset()).search_patients("O'Brien, Ana & Co")
    request, _ = httpserver.log[0]
    assert request.headers["Prefer"] == "handling=strict"
    assert request.headers["Cache-Control"] == "no-cache"
    assert request.headers["Accept"] == "application/fhir+json"
    assert request.args.getlist("name") == ["O'Brien", "Ana", "Co"]


class Forgetful:
    """A server that ignores If-None-Exist, and may be told to fail after it has stored."""

    def __init__(self, answers: list[Response | None] | None = None):
        self.stored: list[dict] = []
        self.answers = answers or []
        self.conditions: list[str] = []

    def __call__(self, request: Request) -> Response:
        if request.path.endswith("/Patient/abc-123"):
            return fhir(SMITH)
        if request.method == "GET":
            wanted = request.args.get("identifier", "").rpartition("|")[2]
            return searchset(*(item for item in self.stored if wanted and wanted == item["identifier"][0]["value"]))
        if "/Provenance" in request.path:
            return fhir({"resourceType": "OperationOutcome", "issue": []}, 403)
        self.conditions.append(request.headers["If-None-Exist"])
        self.stored.append(request.json | {"id": f"a{len(self.stored)}"})
        return (self.answers.pop(0) if self.answers else None) or fhir(self.stored[-1], 201)


def test_a_server_without_conditional_create_still_stores_once(httpserver: HTTPServer) -> None:
    server = Forgetful()
    store = serve(httpserver, server)
    assert store.create(allergy("abc-123"), by("k1")) == store.create(allergy("abc-123"), by("k1"))
    assert len(server.stored) == 1
    assert unquote(server.conditions[0]) == f"identifier={KEY_SYSTEM}|k1" and "|" not in server.conditions[0]


@pytest.mark.parametrize(
    "reply", [Response("", 201), Response("", 200), fhir({"resourceType": "OperationOutcome"}, 201)]
)
def test_a_write_that_is_not_sent_back_is_read_back(httpserver: HTTPServer, reply: Response) -> None:
    assert serve(httpserver, Forgetful([reply])).create(allergy("abc-123"), by("k1"))["id"] == "a0"


def test_a_write_that_failed_after_it_was_stored_is_found_by_its_key(httpserver: HTTPServer) -> None:
    server = Forgetful([fhir({"resourceType": "OperationOutcome"}, 500)])
    store = serve(httpserver, server)
    with pytest.raises(RemoteError) as caught:
        store.create(allergy("abc-123"), by("k1"))
    assert caught.value.error_type is ErrorType.SERVER_ERROR and caught.value.retryable
    assert store.create(allergy("abc-123"), by("k1"))["id"] == "a0"
    assert len(server.stored) == 1


def test_refused_provenance_is_logged_and_does_not_make_a_stored_write_look_failed(httpserver, caplog) -> None:
    stored = serve(httpserver, Forgetful()).create(allergy("abc-123"), by("k1"))
    assert stored["id"] == "a0"
    (line,) = [record.getMessage() for record in caplog.records if record.name.startswith("docgemma.ehr")]
    assert "who made it was not" in line and "abc-123" not in line


def test_neither_names_nor_tokens_are_logged(httpserver: HTTPServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    answers = iter([Response("", 503), searchset(SMITH)])
    httpserver.expect_request(re.compile("/.*")).respond_with_handler(lambda request: next(answers))
    store = RemoteStore(httpserver.url_for("/fhir"), Token(TOKEN), timeout_s=10)
    assert len(store.search_patients("John Smith")) == 1
    ours = [record for record in caplog.records if record.name != "werkzeug"]
    text = "\n".join(f"{record.getMessage()} {vars(record)}" for record in ours)
    assert "John" not in text and TOKEN not in text
    assert not [record for record in ours if record.levelno >= logging.WARNING]  # nor is a pause worth a line on stderr


# who we are


class TokenServer:
    """A FHIR server and its token endpoint. A token is good for `uses` requests."""

    def __init__(self, uses: int = 1000, basic: bool = True):
        self.uses, self.basic, self.issued = uses, basic, 0

    def __call__(self, request: Request) -> Response:
        if request.path.endswith("/.well-known/smart-configuration"):
            return Response(json.dumps({"token_endpoint": f"{request.host_url}token"}), content_type="application/json")
        if request.path == "/token":
            return self.token(request)
        if request.headers.get("Authorization") != f"Bearer token-{self.issued}" or self.uses == 0:
            return fhir({"resourceType": "OperationOutcome"}, 401)
        self.uses -= 1
        return searchset()

    def token(self, request: Request) -> Response:
        form, sent = parse_qs(request.get_data(as_text=True)), request.authorization
        known = sent is not None and (sent.username, sent.password) == ("id", "s%26cret") if self.basic else (
            form.get("client_id") == ["id"] and form.get("client_secret") == ["s&cret"]
        )  # fmt: skip
        if not known or form["grant_type"] != ["client_credentials"]:
            return Response('{"error": "invalid_client"}', 401, content_type="application/json")
        self.issued, self.uses = self.issued + 1, self.uses or 1000
        body = {"access_token": f"token-{self.issued}", "token_type": "Bearer", "expires_in": 3600}
        return Response(json.dumps(body), content_type="application/json")


def credentials_settings(httpserver: HTTPServer, secret: str = "s&cret", **more) -> Settings:
    return Settings(ehr=httpserver.url_for("/fhir"), ehr_client_id="id", ehr_client_secret=secret, **more)


@pytest.mark.parametrize("basic", [True, False], ids=["basic", "in the body"])
@pytest.mark.parametrize("discovered", [True, False])
def test_client_credentials_are_used_once_for_many_calls(httpserver: HTTPServer, basic: bool, discovered: bool) -> None:
    server = TokenServer(basic=basic)
    httpserver.expect_request(re.compile("/.*")).respond_with_handler(server)
    more = {} if discovered else {"ehr_token_url": httpserver.url_for("/token")}
    store = open_store(credentials_settings(httpserver, **more))
    for _ in range(3):
        assert store.search_patients("John Smith") == []
    assert server.issued == 1


def test_a_token_that_ended_early_is_renewed(httpserver: HTTPServer) -> None:
    server = TokenServer(uses=2)
    httpserver.expect_request(re.compile("/.*")).respond_with_handler(server)
    store = open_store(credentials_settings(httpserver))
    assert store.search_patients("Xq") == store.search_patients("Xq") == []
    assert server.issued == 2


def test_a_token_is_renewed_before_it_ends(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server, clock = TokenServer(), [1000.0]
    httpserver.expect_request(re.compile("/.*")).respond_with_handler(server)
    store = open_store(credentials_settings(httpserver))
    monkeypatch.setattr("docgemma.ehr.auth.time.monotonic", lambda: clock[0])
    for moment, issued in [(1000, 1), (4500, 1), (4569, 1), (4571, 2)]:
        clock[0] = moment
        assert store.search_patients("Xq") == []
        assert server.issued == issued


def test_refused_credentials_are_said_without_the_secret(httpserver: HTTPServer) -> None:
    httpserver.expect_request(re.compile("/.*")).respond_with_handler(TokenServer())
    with pytest.raises(RemoteError) as caught:
        open_store(credentials_settings(httpserver, secret="wr0ng")).chart("abc-123")
    assert caught.value.error_type is ErrorType.NOT_PERMITTED
    assert "wr0ng" not in caught.value.line() and "client" in caught.value.line()


def test_a_server_that_does_not_say_where_tokens_are_needs_the_setting(httpserver: HTTPServer) -> None:
    httpserver.expect_request(re.compile("/.*")).respond_with_data("", status=404)
    with pytest.raises(ConfigError, match="where its tokens are") as caught:
        open_store(credentials_settings(httpserver)).chart("abc-123")
    assert "DOCGEMMA_EHR_TOKEN_URL" in caught.value.line()


def test_a_token_address_without_encryption_is_not_used_by_an_encrypted_server() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.method == "GET", "the secret was sent"
        return httpx.Response(200, json={"token_endpoint": "http://example.org/token"})

    with (
        httpx.Client(transport=httpx.MockTransport(answer)) as client,
        pytest.raises(RemoteError, match="not encrypted"),
    ):
        ClientCredentials("https://example.org/fhir", "id", "secret")._renew(client)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({}, type(None)),
        ({"ehr_token": "t"}, Token),
        ({"ehr_client_id": "i", "ehr_client_secret": "s"}, ClientCredentials),
        ({"ehr_token": "t", "ehr_client_id": "i"}, Token),
    ],
)
def test_settings_choose_how_we_are_known(given: dict, kind: type) -> None:
    assert isinstance(auth_from(Settings(**given), "https://example.org"), kind)


@pytest.mark.parametrize("given", [{"ehr_client_id": "i"}, {"ehr_client_secret": "s"}])
def test_half_of_the_credentials_is_a_clear_error(given: dict) -> None:
    with pytest.raises(ConfigError, match="client id and a client secret"):
        open_store(Settings(ehr="https://example.org/fhir", **given))


@pytest.mark.parametrize(
    "address", ["https://user:pw@example.org/fhir", "https://", "http://a b/fhir", "https://x/fhir?a=1"]
)
def test_an_address_that_is_not_plain_is_refused(address: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(Settings(ehr=address))
    assert "pw" not in str(caught.value)


# recorded responses


@recorded
def test_recorded_pages_of_hapi_are_one_result(httpserver: HTTPServer) -> None:
    pages = [json.loads((FIXTURES / f"kit_search-results-page-{number}.json").read_text()) for number in (1, 2)]
    names = [entry["resource"]["name"][0] for page in pages for entry in page["entry"]]

    def answer(request: Request) -> Response:
        page = pages["_getpages" in request.args]
        links = [item for item in page["link"] if item["relation"] == "next"] if page is pages[0] else []
        links = [item | {"url": f"{httpserver.url_for('/fhir')}?{item['url'].partition('?')[2]}"} for item in links]
        return fhir(page | {"link": links})

    store = serve(httpserver, answer)
    with store._session() as session:
        bundle = session.search("Patient", [])
    assert [item["name"][0] for item in bundle] == names and len(names) == 6


@recorded
@pytest.mark.parametrize(
    ("name", "code", "expected"),
    [
        ("kit_patient-not-found.json", 404, ErrorType.NOT_FOUND),
        ("kit_patient-version-not-found.json", 404, ErrorType.NOT_FOUND),
        ("kit_transaction-error-response.json", 400, ErrorType.INVALID_ARGS),
        ("kit_patient-not-patched.json", 400, ErrorType.INVALID_ARGS),
        ("r4_operationoutcome_example.json", 422, ErrorType.INVALID_ARGS),
    ],
)
def test_recorded_outcomes_are_typed(name: str, code: int, expected: ErrorType) -> None:
    body = json.loads((FIXTURES / name).read_text())
    error = error_of("FHIR server x", code, body.get("response", {}).get("data", body))
    assert error.error_type is expected
