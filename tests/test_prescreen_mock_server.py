"""The stand-in for ClinicalTrials.gov answers as the API's documentation says: parameters, fields, paging, errors."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from docgemma.errors import ConfigError, ErrorType, ToolError
from docgemma.paths import kit
from docgemma.prescreen.registry import Registry
from docgemma.settings import Settings
from tests.prescreen_records import study, write

open_server = kit("prescreen", "mock_server").open_server
serving = kit("prescreen", "mock_server").serving
AGES = {"minimumAge": "18 Years", "maximumAge": "65 Years"}
STUDIES = [
    study(1, "Drug A in sarcoidosis", ["Pulmonary Sarcoidosis"], drugs=["Infliximab"], phases=["PHASE3"],
          synonyms=["Boeck Disease"]),
    study(2, "Breathlessness in scarred lungs", ["Interstitial Lung Diseases"], keywords=["sarcoidosis"],
          eligibility=AGES),
    study(3, "A registry of coughs", ["Cough"], criteria="Inclusion Criteria:\n\n* Proven sarcoidosis",
          kind="OBSERVATIONAL", phases=[]),
    study(4, "Rehabilitation", ["Fatigue"], summary="People with sarcoidosis may join.", status="COMPLETED"),
    *(study(number, "Knee pain", ["Osteoarthritis"]) for number in range(100, 225)),
]  # fmt: skip


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(write(tmp_path_factory.mktemp("records") / "records.jsonl", STUDIES)) as address:
        yield address


@pytest.fixture
def registry(url: str, tmp_path: Path) -> Iterator[Registry]:
    registry = Registry(Settings(home=tmp_path, ctgov_url=url))
    yield registry
    registry.close()


def ids(url: str, **asked: str) -> list[int]:
    answer = httpx.get(f"{url}/studies", params={name.replace("_", "."): value for name, value in asked.items()})
    assert answer.status_code == 200, answer.text
    found = [item["protocolSection"]["identificationModule"]["nctId"] for item in answer.json()["studies"]]
    return sorted(int(trial[-5:]) for trial in found)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"query_cond": "sarcoidosis"}, [1, 2]),  # a condition, a title, a keyword; neither criteria nor summary
        ({"query_cond": "boeck disease"}, [1]),  # a synonym
        ({"query_cond": "interstitial lung disease"}, [2]),  # plural and singular
        ({"query_cond": "lung sarcoidosis"}, [2]),  # both words, in different fields
        ({"query_cond": '"pulmonary sarcoidosis"'}, [1]),
        ({"query_cond": "sarcoidosis OR cough"}, [1, 2, 3]),
        ({"query_cond": "sarcoidosis NOT pulmonary"}, [2]),
        ({"query_term": "sarcoidosis"}, [1, 2, 3, 4]),
        ({"query_intr": "infliximab"}, [1]),
        ({"query_intr": "pulmonary"}, []),
        ({"query_titles": "cough"}, [3]),
        ({"query_term": "AREA[EligibilityCriteria](proven sarcoidosis)"}, [3]),
        ({"query_term": "AREA[Phase](PHASE3 OR PHASE4)"}, [1]),
        ({"query_cond": "cough", "query_term": "AREA[StudyType]OBSERVATIONAL"}, [3]),
        ({"query_cond": "sarcoidosis", "query_locn": "belgium"}, [1, 2]),
        ({"query_cond": "sarcoidosis", "query_locn": "france"}, []),
        ({"query_term": "sarcoidosis", "filter_overallStatus": "COMPLETED|WITHDRAWN"}, [4]),
        ({"filter_ids": "SYN-TRIAL-00002,SYN-TRIAL-00003"}, [2, 3]),
        ({"query_id": "SYN-TRIAL-00004"}, [4]),
        ({"query_cond": "sarcoidosis", "filter_advanced": "AREA[MinimumAge]RANGE[MIN, 30 years]"}, [2]),  # 1 gives none
        ({"query_cond": "sarcoidosis", "filter_advanced": "AREA[MaximumAge]RANGE[70 years, MAX]"}, []),
    ],
)
def test_a_query_finds_what_the_api_would(url: str, asked: dict[str, str], found: list[int]) -> None:
    assert ids(url, **asked) == found


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"filter.studyType": "X"}, "`filter.studyType` is unknown parameter"),
        ({"filter.overallStatus": "OPEN"}, "Invalid value in parameter `overallStatus`: `OPEN`"),
        ({"fields": "StudyDesign"}, "Parameter 'fields' contains invalid field name: 'StudyDesign'"),
        ({"query.cond": "lung ["}, "Error parsing query in Conditions or disease: mismatched input '['"),
        ({"query.cond": "(lung"}, "Error parsing query in Conditions or disease"),
        ({"query.cond": "lung AND"}, "Error parsing query in Conditions or disease"),
        (
            {"filter.advanced": "AREA[Phase]PHASE9"},
            "Allowed values for enum field `protocolSection.designModule.phases`",
        ),
        ({"filter.advanced": "AREA[Nonsense]x"}, "Error parsing query in advanced filter"),
        ({"query.cond": "(" * 5000}, ""),
        ({"pageToken": "bogus"}, "incorrect format"),
        ({"pageSize": "-1"}, "incorrect format"),
        ({"filter.geo": "distance(1,2,50mi)"}, "not emulated"),
    ],
)
def test_a_wrong_query_is_refused_in_plain_text(url: str, params: dict[str, str], says: str) -> None:
    answer = httpx.get(f"{url}/studies", params=params)
    assert answer.status_code == 400 and answer.headers["content-type"].startswith("text/plain")
    assert says in answer.text


def test_an_unknown_id_is_a_404_and_fields_cut_a_study(url: str) -> None:
    assert httpx.get(f"{url}/studies/SYN-TRIAL-99999").status_code == 404
    whole = httpx.get(f"{url}/studies/SYN-TRIAL-00001").json()
    assert whole == STUDIES[0]
    cut = httpx.get(f"{url}/studies/SYN-TRIAL-00001", params={"fields": "NCTId,InterventionName"}).json()
    assert cut["protocolSection"] == {
        "identificationModule": {"nctId": "SYN-TRIAL-00001"},
        "armsInterventionsModule": {"interventions": [{"name": "Infliximab"}]},
    }
    assert list(cut) == ["protocolSection"]


def test_pages_follow_each_other_to_the_end_and_only_the_first_counts(url: str) -> None:
    params: dict[str, Any] = {"query.cond": "osteoarthritis", "pageSize": 50, "countTotal": "true"}
    sizes, totals, seen = [], [], set()
    while True:
        page = httpx.get(f"{url}/studies", params=params).json()
        sizes.append(len(page["studies"]))
        totals.append(page.get("totalCount"))
        seen |= {item["protocolSection"]["identificationModule"]["nctId"] for item in page["studies"]}
        if not (token := page.get("nextPageToken")):
            break
        params["pageToken"] = token
    assert (sizes, totals, len(seen)) == ([50, 50, 25], [125, None, None], 125)
    assert len(httpx.get(f"{url}/studies", params={"pageSize": 5000}).json()["studies"]) == len(STUDIES)
    assert len(httpx.get(f"{url}/studies").json()["studies"]) == 10


def test_the_client_of_the_prescreen_reads_it(registry: Registry) -> None:
    found = registry.search({"condition": "sarcoidosis", "status": ["RECRUITING"], "page_size": 1})
    assert found.total == 2 and found.token and [item["id"] for item in found.studies] == ["SYN-TRIAL-00001"]
    rest = registry.search(
        {"condition": "sarcoidosis", "status": ["RECRUITING"], "page_size": 1, "page_token": found.token}
    )
    assert [item["id"] for item in rest.studies] == ["SYN-TRIAL-00002"] and rest.token is None
    assert [item["id"] for item in registry.search({"condition": "sarcoidosis", "age": 40, "sex": "MALE"}).studies] == [
        "SYN-TRIAL-00002"
    ]
    assert registry.study("SYN-TRIAL-00003")["criteria"].endswith("Proven sarcoidosis")
    with pytest.raises(ToolError) as missing:
        registry.study("SYN-TRIAL-99999")
    assert missing.value.error_type is ErrorType.NOT_FOUND


def test_records_that_are_none_and_a_taken_port_are_one_line_each(tmp_path: Path) -> None:
    for text in ("not json\n", "{}\n"):
        (tmp_path / "bad.jsonl").write_text(text)
        with pytest.raises(ConfigError, match="no study"):
            open_server(tmp_path / "bad.jsonl")
    with pytest.raises(ConfigError, match="cannot be opened"):
        open_server(tmp_path / "absent.jsonl.gz")
    records = write(tmp_path / "records.jsonl", STUDIES[:1])
    with open_server(records) as server, pytest.raises(ConfigError, match=r"Port \d+ cannot be used"):
        open_server(records, server.server_port)


def test_the_command_serves_on_loopback_until_it_is_stopped(tmp_path: Path) -> None:
    records = write(tmp_path / "records.jsonl", STUDIES)
    command = [sys.executable, "-m", "docgemma", "trials", "mock-server", "--records", str(records), "--port", "0"]
    environment = os.environ | {"PYTHONUNBUFFERED": "1", "DOCGEMMA_HOME": str(tmp_path / "home")}
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a job in the background is born deaf to it
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, preexec_fn=heard
    ) as run:
        try:
            line = run.stdout.readline()
            address = re.search(r"http://127\.0\.0\.1:\d+/api/v2", line)
            assert address, line + run.stderr.read()
            assert ids(address[0], query_cond="sarcoidosis") == [1, 2]
        finally:
            run.send_signal(signal.SIGINT)
            try:
                run.wait(20)
            finally:
                run.kill()
        assert run.returncode == 0 and "Traceback" not in run.stderr.read()
