"""The payers' policies: what the files may say, and which policy a question finds, with and without a Qdrant server."""

import http.server
import json
import shutil
import socket
import threading
from pathlib import Path

import numpy as np
import pytest
import yaml

from docgemma.errors import ConfigError
from docgemma.paths import data_file
from docgemma.rcm.meaning import WIDTH, embed
from docgemma.rcm.policies import PolicyIndex
from docgemma.rcm.policy_files import load_policies, payers
from docgemma.rcm.policy_names import words

FOLDER = data_file("rcm", "policies")
QUERIES = yaml.safe_load((FOLDER / "queries.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def index() -> PolicyIndex:
    return PolicyIndex()


class Wire(http.server.BaseHTTPRequestHandler):
    """Qdrant's REST calls, read by its own models and answered by its in-process engine."""

    def do_GET(self):
        self.answer({"exists": self.server.engine.collection_exists(self.path.split("/")[2])})

    def do_PUT(self):
        from qdrant_client import models

        name, what = (
            self.path.split("?")[0].split("/")[2:4] if "/points" in self.path else (self.path.split("/")[2], "")
        )
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.calls.append(what)
        if what:
            self.server.engine.upsert(name, models.PointsList.model_validate_json(body).points)
            return self.answer({"operation_id": 1, "status": "completed"})
        asked = models.CreateCollection.model_validate_json(body)
        self.server.engine.create_collection(name.split("?")[0], asked.vectors)
        return self.answer(True)

    def do_POST(self):
        from qdrant_client import models

        _, _, name, _, what = self.path.split("?")[0].split("/")
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.calls.append(what)
        if what == "count":
            return self.answer({"count": self.server.engine.count(name).count})
        asked = models.QueryRequest.model_validate_json(body)
        found = self.server.engine.query_points(name, query=asked.query, limit=asked.limit)
        return self.answer(json.loads(found.model_dump_json()))

    def answer(self, result):
        body = json.dumps({"result": result, "status": "ok", "time": 0.0}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args):
        """Keep the test quiet."""


@pytest.fixture
def qdrant():
    from qdrant_client import QdrantClient

    server = http.server.HTTPServer(("127.0.0.1", 0), Wire)
    server.engine, server.calls = QdrantClient(":memory:"), []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def patterns(pattern: dict):
    """A pattern and those within it."""
    yield pattern
    for part in ("either", "both"):
        for one in pattern.get(part, []):
            yield from patterns(one)


def test_there_are_policies_of_four_payers_with_five_to_eight_criteria_each():
    policies = load_policies()
    assert len(policies) >= 14
    assert payers() == ["Cedar Mutual", "Harborview Benefit Trust", "Northgate Health Plan", "Prairie Community Care"]
    assert all(5 <= len(policy["criteria"]) <= 8 for policy in policies.values())


def test_two_payers_ask_for_different_things_before_the_same_operation():
    northgate, cedar = load_policies()["NHP-ORTH-001"], load_policies()["CMU-ORTH-001"]
    assert northgate["procedures"][0]["codes"] == cedar["procedures"][0]["codes"] == ["27447"]
    assert not {one["text"] for one in northgate["criteria"]} & {one["text"] for one in cedar["criteria"]}


def test_every_list_is_filled_in_and_no_term_ends_as_a_reference():
    for policy in load_policies().values():
        for criterion in policy["criteria"]:
            for pattern in patterns(criterion["shown_by"]):
                terms = [term for group in pattern.get("any", []) for term in group]
                terms += pattern.get("refuted_by", []) + pattern.get("measure", {}).get("name", [])
                assert not [term for term in terms if "$" in term], criterion["id"]


BESIDE = {"side", "refuted_by", "date_within_days", "stands"}
PATTERN = {"any", "within", "measure", "absent", "unless", "planned", "family", *BESIDE}
READ = {"item", "measure", "side", "date_within_days", "planned", "family", "born_before", "stands"}
TERMS = {"apart", "begins"}
PARTS, BOUNDS = {"either", "both"}, {"at_least", "at_most", "above", "below"}
UNITS = " day week month year session dose episode % kg/m2 /h mg/dl mm grade 20/ degree class point mmhg mmol/l".split(
    " "
)


def test_every_policy_keeps_to_the_format_that_its_readme_tells():
    for key, policy in load_policies().items():
        assert policy["id"] == key and len(policy["effective"]) == 10
        assert "\nnotice: Fictitious" in (FOLDER / f"{key}.yaml").read_text("utf-8")
        for number, criterion in enumerate(policy["criteria"], 1):
            assert set(criterion) == {"id", "text", "shown_by", "read_by"} and criterion["id"] == f"{key}.{number}"
            for route, known in (("shown_by", PATTERN), ("read_by", READ)):
                for pattern in patterns(criterion[route]):
                    parts = PARTS & set(pattern)
                    assert set(pattern) <= (parts | BESIDE if parts else known) and len(parts) < 2, criterion["id"]
                    assert parts or {"any", "measure", "item", "born_before"} & set(pattern), criterion["id"]
                    assert pattern.get("within", "page") in ("sentence", "section", "page", "document")
                    groups = [*pattern.get("any", []), pattern.get("refuted_by", ["a"])]
                    measure = pattern.get("measure", {"name": ["a"], "unit": "", "above": 1})
                    assert all(group and all(term == term.lower() for term in group) for group in groups)
                    bounds = BOUNDS & set(measure)
                    assert bounds and measure["name"] and measure["unit"] in UNITS, criterion["id"]
                    assert set(measure) - bounds <= {"name", "unit", "bare", "of", "ago", "optional", *TERMS}, (
                        criterion["id"]
                    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[[$infection]]", "[[$infectoin]]"),
        ("text: ", "txt: "),
        ("[billing code,", "[a letter,"),
        ("payer: Northgate Health Plan\n", ""),
        ('"2026-01-01"', "2026-01-01"),
        ("criteria:", "criteria: ["),
    ],
)
def test_a_file_that_the_format_does_not_know_is_one_clear_error(tmp_path: Path, old: str, new: str):
    for name in ("terms.yaml", "NHP-ORTH-001.yaml"):
        shutil.copy(FOLDER / name, tmp_path)
    path = tmp_path / "NHP-ORTH-001.yaml"
    text = path.read_text(encoding="utf-8")
    assert set(load_policies(tmp_path)) == {"NHP-ORTH-001"}
    load_policies.cache_clear()
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_policies(tmp_path)
    assert "NHP-ORTH-001.yaml" in str(caught.value) and "\n" not in caught.value.line()


def test_meaning_is_a_unit_vector_a_text_and_nearer_for_another_wording():
    knee, other, hip, nothing = embed(["knee replacement", "total knee arthroplasty", "cataract surgery", ""])
    assert knee.shape == (WIDTH,) and np.isclose(np.linalg.norm(knee), 1, atol=1e-5)
    assert knee @ other > knee @ hip
    assert not nothing.any() and embed([]).shape == (0, WIDTH)


@pytest.mark.parametrize("query", QUERIES["dev"], ids=lambda query: f"{query['payer']}: {query['asked']}")
def test_each_labelled_question_finds_its_policy_or_none(index: PolicyIndex, query: dict):
    found = index.search(query["payer"], query["asked"])
    assert (found["id"] if found else None) == query["policy"]


def test_of_the_held_out_questions_few_are_missed_and_none_gets_another_policy(index: PolicyIndex):
    found = [(index.search(query["payer"], query["asked"]), query["policy"]) for query in QUERIES["held_out"]]
    assert not [(policy["id"], wanted) for policy, wanted in found if policy and policy["id"] != wanted]
    assert sum(policy is None and wanted is not None for policy, wanted in found) <= 2


def test_the_payer_is_told_apart_and_its_spelling_is_not_held_against_it(index: PolicyIndex):
    assert index.search("  CEDAR mutual ", "TKA")["id"] == "CMU-ORTH-001"
    assert index.search("Northgate Health Plan", "TKA")["id"] == "NHP-ORTH-001"
    assert index.search("Harborview Benefit Trust", "TKA") is None
    assert index.search("Cedar", "TKA") is None


def test_words_of_a_name_are_compared_without_plural_marks_and_hyphens():
    assert words("L4-L5 Fusions") == ("l4", "l5", "fusion")
    assert words("diagnosis") == ("diagnosis",)


def test_a_server_that_is_not_there_is_told_and_the_local_index_answers():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    index = PolicyIndex(f"http://127.0.0.1:{port}", few())
    assert "local index" in index.fallback and str(port) not in index.fallback
    assert index.search("Prairie Community Care", "gel shots for the left knee")["id"] == "PCC-INJ-002"


def test_a_server_that_answers_nonsense_is_told_and_the_local_index_answers():
    class Nonsense(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(500)
            self.end_headers()
            self.wfile.write(b"<html>out of order</html>")

        do_PUT = do_POST = do_GET

        def log_message(self, *_args):
            """Keep the test quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Nonsense)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        index = PolicyIndex(f"http://127.0.0.1:{server.server_port}", few())
    finally:
        server.shutdown()
        server.server_close()
    assert index.fallback
    assert index.nearest("gel shots for the left knee")[0][0] == "PCC-INJ-002"


def test_a_server_is_filled_once_and_answers_as_the_local_index_until_it_dies(qdrant):
    server, url = qdrant
    asked = [("Prairie Community Care", "gel shots for the left knee"), ("Prairie Community Care", "a mask at night")]
    local = [PolicyIndex(policies=few()).nearest(text, payer) for payer, text in asked]
    index = PolicyIndex(url, few())
    assert index.fallback == ""
    for (payer, text), found in zip(asked, local, strict=True):
        near = index.nearest(text, payer)
        assert [key for key, _ in near] == [key for key, _ in found]
        assert [score for _, score in near] == pytest.approx([score for _, score in found], abs=1e-5)
    assert PolicyIndex(url, few()).nearest(asked[0][1])[0] == (local[0][0][0], pytest.approx(local[0][0][1], abs=1e-5))
    assert server.calls.count("points") == 1  # the second one found it filled
    server.shutdown()
    server.server_close()
    assert index.search(*asked[0])["id"] == "PCC-INJ-002"
    assert "local index" in index.fallback


def test_without_a_server_nothing_is_told(index: PolicyIndex):
    assert index.nearest("operation on the stomach to lose weight", "Cedar Mutual")[0][0] == "CMU-SURG-003"
    assert index.fallback == ""


def few() -> dict:
    """Two policies, so that an index is filled quickly."""
    return {key: load_policies()[key] for key in ("PCC-INJ-002", "PCC-SLEEP-001")}
