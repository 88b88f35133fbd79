"""The RCM agent over HTTP, in a server process of its own; and what a trace of a turn holds when it leaves."""

import base64
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from docgemma.rcm.tracing import trace
from docgemma.settings import Settings
from tests.api_server import TOKENS, Server
from tests.test_api import problem

DATA = Path(__file__).parents[1] / "data"
QUOTE = "Patient reports bilateral knee pain for 6 months, worse on stairs."
ENTRY = {
    "patient_id": "P-00123", "verbatim_quote": QUOTE, "source_document": "DischargeNote.pdf", "page_number": 4,
    "policy_id": "NHP-ORTH-001", "confidence_score": 94.0, "auditor_result": "PASS",
}  # fmt: skip


@pytest.fixture(scope="module")
def server(prepared_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = Path(shutil.copytree(prepared_home, tmp_path_factory.mktemp("rcm") / "home"))
    running = Server(
        home, "--no-demo", DOCGEMMA_API_TOKENS=TOKENS, DOCGEMMA_API_RATE="100000", DOCGEMMA_API_BODY_MB="1"
    )
    yield running
    running.kill()


def write(server: Server, name: str = "ward", key: str = "", **changed) -> httpx.Response:
    with server.client(name) as client:
        headers = {"Idempotency-Key": key} if key else {}
        return client.post("/api/rcm/verify", json={**ENTRY, **changed}, headers=headers)


def rows(server: Server, session: str = "verify.ward") -> list[dict]:
    """What stands in the ledger, whose chain must be whole."""
    from docgemma.rcm.ledger import open_ledger

    ledger = open_ledger(Settings(home=server.home).db_location)
    assert ledger.verify() == []
    return ledger.rows(session)


# -- the ledger --------------------------------------------------------------------------------------------------------


def test_a_quote_is_written_and_its_row_can_be_found_by_its_id(server: Server) -> None:
    first, second = write(server), write(server, source_document="Other.pdf", page_number=None, policy_id=None)
    assert first.status_code == second.status_code == 200, first.text
    body = first.json()
    assert body == {"ledger_id": body["ledger_id"], "status": "WRITTEN", "verified": False,
                    "audit_trail": f"rcm_evidence_ledger#{body['ledger_id']}"}  # fmt: skip
    assert second.json()["ledger_id"] == body["ledger_id"] + 1
    (row,) = [row for row in rows(server) if row["id"] == body["ledger_id"]]
    assert {key: row[key] for key in ENTRY} == ENTRY


def test_with_a_key_it_is_written_once_also_by_many_at_once(server: Server) -> None:
    before, answers = len(rows(server)), list[httpx.Response]()
    callers = [threading.Thread(target=lambda: answers.append(write(server, key="the-key"))) for _ in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len({answer.json()["ledger_id"] for answer in answers}) == 1 and len(rows(server)) == before + 1
    problem(write(server, key="the-key", page_number=5), 422, "Nothing was written", "key")
    theirs = write(server, "clinic", key="the-key")
    assert theirs.status_code == 200 and len(rows(server, "verify.clinic")) == 1


def test_only_a_token_that_may_write_writes_and_not_into_anothers_conversation(server: Server) -> None:
    before = len(rows(server))
    problem(write(server, "viewer"), 403, "read only")
    assert httpx.post(f"{server.url}/api/rcm/verify", json=ENTRY).status_code == 401
    problem(write(server, session_id="rcm-api.clinic." + "0" * 24), 404)
    assert len(rows(server)) == before


@pytest.mark.parametrize("changed", [
    {"patient_id": ""}, {"verbatim_quote": " "}, {"verbatim_quote": 7}, {"source_document": "x" * 300},
    {"confidence_score": 101}, {"confidence_score": None}, {"auditor_result": "MAYBE"}, {"more": 1},
    {"patient_id": "\x00"}, {"page_number": 0},
])  # fmt: skip
def test_a_row_that_cannot_be_written_is_refused_in_one_line(server: Server, changed: dict) -> None:
    before = len(rows(server))
    assert QUOTE not in json.dumps(problem(write(server, **changed), 422))
    assert len(rows(server)) == before


def test_a_quote_of_a_chart_must_stand_in_it(server: Server) -> None:
    from docgemma.ehr.open import open_store
    from docgemma.rcm.chart import chart_document

    pytest.importorskip("docgemma.rcm.audit")
    store = open_store(Settings(home=server.home, sources="offline"))
    document = chart_document(store.chart("ghi-789"))
    store.close()
    page = document["pages"][0]
    of_chart = {"patient_id": "ghi-789", "source_document": document["name"], "page_number": page["number"]}
    written = write(server, **of_chart, verbatim_quote=page["text"])
    assert written.status_code == 200 and written.json()["verified"] is True, written.text
    before = len(rows(server))
    problem(write(server, **of_chart, verbatim_quote="The patient has no allergies."), 422, "Nothing was written")
    problem(write(server, **of_chart | {"page_number": 3}, verbatim_quote=page["text"]), 422)
    assert len(rows(server)) == before


# -- conversations -----------------------------------------------------------------------------------------------------


@pytest.fixture
def note(tmp_path: Path) -> bytes:
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(tmp_path / "note.pdf"))
    lines = ("Patient: Maria Gonzalez", "Date of birth: 1961-04-12", "Payer: Northgate Health Plan", "Right knee pain.")
    for number, line in enumerate(lines):
        canvas.drawString(72, 720 - 20 * number, line)
    canvas.save()
    return (tmp_path / "note.pdf").read_bytes()


def test_a_question_with_a_pdf_is_answered_by_the_rcm_agent_and_stays_its_owners(server: Server, note: bytes) -> None:
    graph = pytest.importorskip("docgemma.graphs.rcm")
    assert graph.run
    question = "Does Maria Gonzalez meet her payer's criteria for a right knee replacement?"
    with server.client("ward") as ward, server.client("clinic") as clinic:
        documents = [{"name": "note.pdf", "data": base64.b64encode(note).decode()}]
        answer = ward.post("/agent/query", json={"question": question, "agent": "rcm", "documents": documents})
        assert answer.status_code == 200, answer.text
        result = answer.json()
        assert result["thread"].startswith("rcm-api.ward.") and result["disclaimer"]
        assert all(claim["verified"] and claim["quote"] for claim in result["claims"])
        thread = result["thread"]
        for path, body in (("query", {"question": "And then?"}), ("resume", {"answer": "yes"}), ("forget", {})):
            problem(clinic.post(f"/agent/{path}", json={"thread": thread, **body}), 404)
        problem(ward.post("/agent/resume", json={"thread": thread, "decision": "approve"}), 422, "decision")
        problem(ward.post("/agent/resume", json={"thread": thread}), 409)  # nothing was cut off
        problem(ward.post("/agent/resume", json={"thread": thread[:-4] + "0000", "answer": "yes"}), 404)
        assert ward.post("/agent/forget", json={"thread": thread}).json()["forgotten"] == 1
        assert not list(server.home.rglob("note.pdf"))
    assert "Gonzalez" not in server.said() and "note.pdf" not in server.said()


def test_a_clarification_is_answered_by_resuming(server: Server) -> None:
    pytest.importorskip("docgemma.graphs.rcm")
    with server.client("ward") as client:
        body = {"question": "What medications is James Wilson on?", "agent": "rcm"}
        asked = client.post("/agent/query", json=body).json()
        assert asked["status"] == "needs_clarification" and len(asked["options"]) >= 2, asked
        chosen = asked["options"][0]["label"]
        given = client.post("/agent/resume", json={"thread": asked["thread"], "answer": chosen}).json()
        assert given["status"] == "answered" and given["thread"] == asked["thread"], given


def test_documents_that_cannot_be_used_are_refused_before_a_turn_begins(server: Server, note: bytes) -> None:
    def send(name: str, data: bytes, **fields: str) -> httpx.Response:
        with server.client("ward") as client:
            documents = [{"name": name, "data": base64.b64encode(data).decode()}]
            body = {"question": "Maria Gonzalez?", "documents": documents, **fields}
            return client.post("/agent/query", json=body)

    problem(send("note.pdf", b"no PDF", agent="rcm"), 422, "documents")
    problem(send("note.pdf", note), 422, "agent")
    problem(send("note.pdf", note * 2000, agent="rcm"), 413)
    with server.client("ward") as client:
        for name in ("../note.pdf", ".note", "a/b.pdf", "", "x\n.pdf", "x" * 200):
            document = {"name": name, "data": "JVBERi0x"}
            body = {"question": "x", "agent": "rcm", "documents": [document]}
            problem(client.post("/agent/query", json=body), 422, "documents")
        problem(
            client.post("/agent/query", json={"question": "x", "agent": "rcm", "thread": "api.ward." + "0" * 24}), 404
        )


def test_the_golden_set_is_run_by_a_writing_token_alone(server: Server) -> None:
    with server.client("viewer") as client:
        problem(client.post("/eval/run"), 403)
        there = (DATA / "golden" / "rcm.yaml").exists()
        assert client.get("/eval/results").status_code == (200 if there else 404)
    assert httpx.get(f"{server.url}/eval/results").status_code == 401


def test_no_log_line_names_a_patient_or_quotes(server: Server) -> None:
    write(server)
    said = server.said()
    assert "POST /api/rcm/verify 200" in said and "Traceback" not in said
    for word in ("P-00123", "knee", "DischargeNote", "Wilson"):
        assert word not in said


# -- traces ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def collector() -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Its address, and what arrived there: path, API key, body."""
    came = list[tuple[str, str, str]]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode("utf-8", "replace")
            came.append((self.path, self.headers.get("x-api-key", ""), body))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        do_GET = do_PATCH = do_POST

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_port}", came
        listening.shutdown()


RESULT = {
    "answer": "Maria Gonzalez meets 3 of 4 criteria.", "status": "answered", "tokens": {"prompt": 30, "completion": 4},
    "seconds": 1.5, "ledger_ids": [7, 8], "confidence": {"score": 0.9},
    "claims": [
        {"claim": "Maria has pain", "verified": True, "quote": "Maria", "document": "d", "page": 1, "section": "HPI"},
        {"claim": "Maria walks", "verified": True, "quote": "Maria", "document": "d", "page": None, "section": ""},
    ],
}  # fmt: skip
STEPS = [{"node": "route", "seconds": 0.5}, {"node": "audit", "seconds": 1.0, "tokens": 34}]


def hidden(text: str) -> str:
    return text.replace("Maria Gonzalez", "[PERSON-1]")


def send(scrub: Callable[[str], str], **given) -> int:
    return trace(Settings(**given), scrub, "Does Maria Gonzalez qualify?", RESULT, STEPS)


def test_a_trace_leaves_scrubbed_with_nodes_and_metrics(collector) -> None:
    url, came = collector
    assert send(hidden, langsmith_tracing=True, langsmith_api_key="key-1", langsmith_endpoint=url)
    assert "Maria" not in str(came) and "Gonzalez" not in str(came)
    runs = [json.loads(body) for path, key, body in came if path == "/runs" and key == "key-1"]
    assert [run["name"] for run in runs] == ["docgemma rcm", "route", "audit"]
    assert runs[0]["inputs"] == {"question": "Does [PERSON-1] qualify?"} and runs[1]["parent_run_id"] == runs[0]["id"]
    told = runs[0]["extra"]["metadata"]
    assert (told["faithfulness"], told["citation_accuracy"], told["ledger_ids"]) == (1.0, 0.5, "7,8")


def test_nothing_leaves_where_scrubbing_fails_or_nothing_is_set(collector) -> None:
    url, came = collector

    def broken(text: str) -> str:
        raise ValueError(text)

    assert not send(broken, langsmith_tracing=True, langsmith_api_key="k", langsmith_endpoint=url)
    assert not send(hidden) and not send(hidden, langsmith_tracing=True, langsmith_endpoint=url)  # no key
    assert not send(broken) and came == []


def test_a_receiver_out_of_reach_does_not_cost_the_answer() -> None:
    assert not send(hidden, langsmith_tracing=True, langsmith_api_key="k", langsmith_endpoint="http://127.0.0.1:9")


@pytest.mark.parametrize("within", ["nullcontext", "quiet"])
def test_langgraph_sends_no_state_by_itself_while_quiet(collector, within: str) -> None:
    url, came = collector
    program = f"""
from contextlib import nullcontext
from langgraph.graph import END, START, StateGraph
from docgemma.quiet import quiet
graph = StateGraph(dict)
graph.add_node("node", lambda state: {{"answer": "Maria Gonzalez"}})
graph.add_edge(START, "node"); graph.add_edge("node", END)
with {within}():
    graph.compile().invoke({{"question": "Maria Gonzalez"}})
from langchain_core.tracers.langchain import wait_for_all_tracers
wait_for_all_tracers()
"""
    env = {**os.environ, "LANGSMITH_TRACING": "true", "LANGSMITH_API_KEY": "k", "LANGSMITH_ENDPOINT": url}
    subprocess.run([sys.executable, "-c", program], env=env, check=True, timeout=60)
    assert any("/runs" in path for path, _, _ in came) == (within == "nullcontext")  # without it, it does send


def test_an_agent_sends_no_state_and_the_revenue_cycle_agent_a_scrubbed_trace(collector, tmp_path: Path) -> None:
    url, came = collector
    program = """
from docgemma.agent import Agent
from docgemma.graphs.rcm import run
from docgemma.rcm.ledger import open_ledger
from docgemma.settings import read_settings
with Agent(read_settings(sources="offline"), model="edge") as agent:
    agent.ask("What medications is John Smith on?")
    own = {name: getattr(agent, name) for name in ("settings", "llm", "store", "knowledge", "reader", "memory")}
    run("What medications is John Smith on?", ledger=open_ledger(agent.settings.db_location), **own)
from langchain_core.tracers.langchain import wait_for_all_tracers
wait_for_all_tracers()
"""
    env = {**os.environ, "LANGSMITH_TRACING": "true", "LANGSMITH_API_KEY": "k", "LANGSMITH_ENDPOINT": url,
           "DOCGEMMA_HOME": str(tmp_path)}  # fmt: skip
    subprocess.run([sys.executable, "-c", program], env=env, check=True, timeout=120)
    sent = [body for path, _, body in came if "/runs" in path]
    assert sent and all("Smith" not in str(body) for body in sent)
    assert not [body for body in sent if "clinical_context" in str(body) or "task_summary" in str(body)]
