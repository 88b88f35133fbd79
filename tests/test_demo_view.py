"""What the demo shows, without a browser: everything is escaped, nothing is hidden, no id opens what it should not."""

import asyncio
import html
import os
import re
import socket
import subprocess
import sys
import threading
import time
from datetime import date
from types import SimpleNamespace

import httpx
import pytest

pytest.importorskip("gradio", reason="the demo extra is not installed")

from starlette.responses import PlainTextResponse

from docgemma.api.access import new_thread, owns
from docgemma.demo import start, view
from docgemma.demo.handlers import reopen
from docgemma.demo.screen import Session, problem
from docgemma.demo.start import OwnServerOnly, _check_public, _options, launch, on_kaggle
from docgemma.errors import StoppedError, StoreError, UsageError
from docgemma.turns import BusyError, Turns

HOSTILE = "<script>alert(1)</script>\n\n\r\r\u2028![x](https://example.org/steal?q=1) **bold** [a](javascript:alert(1))"
PATIENT = {"id": HOSTILE, "name": HOSTILE, "birth_date": HOSTILE}


def result(**changes) -> dict:
    base = {
        "thread": "t", "status": "answered", "answer": "Yes.", "model": "edge", "llm_calls": 1, "seconds": 1.0,
        "tokens": {"prompt": 1, "completion": 1}, "timeline": [], "sources": [], "options": [], "pending_write": None,
        "grounding": {"supported": True, "removed": []}, "tools": [],
    }  # fmt: skip
    return base | changes


def demo_of(sources: str = "auto", ehr: str | None = None) -> SimpleNamespace:
    settings = SimpleNamespace(sources=sources, ehr=ehr)
    return SimpleNamespace(settings=settings, llm=SimpleNamespace(name="edge"), store=SimpleNamespace(name="Record"))


def drawn(messages: list[dict]) -> str:
    return " ".join(message["content"] for message in messages)


@pytest.mark.parametrize(
    "shown",
    [
        view.said(HOSTILE)["content"],
        drawn(view.answer(result(answer=HOSTILE))),
        drawn(view.answer(result(timeline=[{"label": HOSTILE, "detail": HOSTILE, "seconds": 0.1}]))),
        drawn(view.answer(result(sources=[{"label": HOSTILE, "source": HOSTILE, "as_of": HOSTILE, "links": []}]))),
        drawn(view.history([{"user": HOSTILE, "assistant": HOSTILE, "tools": [{"label": HOSTILE, "brief": HOSTILE}]}])),
        view.card({"label": HOSTILE, "args": {"notes": HOSTILE}, "findings": [HOSTILE], "patient": PATIENT}),
    ],
)
def test_text_that_others_wrote_is_one_line_of_escaped_html(shown: str) -> None:
    """In one line inside a block of HTML, Markdown is not read: no image is fetched, no link is made."""
    assert "<script" not in shown and "<img" not in shown and "<a " not in shown
    assert len(shown.splitlines()) == 1 and shown.startswith("<")
    assert html.escape("<script>") in shown


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "data:text/html,x", "https://a.example/'onclick='x", "", "ftp://x"]
)
def test_only_web_addresses_become_links(url: str) -> None:
    items = [{"label": "L", "source": "S", "as_of": None, "links": [{"title": "T", "url": url, "id": "1"}]}]
    assert "<a " not in view.html("sources", items)


def test_a_source_shows_name_date_and_link() -> None:
    links = [{"title": "Label", "url": "https://example.org/label", "id": "1"}]
    shown = view.html(
        "sources", [{"label": "Drug Safety Report", "source": "Snapshot", "as_of": "2026-01-02", "links": links}]
    )
    assert "Drug Safety Report: Snapshot, as of 2026-01-02" in shown
    assert 'href="https://example.org/label"' in shown and "noopener" in shown


def test_a_removed_sentence_is_said_to_be_removed() -> None:
    assert "1 sentence removed" in drawn(view.answer(result(grounding={"supported": False, "removed": ["x"]})))


def test_the_badge_says_offline_when_the_snapshot_had_to_answer() -> None:
    assert "Online" in view.badges(demo_of(), None, None)
    assert "Offline" in view.badges(demo_of(), {"tools": [{"source": "openFDA snapshot"}]}, None)
    assert "Offline" in view.badges(demo_of("offline"), None, None)


def test_a_chart_says_what_is_not_recorded_and_never_that_it_is_normal(agent) -> None:
    shown = view.chart(agent, "ghi-789")
    assert "penicillin" in shown and "since 2022-02-14" in shown and "None recorded." in shown
    empty = {key: [] for key in ("allergies", "medications", "problems", "labs", "vitals", "observations", "notes")}
    patient = {"id": "x", "name": "<b>A</b>", "birth_date": "", "sex": "", "deceased": ""}
    shown = view.html("chart", empty | {"immunizations": [], "no_known_allergies": False, "patient": patient})
    assert "not the same as no known allergies" in shown and "<b>" not in shown and "normal" not in shown


def test_an_unreachable_record_store_is_not_an_empty_chart(agent, monkeypatch) -> None:
    def unreachable(patient_id: str):
        raise StoreError("The record store cannot be reached.")

    monkeypatch.setattr(agent.store, "chart", unreachable)
    assert "not an empty chart" in view.chart(agent, "ghi-789")


def test_ids_open_only_for_the_person_they_were_given_to_and_after_a_restart() -> None:
    """Whose an id is stands in it; no key is kept that could be lost."""
    for user in ("dr-a", "", "Dr. Ä/1"):
        mine = new_thread(user, "web")
        assert owns(user, mine, "web") and not owns("dr-b", mine, "web") and not owns(user, mine, "api")
        assert all(other == user or not owns(other, mine, "web") for other in ("", "dr-", "dr-a", "Dr", "Dr. Ä"))


@pytest.mark.parametrize(
    "forged", [None, 7, "", "a1b2c3d4e5f6", "web.x.y", "web..", "web.é.ü", ["web.a.b"], "web.a.b.c"]
)
def test_an_id_that_was_made_up_opens_nothing(forged) -> None:
    assert not owns("", forged, "web")


def test_an_unexpected_failure_is_one_line_without_its_text(caplog) -> None:
    def work(on_event, stop):
        raise ValueError("Tomasz Nowak")

    turn = Turns(1).begin("t", work)
    list(turn.follow())
    line = problem(turn.error)
    assert "ValueError in test_demo_view.py" in line and "Nowak" not in line + caplog.text


def test_a_second_question_waits_for_the_first_and_a_stop_reaches_it() -> None:
    turns, seen = Turns(2), threading.Event()

    def work(on_event, stop):
        while not stop():
            seen.wait(0.01)
        raise UsageError("Stopped.")

    turn = turns.begin("t", work)
    with pytest.raises(BusyError, match="still being answered"):
        turns.begin("t", work)
    turns.stop("another")
    assert turns.running("t") is turn
    turns.stop("t")
    list(turn.follow())
    assert str(turn.error) == "Stopped." and turns.running("t") is None


def test_who_joins_a_turn_later_hears_all_of_it_and_its_end() -> None:
    turn, heard = Turns(1).begin("t", lambda on_event, stop: on_event({"type": "start"}) or {"status": "x"}), []
    assert turn.over.wait(10)
    turn.listen(heard.append)
    assert heard == [{"type": "start"}, None] and list(turn.follow()) == [] and turn.result == {"status": "x"}


def test_a_turn_that_waits_for_a_slot_can_be_stopped_and_everything_ends_when_the_runner_closes() -> None:
    turns, free = Turns(1), threading.Event()

    def first(on_event, stop):
        while not stop():
            free.wait(0.01)
        return {}

    begun, waiting = turns.begin("a", first, owner="ward"), turns.begin("b", first, owner="ward")
    assert turns.count("ward") == 2
    turns.stop("b")
    assert waiting.over.is_set() and isinstance(waiting.error, StoppedError) and not begun.over.is_set()
    turns.close()
    assert begun.over.is_set() and turns.count("ward") == 0


def test_a_stored_conversation_is_shown_again_with_its_open_question(agent) -> None:
    from tests.test_graph_v3 import intent

    intent(agent.llm, "search_patient")
    asked = agent.ask("Search for patient James Wilson", thread="t", create=True)
    session = Session()
    reopen(agent, session, "t")
    assert list(session.options) == [item["id"] for item in asked["options"]]
    assert "Search for patient James Wilson" in session.messages[0]["content"]
    assert len(session.messages[-1]["options"]) == 3 and not session.stands["unfinished"]


def test_a_port_that_is_taken_gets_one_clear_line(agent) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(UsageError, match=r"port \d+ cannot be used"):
        launch(agent, port=taken.getsockname()[1], quiet=True)


def test_a_model_that_cannot_be_loaded_is_said_and_the_demo_runs_on_the_edge_model(home, monkeypatch, capsys) -> None:
    monkeypatch.setenv("DOCGEMMA_HOME", str(home))
    monkeypatch.setenv("DOCGEMMA_SOURCES", "offline")
    monkeypatch.setenv("DOCGEMMA_MODEL", "server")  # without an address
    started = []
    monkeypatch.setattr(start, "launch", lambda agent, *given, **options: started.append(agent.llm.name))
    start.run_demo()
    said = capsys.readouterr().err
    assert started == ["edge"] and "http(s) address" in said and "The demo runs on the edge model instead." in said


def test_a_share_link_is_made_on_kaggle_only(monkeypatch) -> None:
    monkeypatch.delenv("KAGGLE_KERNEL_RUN_TYPE", raising=False)
    assert not on_kaggle()
    monkeypatch.setenv("KAGGLE_KERNEL_RUN_TYPE", "Interactive")
    assert on_kaggle()


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("127.0.0.1:7860", None, 200), ("localhost:7860", "http://localhost:7860", 200), ("[::1]:7860", None, 200),
        ("other.example:7860", None, 403), ("other.example:7860", "http://other.example:7860", 403),
        ("127.0.0.1:7860", "https://other.example", 403), ("127.0.0.1:7860", "http://127.0.0.1:8888", 403),
        ("127.0.0.1:7860", "null", 403),
    ],
)  # fmt: skip
def test_a_page_of_another_site_reaches_nothing_where_nobody_signs_in(
    host: str, origin: str | None, status: int
) -> None:
    """Also under a name of its own that points here: the page's browser says that name."""
    headers = {"host": host} | ({"origin": origin} if origin else {})

    async def ask(local_only: bool) -> httpx.Response:
        transport = httpx.ASGITransport(app=OwnServerOnly(PlainTextResponse("records"), local_only))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get("/", headers=headers)

    answer = asyncio.run(ask(local_only=True))
    assert answer.status_code == status and (answer.text == "records") is (status == 200)
    assert asyncio.run(ask(local_only=False)).status_code == 200, "with a login or a link, any name will do"


NOTEBOOK = """
from docgemma.agent import Agent
from docgemma.demo import open_in_notebook
with Agent() as agent:
    demo = open_in_notebook(agent)
    input()
"""


@pytest.mark.parametrize(
    ("command", "framed"), [(["-c", NOTEBOOK], True), (["-m", "docgemma", "demo"], False)], ids=["notebook", "command"]
)
def test_only_a_notebook_may_show_the_demo_in_a_frame(command: list[str], framed: bool, home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    env = {**os.environ, "DOCGEMMA_HOME": str(home), "DOCGEMMA_MODEL": "edge", "DOCGEMMA_SOURCES": "offline"}
    env |= {"GRADIO_SERVER_PORT": port}
    with subprocess.Popen([sys.executable, *command], env=env, stdin=subprocess.PIPE) as process:
        try:
            policy = wait_for(f"http://127.0.0.1:{port}").headers["content-security-policy"]
        finally:
            process.terminate()
    assert "default-src 'self'" in policy
    assert ("frame-ancestors 'self'" not in policy) is framed


def wait_for(url: str) -> httpx.Response:
    for _ in range(600):
        try:
            return httpx.get(url)
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError("the demo does not listen")


def test_a_login_is_named_with_a_way_out_and_nothing_else_is() -> None:
    shown = view.badges(demo_of(), None, HOSTILE)
    assert "Sign out" in shown and "<script" not in shown and "Sign out" not in view.badges(demo_of(), None, None)


def test_a_public_link_without_a_login_never_opens_a_record_server(capsys) -> None:
    with pytest.raises(UsageError, match="without a login"):
        launch(demo_of(ehr="https://fhir.example.org/r4"), share=True)
    _check_public(demo_of())
    assert "Whoever has the public link" in capsys.readouterr().err


def test_no_style_or_theme_names_an_address_on_the_network() -> None:
    options = _options()
    css = options["theme"]._get_theme_css() + options["css_paths"].read_text(encoding="utf-8")
    assert not re.search(r"url\(['\"]?https?:|@import", css) and not options["theme"]._stylesheets
    assert options["run_history"] is False


def test_a_card_shows_five_findings_and_folds_the_rest():
    findings = [f"finding {number}" for number in range(8)]
    page = view.card({"label": "Prescription", "args": {}, "findings": findings, "patient": PATIENT})
    head, _, rest = page.partition("<details")
    assert "finding 4" in head and "finding 5" not in head and "3 more" in rest and "finding 7" in rest


def test_every_part_of_a_grouped_answer_is_escaped_and_its_plot_holds_numbers_only() -> None:
    points = [{"value": 4.8, "date": HOSTILE}, {"value": 5.0, "date": HOSTILE}]
    trend = {"unit": HOSTILE, "points": points, "low": 3.5, "high": None}
    entry = {"patient": HOSTILE, "section": HOSTILE, "name": HOSTILE}
    fact = {"text": HOSTILE, "cite": 1, "entry": entry, "trend": trend}
    source = {"label": HOSTILE, "source": HOSTILE, "as_of": HOSTILE, "links": [], "passage": HOSTILE}
    groups = [{"title": "", "facts": [fact]}, {"title": HOSTILE, "facts": [fact, fact]}]
    shown = drawn(view.answer(result(answer=HOSTILE, lead=HOSTILE, groups=groups, sources=[source])))
    assert "<script" not in shown and "<img" not in shown and shown.count("dg-lead") == 1
    assert all(re.fullmatch(r'a class="dg-cite" title="[\w ]+" href="#dg-[0-9a-f]{16}"', tag[1:-1])
               for tag in re.findall("<a [^>]*>", shown))  # fmt: skip
    assert set(re.findall(r'points="([^"]*)"', shown)) == {"3.0,4.9 69.0,3.0 "}


def test_a_plot_shows_the_range_where_it_is_known_and_spaces_values_by_their_dates() -> None:
    points = [
        {"value": value, "date": date} for value, date in ((10, "2026-01-01"), (20, "2026-01-11"), (15, "2026-01-12"))
    ]
    drawn = view._plotted({"points": points, "low": 10, "high": 20})
    assert drawn["line"] == [(3.0, 17.0), (63.0, 3.0), (69.0, 10.0)] and (drawn["top"], drawn["band"]) == (3.0, 14.0)
    assert drawn["change"] == "-5" and view._plotted({"points": points, "low": None, "high": None})["band"] == 0


def test_the_chart_has_a_row_for_each_test_and_no_value_is_lost(agent) -> None:
    shown = view.chart(agent, "abc-123")
    assert shown.count('scope="row">eGFR') == 1 and all(f"{value} (" in shown for value in (46, 49))
    assert "change -5" in shown


def test_the_banner_of_an_unreachable_record_never_looks_like_no_allergies(agent, monkeypatch) -> None:
    def lost(*_: object):
        raise StoreError("no answer")

    monkeypatch.setattr(agent.store, "chart", lost)
    shown = view.opened(agent, "ghi-789")
    assert view.UNREACHABLE in shown.banner and "ghi-789" in shown.banner and "Allergies not known now" in shown.banner
    assert "not recorded" not in shown.banner and "No known" not in shown.banner and 'role="alert"' in shown.banner


def test_the_banner_says_no_known_allergies_only_where_that_is_recorded() -> None:
    patient = {"id": "p", "name": HOSTILE, "birth_date": "1950", "sex": "", "deceased": ""}
    assert "No known allergies" in view.html("banner", patient, "", [], True)
    asks = view.html("banner", patient, "", [], False)
    assert "Allergies not recorded: ask" in asks and "No known" not in asks and "<script" not in asks


def test_an_age_is_in_years_and_of_a_small_child_in_months() -> None:
    today = date(2026, 11, 23)
    ages = {born: view.age(born, today) for born in ("1958-11-24", "2025-10-24", "2026-10-23", "1958", "2027-01-01")}
    assert list(ages.values()) == ["67 years", "12 months", "1 month", "", ""]


def test_a_judged_trial_shows_the_deciding_sentence_and_says_where_there_is_none() -> None:
    judged = [
        {"text": "Age 18 or <older>", "kind": "inclusion", "verdict": "met", "sentence": "She is 34."},
        {"text": "Pregnancy", "kind": "exclusion", "verdict": "unknown", "sentence": ""},
    ]
    item = {"title": "A trial", "nct_id": "SYN-TRIAL-00001", "status": "RECRUITING", "reason": "", "criteria": judged}
    shown = view.html("candidate", item)
    assert "<q>She is 34.</q>" in shown and "The note does not say." in shown and "&lt;older&gt;" in shown
