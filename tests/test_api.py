"""The REST API as a program meets it: `docgemma serve` in a process of its own, over HTTP, with the edge model."""

import asyncio
import base64
import contextlib
import json
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import jsonschema
import pytest
from starlette.requests import Request

from docgemma.agent import Agent
from docgemma.api import docs
from docgemma.api.access import Rate, new_thread, owns, read_tokens
from docgemma.api.app import health
from docgemma.api.problems import Problem, problem_of
from docgemma.api.stream import events as event_stream
from docgemma.ehr.open import open_store
from docgemma.errors import ConfigError, DocGemmaError, StoppedError
from docgemma.listening import listen
from docgemma.nodes.context import Actor
from docgemma.settings import Settings
from docgemma.turns import Turns
from tests.api_server import SECRETS, TOKENS, Server
from tests.conftest import CONTRACT
from tests.databases import postgres_server
from tests.scripted import ScriptedLLM
from tests.test_graph_v3 import intent

SAFETY = "Check FDA warnings for dofetilide"
ORDER = "Prescribe lisinopril 10 mg once daily for def-456"


@pytest.fixture(scope="module")
def server(prepared_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = Path(shutil.copytree(prepared_home, tmp_path_factory.mktemp("api") / "home"))
    running = Server(home, "--no-demo", DOCGEMMA_API_TOKENS=TOKENS, DOCGEMMA_API_BODY_MB="1", DOCGEMMA_API_RATE="1000")
    yield running
    running.kill()


@pytest.fixture(scope="module")
def paced(prepared_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Without tokens, and with low limits."""
    home = Path(shutil.copytree(prepared_home, tmp_path_factory.mktemp("paced") / "home"))
    running = Server(home, paced=True, DOCGEMMA_API_TURNS="1", DOCGEMMA_API_TIMEOUT="6")
    yield running
    running.kill()


def ask(client: httpx.Client, question: str, **more) -> dict:
    answer = client.post("/agent/query", json={"question": question, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def problem(answer: httpx.Response, status: int, *words: str) -> dict:
    """It is a problem document of one clear line that says what to do next."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == status and body["next"] and "\n" not in body["detail"]
    assert body["request_id"] == answer.headers["x-request-id"]
    for word in words:
        assert word in body["detail"] + body["next"], body
    return body


def read_events(answer: httpx.Response) -> Iterator[tuple[str, dict]]:
    name = ""
    for line in answer.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def stream(client: httpx.Client, body: dict, path: str = "/agent/query"):
    return client.stream("POST", path, json=body, headers={"Accept": "text/event-stream"})


# -- asking ------------------------------------------------------------------------------------------------------------


def test_a_question_gets_the_object_that_ask_json_prints(server: Server, valid) -> None:
    with server.client("ward") as client:
        result = valid(ask(client, SAFETY))
        assert result["status"] == "answered" and result["model"] == "edge"
        assert result["tools"][0]["args"] == {"drug_name": "dofetilide"}
        assert client.get("/agent/threads").json()["threads"][0] == {"thread": result["thread"], "question": SAFETY}


def test_events_come_in_the_order_of_the_work_and_end_with_the_report(server: Server, valid) -> None:
    with server.client("ward") as client, stream(client, {"question": SAFETY}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = list(read_events(answer))
    names = [name for name, _ in events]
    assert names[0] == "thread" and names[-1] == "report" and names[-2] == "node_finished"
    started = [data["node"] for name, data in events if name == "node_started"]
    finished = [data["node"] for name, data in events if name == "node_finished"]
    report = valid(events[-1][1])
    assert started == finished == report["path"]
    pairs = [(name, data["node"]) for name, data in events if name.startswith("node_")]
    assert pairs == [(name, node) for node in report["path"] for name in ("node_started", "node_finished")]
    assert report["thread"] == events[0][1]["thread"]
    assert names.index("token") > names.index("node_started")
    assert "".join(data["text"] for name, data in events if name == "token").split()[0] in report["answer"]
    assert next(data["text"] for name, data in events if name == "answer") == report["answer"]


def test_a_clarification_is_answered_in_its_conversation(server: Server) -> None:
    with server.client("ward") as client:
        first = ask(client, "Find patient James Wilson and check his chart")
        assert first["status"] == "needs_clarification" and len(first["options"]) == 3
        second = ask(client, "the second one", thread=first["thread"])
    assert second["thread"] == first["thread"]
    assert any(tool["args"].get("patient_id") == first["options"][1]["id"] for tool in second["tools"])


def test_an_image_comes_as_base64(server: Server, png: Path) -> None:
    encoded = base64.b64encode(png.read_bytes()).decode()
    with server.client("ward") as client:
        result = ask(client, "What do you see?", image=encoded)
    assert "64 x 48 pixels" in result["answer"], "the edge model has no eyes, and says what the header tells"
    assert not list(server.uploads.glob("docgemma-api-*")), "an upload was left behind"


def test_callers_at_once_hear_of_their_own_patient_only(server: Server) -> None:
    about = {"ward": "def-456", "clinic": "ghi-789", "viewer": "abc-123"}
    heard: dict[str, dict] = {}

    def run(name: str) -> None:
        with server.client(name) as client:
            heard[name] = ask(client, f"Show the chart of {about[name]}")

    threads = [threading.Thread(target=run, args=(name,)) for name in about]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, patient in about.items():
        text = json.dumps(heard[name])
        assert patient in text
        assert not [other for other in about.values() if other != patient and other in text]


# -- who may do what ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong-0123456789abcdef"}, {"Authorization": "ward"}])
def test_without_a_known_token_nothing_is_said(server: Server, headers: dict[str, str]) -> None:
    for method, path in (("POST", "/agent/query"), ("POST", "/agent/resume"), ("GET", "/agent/threads")):
        answer = httpx.request(method, server.url + path, headers=headers)
        problem(answer, 401, "Authorization: Bearer")
        assert answer.headers["www-authenticate"] == "Bearer"


def test_a_reading_token_may_ask_and_reject_but_neither_approve_nor_edit(server: Server) -> None:
    before = orders(server.home)
    with server.client("viewer") as client:
        stopped = ask(client, ORDER)
        assert stopped["status"] == "needs_approval"
        for decision in ({"decision": "approve"}, {"decision": "edit", "changes": {"dosage": "5 mg"}}):
            problem(client.post("/agent/resume", json={"thread": stopped["thread"], **decision}), 403, "read only")
        assert orders(server.home) == before
        rejected = client.post("/agent/resume", json={"thread": stopped["thread"], "decision": "reject"}).json()
    assert rejected["status"] == "refused" and orders(server.home) == before


def test_a_write_in_the_name_of_somebody_who_may_not_is_refused_by_the_tool_too(
    agent: Agent, scripted: ScriptedLLM
) -> None:
    """Below the API: the turn of a reading token carries no approval, whatever resumes it."""
    intent(scripted, "prescribe_medication")
    scripted.enqueue("synthesize", "It could not be recorded.")
    viewer = Actor("viewer", may_write=False)
    thread = agent.ask(ORDER, actor=viewer)["thread"]
    result = agent.decide(thread, "approve", actor=viewer)
    assert [tool["error_type"] for tool in result["tools"]] == ["not_permitted"]
    assert orders(agent.settings.home) == []


def test_somebody_elses_conversation_is_as_unknown_as_none(server: Server) -> None:
    with server.client("ward") as ward, server.client("clinic") as clinic:
        theirs = ask(ward, "What is hypertension?")["thread"]
        never = theirs[:-4] + "0000"
        for thread in (theirs, never, "api.clinic." + "0" * 24, "web.x.y", "344a50d100f0", "api.clinic.%\x00'"):
            bodies = [
                clinic.post("/agent/query", json={"question": "And then?", "thread": thread}),
                clinic.post("/agent/resume", json={"thread": thread}),
                clinic.post("/agent/resume", json={"thread": thread, "decision": "approve"}),
            ]
            said = {(body["detail"], body["next"]) for body in (problem(answer, 404) for answer in bodies)}
            assert len(said) == 1
        assert theirs not in clinic.get("/agent/threads").text


# -- what is not accepted ----------------------------------------------------------------------------------------------

LONG = "Maria Garcia " * 400
REFUSED = {  # content, media type, status, words
    "broken JSON": (b'{"question": "Maria Garcia', "application/json", 422, ("JSON",)),
    "no JSON at all": (b"\xff\xfe\x00Maria Garcia", "application/json", 422, ("JSON",)),
    "a list": (b'["Maria Garcia"]', "application/json", 422, ("object", "question")),
    "nested beyond reason": (b"[" * 100_000, "application/json", 422, ("JSON",)),
    "no question": (b"{}", "application/json", 422, ("question",)),
    "an unknown field": (b'{"question": "x", "Maria Garcia": 1}', "application/json", 422, ("fields: question",)),
    "a question that is no text": (b'{"question": ["Maria Garcia"]}', "application/json", 422, ("question",)),
    "half a character": (b'{"question": "\\ud800 Maria Garcia"}', "application/json", 422, ("JSON",)),
    "an invisible question": ('{"question": "\u200f\u202e \\n"}'.encode(), "application/json", 422, ("empty",)),
    "a long question": (json.dumps({"question": LONG}).encode(), "application/json", 422, ("4,000",)),
    "an unknown patient": (b'{"question": "x", "patient": "Maria Garcia"}', "application/json", 404, ("patient",)),
    "an image that is no base64": (b'{"question": "x", "image": "Maria!"}', "application/json", 422, ("base64",)),
    "an image that is none": (b'{"question": "x", "image": "TWFyaWE="}', "application/json", 422, ("image",)),
    "another type": (b"question=Maria+Garcia", "application/x-www-form-urlencoded", 415, ("application/json",)),
    "a form": (b"Maria Garcia", "multipart/form-data", 415, ("application/json",)),
    "too much": (b'{"question": "' + b"Maria Garcia" * 100_000, "application/json", 413, ("1 MB",)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_gets_one_line_that_repeats_nothing(server: Server, name: str) -> None:
    content, media_type, status, words = REFUSED[name]
    with server.client("ward") as client:
        answer = client.post("/agent/query", content=content, headers={"Content-Type": media_type})
    problem(answer, status, *words)
    assert "Maria" not in answer.text


def test_a_body_that_does_not_say_its_size_is_cut_off_too(server: Server) -> None:
    with server.client("ward") as client:
        pieces = (b"x" * 100_000 for _ in range(12))
        answer = client.post("/agent/query", content=pieces, headers={"Content-Type": "application/json"})
    problem(answer, 413)


def test_decisions_that_cannot_be_made_say_why(server: Server) -> None:
    with server.client("ward") as client:
        thread = ask(client, ORDER)["thread"]

        def resume(**body) -> httpx.Response:
            return client.post("/agent/resume", json={"thread": thread, **body})

        other = {"name": "add_allergy", "label": "Allergy", "args": {}, "findings": [], "original": {},
                 "patient": {"id": "ghi-789", "name": "A. B.", "birth_date": ""}}  # fmt: skip
        problem(resume(decision="approve", seen=other), 409, "/agent/resume")
        problem(resume(decision="edit"), 422, "edit")
        problem(resume(decision="approve", changes={"dosage": "5 mg"}), 422, "edit")
        problem(resume(decision="edit", changes={"colour": "Maria"}), 422, "dosage")
        problem(resume(decision="maybe"), 422, "decision")
        assert resume(decision="reject").json()["status"] == "refused"
        problem(resume(decision="approve"), 409)
        again = resume()
    assert again.status_code == 200 and again.json()["status"] == "refused"  # as it stands


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def test_conversations_survive_a_kill_and_an_approved_entry_is_written_once(server: Server) -> None:
    before = len(orders(server.home))
    with server.client("ward") as client:
        waiting = ask(client, ORDER)
        with stream(client, {"question": SAFETY}) as answer:
            events = read_events(answer)
            cut_off = next(events)[1]["thread"]
            assert any(name == "node_finished" and data["node"] == "input_assembly" for name, data in events)
            server.kill()
    server.start()
    with server.client("ward") as client:
        taken_up = client.post("/agent/resume", json={"thread": cut_off}).json()
        assert taken_up["status"] == "answered" and "dofetilide" in taken_up["answer"].lower()
        decision = {"thread": waiting["thread"], "decision": "approve", "seen": waiting["pending_write"]}
        approved = client.post("/agent/resume", json=decision)
        assert approved.status_code == 200 and approved.json()["status"] == "answered"
        problem(client.post("/agent/resume", json=decision), 409)
    written = orders(server.home)
    assert len(written) == before + 1
    assert who_wrote(server.home, written) == "ward"


def test_a_reason_for_approving_against_a_grave_finding_is_kept_and_may_be_missing(server: Server, valid) -> None:
    with server.client("ward") as client:
        for reason, kept in (("Asked the family", "Asked the family"), (None, "no reason given")):
            thread = ask(client, "Prescribe amoxicillin 500 mg twice daily for ghi-789")["thread"]
            body = {"thread": thread, "decision": "approve"} | ({"reason": reason} if reason else {})
            done = valid(client.post("/agent/resume", json=body).json())
            assert done["tools"][-1]["override"]["reason"] == kept


def test_who_leaves_stops_the_turn_and_finds_the_conversation_usable(paced: Server) -> None:
    with paced.client() as client:
        with stream(client, {"question": "How do loop diuretics work?"}) as answer:
            events = read_events(answer)
            thread = next(events)[1]["thread"]
            assert any(name == "token" for name, _ in events)
        after = ask(client, "Tell me briefly", thread=thread)
        assert after["thread"] == thread and after["status"] == "answered"
    assert " 499 " in paced.said()


def test_a_caller_of_plain_json_who_leaves_stops_the_turn_too(paced: Server) -> None:
    with paced.client() as client, pytest.raises(httpx.ReadTimeout):
        client.post("/agent/query", json={"question": "How do loop diuretics work?"}, timeout=1.5)
    with paced.client() as client:  # one turn a caller: it has ended
        assert eventually(lambda: client.post("/agent/query", json={"question": "Tell me briefly"}))


def test_a_turn_that_takes_too_long_is_stopped(paced: Server) -> None:
    with paced.client() as client:
        problem(
            client.post("/agent/query", json={"question": "How do loop diuretics work?"}), 504, "6 s", "/agent/resume"
        )
        assert eventually(lambda: client.post("/agent/query", json={"question": "Tell me briefly"}))


def test_more_questions_at_once_than_allowed_are_told_when_to_come_back(paced: Server) -> None:
    with paced.client() as client, stream(client, {"question": "Tell me briefly"}) as answer:
        events = read_events(answer)
        thread = next(events)[1]["thread"]
        busy = client.post("/agent/query", json={"question": "Tell me briefly", "thread": thread})
        problem(busy, 409, "being answered")
        more = client.post("/agent/query", json={"question": "Tell me briefly"})
        problem(more, 429, "At most 1")
        assert int(more.headers["retry-after"]) > 0
        assert list(events)[-1][0] == "report"


def test_an_unexpected_failure_is_one_line_and_names_nobody(paced: Server) -> None:
    with paced.client() as client:
        body = problem(client.post("/agent/query", json={"question": "break James Wilson"}), 500, "request_id")
        with stream(client, {"question": "break James Wilson"}) as answer:
            name, data = list(read_events(answer))[-1]
    assert name == "problem" and data["status"] == 500
    line = next(line for line in paced.said().splitlines() if body["request_id"] in line)
    assert " 500 " in line and "RuntimeError in api_server.py:" in line
    assert "Wilson" not in paced.said() + json.dumps(body) + json.dumps(data) and "Traceback" not in paced.said()


def test_a_page_of_another_site_reaches_nothing_where_no_token_is_set(paced: Server) -> None:
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
        answer = httpx.post(f"{paced.url}/agent/query", json={"question": "Tell me briefly"}, headers=headers)
        problem(answer, 403, "DOCGEMMA_API_TOKENS")
    own = httpx.get(f"{paced.url}/agent/threads", headers={"Origin": paced.url})
    assert own.status_code == 200


def test_health_says_what_runs_and_no_address_path_or_secret(server: Server) -> None:
    answer = httpx.get(f"{server.url}/health")
    assert answer.status_code == 200
    assert {
        "status": "ok",
        "model": "edge",
        "graph": "v3",
        "record_store": "reachable",
    }.items() <= answer.json().items()
    assert str(server.home) not in answer.text and not any(secret in answer.text for secret in SECRETS.values())


def test_the_log_holds_no_question_no_patient_no_conversation_and_no_token(server: Server) -> None:
    with server.client("ward") as client:
        problem(client.get("/patients/Maria%20Garcia?name=Garcia"), 404)
        problem(client.delete("/agent/threads", params={"patient": "def-456"}), 405)
        ask(client, "Find patient Maria Garcia")
    said = server.said()
    assert "POST /agent/query 200" in said and "GET (no such path) 404" in said
    words = ["Garcia", "Wilson", "dofetilide", "lisinopril", "def-456", "ghi-789", "api.ward", "hypertension", "?"]
    assert not [word for word in [*words, *SECRETS.values()] if word.lower() in said.lower()]
    assert "Traceback" not in said


# -- starting and ending -----------------------------------------------------------------------------------------------


def serve(home: Path, *args: str, **env: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "docgemma", "serve", *args],
        env={"PATH": "", "DOCGEMMA_HOME": str(home), "DOCGEMMA_MODEL": "edge", **env},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("args", "tokens", "words"),
    [
        (["--host", "0.0.0.0"], "", ["0.0.0.0", "DOCGEMMA_API_TOKENS"]),
        (["--host", "::"], "", ["DOCGEMMA_API_TOKENS"]),
        ([], "ward:write:short", ["Token 1", "16"]),
        ([], f"{TOKENS} ward:read:another-0123456789abcdef", ["Token 4"]),
        (["--port", "99999"], "", ["99999", "--port"]),
    ],
)
def test_a_start_that_cannot_be_gets_one_line(tmp_path: Path, args: list[str], tokens: str, words: list[str]) -> None:
    done = serve(tmp_path, *args, DOCGEMMA_API_TOKENS=tokens)
    assert done.returncode in (1, 2) and done.stdout == "" and len(done.stderr.strip().splitlines()) == 1, done.stderr
    for word in words:
        assert word in done.stderr
    assert "0123456789abcdef" not in done.stderr


def test_a_port_that_is_taken_gets_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = serve(tmp_path, "--port", str(taken.getsockname()[1]))
    assert done.returncode == 2 and "--port" in done.stderr and len(done.stderr.strip().splitlines()) == 1


def test_the_rate_holds_the_demo_asks_who_is_there_and_sigterm_lets_a_turn_end(
    prepared_home: Path, tmp_path: Path
) -> None:
    pytest.importorskip("gradio", reason="the demo extra is not installed")
    home = Path(shutil.copytree(prepared_home, tmp_path / "home"))
    server = Server(home, "--demo", paced=True, DOCGEMMA_API_TOKENS=TOKENS, DOCGEMMA_API_RATE="3")
    try:
        with server.client("viewer") as client:
            answers = [client.get("/agent/threads") for _ in range(4)]
            assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
            assert 0 < int(answers[-1].headers["retry-after"]) <= 20
        with httpx.Client(base_url=server.url, timeout=60) as browser:
            assert browser.get("/", follow_redirects=False).headers["location"] == "/demo/"
            page = browser.get("/demo/")
            assert "default-src 'self'" in page.headers["content-security-policy"]
            assert "frame-ancestors 'self'" in page.headers["content-security-policy"]
            assert browser.get("/demo/config").status_code == 401
            for name, status in (("viewer", 400), ("ward", 200)):
                sent = {"username": name, "password": SECRETS[name]}
                assert browser.post("/demo/login", data=sent).status_code == status
            assert browser.get("/demo/config").status_code == 200
            browser.get("/demo/logout?all_session=false")
            assert browser.get("/demo/config").status_code == 401
        with server.client("clinic") as client, stream(client, {"question": "Tell me briefly"}) as answer:
            events = read_events(answer)
            assert next(events)[0] == "thread" and next(events)[0] == "node_started"
            server.process.terminate()
            assert list(events)[-1][0] == "report"
        assert server.process.wait(60) == 0
    finally:
        server.kill()


def test_who_leaves_before_the_first_step_stops_the_turn_too() -> None:
    def until_stopped(on_event, stop):
        while not stop():
            time.sleep(0.01)
        raise StoppedError("Stopped.")

    async def leave() -> None:
        turns = Turns(slots=1)
        turn = turns.begin("api.ward.x", until_stopped)
        pieces = event_stream(turn, Request({"type": "http", "docgemma": {}}), 60)
        await anext(pieces)
        await pieces.aclose()
        assert await asyncio.to_thread(turn.over.wait, 30)
        turns.close()

    asyncio.run(leave())


# -- below the API -----------------------------------------------------------------------------------------------------


def test_two_questions_at_once_in_one_conversation_cannot_pass_an_entry_that_waits(
    agent: Agent, scripted: ScriptedLLM
) -> None:
    """The second one finds the entry, although nothing waited when it came: it is answered, and the entry waits."""
    second_came = threading.Event()
    complete = scripted.complete

    def slowly(*args, **kwargs):
        assert second_came.wait(10)
        time.sleep(0.3)  # for the second one to reach the conversation's door
        return complete(*args, **kwargs)

    scripted.complete = slowly
    intent(scripted, "prescribe_medication")
    intent(scripted)
    first: list[dict] = []
    work = threading.Thread(target=lambda: first.append(agent.ask(ORDER, thread="one", create=True)))
    work.start()
    while not scripted_began(agent):
        time.sleep(0.01)
    second_came.set()
    second = agent.ask("What is hypertension?", thread="one")
    work.join()
    assert first[0]["status"] == second["status"] == "needs_approval"
    assert second["pending_write"] == first[0]["pending_write"] and "blood pressure" in second["answer"]


def scripted_began(agent: Agent) -> bool:
    return agent.memory.get_tuple({"configurable": {"thread_id": "one"}}) is not None


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_conversations_are_listed_newest_first_and_by_their_owner_alone(
    database: str, settings: Settings, scripted: ScriptedLLM
) -> None:
    with contextlib.ExitStack() as stack:
        db = stack.enter_context(postgres_server()) if database == "postgres" else None
        agent = stack.enter_context(Agent(settings.model_copy(update={"db": db}), llm=scripted))
        for number, thread in enumerate(["api.a_b.1", "api.a_b.2", "api.axb.3", "web.a_b.4", "api.a_b.1"]):
            scripted.enqueue("intent_classify", {"intent": "DIRECT", "task_summary": "x", "suggested_tool": None})
            scripted.enqueue("synthesize", "An answer.")
            agent.ask(f"Question {number}", thread=thread, create=True)
        assert agent.threads("api.a_b.") == [
            {"thread": "api.a_b.1", "question": "Question 4"}, {"thread": "api.a_b.2", "question": "Question 1"},
        ]  # fmt: skip
        assert agent.threads("api.a_b.", limit=1) == [{"thread": "api.a_b.1", "question": "Question 4"}]


@pytest.mark.parametrize(("lost", "status"), [("store", "degraded"), ("memory", "down")])
def test_health_tells_an_outage_from_an_empty_record(agent: Agent, lost: str, status: str) -> None:
    agent.store.close() if lost == "store" else agent.memory.conn.close()
    report = asyncio.run(health(agent))
    assert report["status"] == status
    assert (report["record_store"], report["memory"]) == (
        ("unreachable", "reachable") if lost == "store" else ("reachable", "unreachable")
    )


# -- pieces ------------------------------------------------------------------------------------------------------------


def test_tokens_are_known_by_their_secret_alone() -> None:
    tokens = read_tokens(TOKENS.replace(" ", ",\n"))
    assert tokens.caller(SECRETS["ward"]) == Actor("ward") and tokens.caller(SECRETS["viewer"]).may_write is False
    for wrong in ("", "ward", SECRETS["ward"][:-1], SECRETS["ward"] + "x", "\u00e9" * 20):
        assert tokens.caller(wrong) is None
    assert tokens.may_sign_in("ward", SECRETS["ward"])
    assert not tokens.may_sign_in("clinic", SECRETS["ward"]) and not tokens.may_sign_in("viewer", SECRETS["viewer"])
    assert not read_tokens(None) and not read_tokens(" , ")


@pytest.mark.parametrize(
    "text",
    ["ward", "ward:write", "ward:admin:0123456789abcdef", "Ward:write:0123456789abcdef", "local:write:0123456789abcdef",
     "a:write:0123456789abcdef b:read:0123456789abcdef", "a:write:0123456789 abcdef"],
)  # fmt: skip
def test_a_token_entry_that_is_wrong_is_named_by_its_number(text: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_tokens(text)
    assert "DOCGEMMA_API_TOKENS" in str(error.value) and "0123456789abcdef" not in error.value.line()


def test_conversation_ids_are_their_owners() -> None:
    thread = new_thread("ward")
    assert owns("ward", thread)
    for other in ("war", "ward-2", "local", ""):
        assert not owns(other, thread)
    assert not owns("ward", thread + "\n") and not owns("ward", thread, "web")


@pytest.mark.parametrize(("after_s", "allowed"), [(0.0, False), (0.9, False), (1.0, True), (60.0, True)])
def test_the_rate_fills_up_with_time(after_s: float, allowed: bool) -> None:
    rate = Rate(60)
    for _ in range(60):
        rate.count("ward", now=100.0)
    rate.count("clinic", now=100.0)
    if allowed:
        rate.count("ward", now=100.0 + after_s)
        return
    with pytest.raises(Problem) as refused:
        rate.count("ward", now=100.0 + after_s)
    assert refused.value.status == 429 and refused.value.headers["Retry-After"] == "1"


def every(kind: type) -> list[type]:
    return [kind, *(sub for child in kind.__subclasses__() for sub in every(child))]


@pytest.mark.parametrize(
    "kind", [ValueError, sqlite3.OperationalError, *every(DocGemmaError)], ids=lambda kind: kind.__name__
)
def test_every_error_becomes_a_problem_that_does_not_repeat_its_text(kind: type) -> None:
    if kind.__init__ is not DocGemmaError.__init__ and issubclass(kind, DocGemmaError):
        from docgemma.errors import ErrorType

        error = kind(ErrorType.TIMEOUT, "James Wilson")
    else:
        error = kind("James Wilson")
    answer = problem_of(error)
    assert 400 <= answer.status < 600 and answer.next and "Wilson" not in json.dumps(answer.body("x"))


def test_the_examples_of_openapi_fit_the_contract() -> None:
    examples = docs.captured()
    for name in ("report", "decided"):
        jsonschema.validate(examples[name], CONTRACT)


def eventually(attempt, seconds: float = 30.0) -> bool:
    """Asks until it is answered with 200."""
    end = time.monotonic() + seconds
    while attempt().status_code != 200:
        assert time.monotonic() < end, "not answered in time"
        time.sleep(0.2)
    return True


def orders(home: Path) -> list[dict]:
    """Lisinopril orders that the patient did not have before."""
    store = open_store(Settings(home=home, sources="offline"))
    try:
        medications = store.chart("def-456").medications
    finally:
        store.close()
    return [item for item in medications if "10 mg once daily" in str(item) and "lisinopril" in str(item).lower()]


def who_wrote(home: Path, resources: list[dict]) -> str:
    """The author in the provenance of the newest of them."""
    with contextlib.closing(sqlite3.connect(home / "ehr.sqlite")) as database:
        bodies = [json.loads(row[0]) for row in database.execute("SELECT body FROM resource WHERE type='Provenance'")]
    targets = {f"{item['resourceType']}/{item['id']}" for item in resources}
    authors = [
        body["agent"][0]["who"]["display"]
        for body in bodies
        if targets & {target["reference"] for target in body["target"]}
    ]
    assert len(authors) == 1
    return authors[0]


# -- forgetting, and connections ---------------------------------------------------------------------------------------


def test_a_conversation_is_forgotten_by_its_owner_alone(server: Server) -> None:
    with server.client("ward") as ward, server.client("clinic") as clinic:
        thread = ask(ward, SAFETY)["thread"]
        kept = ask(clinic, SAFETY)["thread"]
        problem(clinic.post("/agent/forget", json={"thread": thread}), 404)
        gone = ward.post("/agent/forget", json={"thread": thread}).json()
        assert gone["forgotten"] == 1 and "approved stay" in gone["note"]
        problem(ward.post("/agent/forget", json={"thread": thread}), 404)
        problem(ward.post("/agent/query", json={"question": SAFETY, "thread": thread}), 404)
        problem(ward.post("/agent/forget", json={"before": "yesterday"}), 422, "before")
        problem(ward.post("/agent/forget", json={}), 404)
        assert ward.post("/agent/forget", json={"before": "2020-01-01"}).json()["forgotten"] == 0
        assert ward.post("/agent/forget", json={"before": "2999-01-01"}).json()["forgotten"] >= 0
        assert ward.get("/agent/threads").json()["threads"] == []
        assert kept in [item["thread"] for item in clinic.get("/agent/threads").json()["threads"]]


def test_small_answers_are_not_held_back_on_a_kept_connection() -> None:
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()) as caller:
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) and caller


def test_connections_without_a_request_neither_lock_others_out_nor_stay(server: Server) -> None:
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(("127.0.0.1", server.port))) for _ in range(600)]
        for connection in idle[::2]:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0")
        with server.client("ward") as client:
            assert client.get("/health").status_code == 200
            assert ask(client, SAFETY)["status"] == "answered"
        for connection in (idle[0], idle[1]):
            connection.settimeout(60)
            assert connection.recv(100) == b""  # closed by the server
