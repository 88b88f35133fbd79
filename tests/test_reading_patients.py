"""Which patients a text means: the synthetic patients, a store like Synthea's, old files, a FHIR server."""

import json
import random
import uuid
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from benchmarks.link_patients import main
from docgemma.ehr.open import seed_resources
from docgemma.ehr.remote import RemoteStore
from docgemma.ehr.sqlite import SqliteStore
from docgemma.reading.patients import PatientLink, link_patients
from docgemma.text.births import read_births
from docgemma.tools import ToolContext, toolbox

WILSONS = ("5dff2ce3-8fe9-47ad-b61b-b73febca1765", "fac448ef-40c4-4112-919a-868bc3a2c446",
           "0f9a585f-43bf-462f-b7e5-d0d53a4070c5")  # fmt: skip
OLD, MIDDLE, YOUNG = WILSONS  # born 1949-02-11, 1985-07-30, 2001-12-05
TODAY = date(2026, 11, 22)
PETROVA, SCHÄFER = "7b7c6d83-9a6d-4233-b9fe-c58629d865bf", "78ded4e5-4bfb-4fde-a3ef-5f9f5e5af833"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    path = tmp_path_factory.mktemp("seed") / "ehr.sqlite"
    with closing(SqliteStore(path, seed_resources())) as store:
        yield store


GIVEN = ["Peter", "Alda", "Bao", "Celine", "Dario", "Esther", "Faisal", "Greta", "Hugo", "Ines"]
FAMILY = ["Stafford", "Rosenbaum", "Quigley", "Zieme", "Wunsch", "Tremblay", "Kertzmann", "Long", "Mayer", "Hintz"]


def synthea(count: int = 500) -> list[dict]:
    """Patients like Synthea's: UUID ids and MRNs; every fifth has a number for an id."""
    dice, people = random.Random(3), []
    for number in range(count):
        key = str(uuid.UUID(int=dice.getrandbits(128), version=4)) if number % 5 else str(70_000 + number)
        name = {"use": "official", "given": [GIVEN[number % 10]], "family": FAMILY[number // 10 % 10]}
        born = f"{1930 + number // 10}-{number % 12 + 1:02}-{number % 28 + 1:02}"
        identifier = [{"system": "urn:mrn", "value": f"S{6534835 + number}"}]
        identifier += [{"system": "urn:old", "value": f"{48213 + number:07}"}]
        people.append({"resourceType": "Patient", "id": key, "name": [name], "identifier": identifier,
                       "birthDate": born, "gender": "unknown"})  # fmt: skip
    return people


PEOPLE = synthea()


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path_factory.mktemp("clinic") / "ehr.sqlite", PEOPLE)) as store:
        yield store


def found(links: list[PatientLink]) -> list[tuple[str, ...]]:
    return [tuple(match.id for match in link.candidates) for link in links]


def marked(text: str, name: str) -> list[tuple[int, int]]:
    start = text.index(name)
    return [(start, start + len(name))]


# names as recorded, without a mark


@pytest.mark.parametrize(
    ("text", "expected", "said"),
    [
        ("show me the labs of john smith", "abc-123", "john smith"),
        ("SMITH, JOHN: allergies?", "abc-123", "SMITH, JOHN"),
        ("Smith John needs a refill", "abc-123", "Smith John"),
        ("what are smiths allergies", "abc-123", "smith"),
        ("What are Smith's allergies?", "abc-123", "Smith"),
        ("the Smiths' chart please", "abc-123", "Smith"),
        ("Mr. Smith wants his labs", "abc-123", "Smith"),
        ("Dr. John Smith is here as a patient", "abc-123", "John Smith"),
        ("john q. smith today", "abc-123", "john q. smith"),
        ("petrova tsh", PETROVA, "petrova"),
        ("labs for Schafer", SCHÄFER, "Schafer"),
        ("labs for schaefer", SCHÄFER, "schaefer"),
        ("labs for SCHÄFER", SCHÄFER, "SCHÄFER"),
        ("D’Angelo's urine", "2453e1ed-7bfa-4aa2-8475-4de48cdbe6ed", "D’Angelo"),
        ("siobhan obrien", "d046004a-ca8d-470f-bc78-e642a0b15900", "siobhan obrien"),
        ("chart of O'Brien", "d046004a-ca8d-470f-bc78-e642a0b15900", "O'Brien"),
        ("zoe lefevre-dubois", "3894d6ee-1903-4463-acdd-75fbc8d9f245", "zoe lefevre-dubois"),
        ("jean-luc moreau's tremor", "c77b9091-ddbf-46bb-b663-b98f82bef184", "jean-luc moreau"),
        ("Al-Zahrani again", "d8f66acc-5724-4131-98b1-3e01a2ac90db", "Al-Zahrani"),
        ("Thorsson on adalimumab", "20308f13-1beb-4697-935f-5bee9d5955cf", "Thorsson"),
        ("Siobha\u0301n O'Brien", "d046004a-ca8d-470f-bc78-e642a0b15900", "Siobha\u0301n O'Brien"),
        ("Nguyễn Thị Hồng", "fadf4c8b-c686-4e15-9bf8-d50893966032", "Nguyễn Thị Hồng"),
        ("alekos papadopoulos", "38d28212-e4ae-4c72-a097-f65ca46359b3", "alekos papadopoulos"),
        ("is suparman on a statin", "0083b5c8-7305-4d37-913c-d5ba2a84f3bb", "suparman"),
        ("王小明 labs", "05bd88bd-30a9-474c-abec-4e25dcf015f5", "王小明"),
    ],
)  # fmt: skip
def test_a_name_as_recorded_is_found_without_a_mark(store, text, expected, said) -> None:
    (link,) = link_patients(text, store)
    assert found([link]) == [(expected,)] and link.exact and link.kind == "name"
    assert link.text == said == text[link.start : link.end]


@pytest.mark.parametrize(
    "text",
    [
        "", "   ", "what is the dose of metformin 500 mg", "jhon smiht", "leilani and grace", "abd-123", "give 555 mg",
        "discussed with Dr. Wilson", "INR on 402 patients", "Okafer", "de los la", "2026-11-09", "a b c", "\x00", "%",
    ],
)  # fmt: skip
def test_nothing_exact_and_nothing_marked_is_nobody(store, text) -> None:
    assert link_patients(text, store) == []


def test_namesakes_are_several_candidates(store) -> None:
    for text in ("james wilson inr", "Wilson, James", "wilson's inr"):
        (link,) = link_patients(text, store)
        assert set(found([link])[0]) == set(WILSONS) and link.exact


def test_a_full_name_wins_over_the_surname_alone(store) -> None:
    (link,) = link_patients("Maria Garcia; what does Garcia take?", store)
    assert (link.text, found([link])) == ("Maria Garcia", [("def-456",)])


def test_an_ambiguous_surname_is_settled_by_a_later_full_mention(store) -> None:
    (link,) = link_patients(f"Wilson needs an INR. The patient is {OLD}.", store)
    assert (link.text, link.kind, found([link])) == ("Wilson", "id", [(OLD,)])


def test_two_patients_are_two_links_in_order(store) -> None:
    assert found(link_patients("compare petrova and schäfer", store)) == [(PETROVA,), (SCHÄFER,)]
    text = "compare petrova and schäfer"
    assert found(link_patients(text, store, marked(text, "petrova and schäfer"))) == [(PETROVA,), (SCHÄFER,)]
    assert found(link_patients("Schäfer/Petrova and John Smith", store)) == [(SCHÄFER,), (PETROVA,), ("abc-123",)]


def test_the_same_patient_twice_is_one_link_at_the_first_place(store) -> None:
    (link,) = link_patients("John Smith (abc-123): are smith's labs back?", store)
    assert (link.start, link.text, found([link])) == (0, "John Smith", [("abc-123",)])


def test_an_ordinary_word_is_a_surname_only_where_it_is_written_as_one(clinic) -> None:
    ordinary = {"long", "stafford", "how"}.__contains__
    for text in ("how long does it take", "Long term therapy of CKD.", "HOW LONG IS IT", "as long as it takes"):
        assert link_patients(text, clinic, ordinary=ordinary) == []
    for text in ("labs of Long", "Ask for Long's labs", "labs for mr long", "labs for peter long"):
        assert link_patients(text, clinic, ordinary=ordinary)
    (link,) = link_patients("labs for long", clinic, marked("labs for long", "long"), ordinary=ordinary)
    assert link.text == "long" and len(link.candidates) == 50


def test_a_sentence_beside_a_name_is_no_part_of_it(tmp_path: Path) -> None:
    people = [{"resourceType": "Patient", "id": given, "name": [{"given": [given], "family": family}]}
              for given, family in (("Kim", "Does"), ("Kim", "Hart"), ("Ann", "Kim"))]  # fmt: skip
    with closing(SqliteStore(tmp_path / "ehr.sqlite", people)) as store:
        assert found(link_patients("what does Kim take", store, ordinary={"does", "what"}.__contains__)) == [("Ann",)]


# marks


@pytest.mark.parametrize(
    ("text", "mark", "expected", "exact"),
    [
        ("labs of jhon smiht", "jhon smiht", "abc-123", False),
        ("labs of Jon Smith", "Jon Smith", "abc-123", False),
        ("labs of Smth, John", "Smth, John", "abc-123", False),
        ("labs of leilani", "leilani", "702c87e1-4b42-46d0-bb3e-f4356cdb3f35", True),
        ("what does Leilani's chart say", "Leilani's", "702c87e1-4b42-46d0-bb3e-f4356cdb3f35", True),
        ("M. Garcia please", "M. Garcia", "def-456", False),
        ("Garcia, M please", "Garcia, M", "def-456", False),
        ("Maria G please", "Maria G", "def-456", False),
        ("John Smith labs", "n Smit", "abc-123", True),
        ("John Smith labs", "John Smith lab", "abc-123", True),
        ("patient John Smith labs", "patient John", "abc-123", True),
        ("okafer's creatinine", "okafer's", "df98d214-bd13-4562-8197-3cb4e2801575", False),
        ("Maria Garcia Lopez", "Maria Garcia Lopez", "def-456", False),
    ],
)  # fmt: skip
def test_a_marked_name_is_found_though_it_is_misspelt_or_cut(store, text, mark, expected, exact) -> None:
    (link,) = link_patients(text, store, marked(text, mark))
    assert found([link]) == [(expected,)] and link.exact is exact


@pytest.mark.parametrize("typed", ["Wilson James", "J. Wilson", "Wilson, J", "James W", "J Wilson", "james wilson"])
def test_initials_of_namesakes_are_several_candidates(store, typed) -> None:
    text = f"INR of {typed} today"
    (link,) = link_patients(text, store, marked(text, typed))
    assert set(found([link])[0]) == set(WILSONS)


@pytest.mark.parametrize("typed", ["Quentin Zebrowski", "zebrowski", "Bob Wilson", "John Petrova", "Xq"])
def test_a_marked_name_that_nobody_has_is_a_link_without_candidates(store, typed) -> None:
    text = f"show me the labs of {typed} today"
    (link,) = link_patients(text, store, marked(text, typed))
    assert (link.text, link.candidates, link.kind, link.exact) == (typed, (), "name", False)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("becky goldstein", ["Rebecca Goldstein"]), ("goldstein becky", ["Rebecca Goldstein"]),
     ("Becky", ["Rebecca Goldstein"]), ("jim wilson", ["James Wilson"] * 3), ("bill goldstein", [])],
)  # fmt: skip
def test_a_short_form_of_a_given_name_is_the_one_who_has_that_name(store, typed, expected) -> None:
    (link,) = link_patients(f"labs of {typed} today", store, marked(f"labs of {typed} today", typed))
    assert [match.name for match in link.candidates] == expected


@pytest.mark.parametrize("span", [(0, 0), (5, 2), (900, 950), (3, 4)])
def test_a_mark_beside_the_text_does_no_harm(store, span) -> None:
    links = link_patients("the labs of john smith", store, [span], [span])
    assert ("abc-123",) in found(links)


# ids


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("labs for abc-123", "abc-123"),
        ("labs for ABC-123's chart", "abc-123"),
        ("Patient/abc-123", "abc-123"),
        ("patient abc123.", "abc-123"),
        ("patient 555 is here", "555"),
        ("chart #402", "402"),
        ("402", "402"),
        (f"what about {OLD}?", OLD),
        (f"what about {OLD.upper()}?", OLD),
        (f"what about {OLD.replace('-', '')}?", OLD),
    ],
)
def test_an_id_is_found_however_it_is_written(store, text, expected) -> None:
    (link,) = link_patients(text, store)
    assert (link.kind, link.exact, found([link])) == ("id", True, [(expected,)])


@pytest.mark.parametrize(
    "typed",
    ["S6534842", "s6534842", "6534842", "MRN S6534842", "MRN: 0048220", "mrn:0048220", "0048220", "MRN0048220",
     "S-6534842", "S 6534842"],
)  # fmt: skip
def test_an_mrn_is_found_with_and_without_its_letters(clinic, typed) -> None:
    text = f"labs for {typed}, please"
    for marks in ([], marked(text, typed)):
        (link,) = link_patients(text, clinic, ids=marks)
        assert (link.kind, found([link])) == ("id", [(PEOPLE[7]["id"],)])


def test_every_generated_patient_is_found_by_id_and_mrn_alone(clinic) -> None:
    for person in PEOPLE:
        for value in (person["id"], *(item["value"] for item in person["identifier"])):
            assert found(link_patients(f"labs for {value} today", clinic)) == [(person["id"],)]


def test_every_generated_patient_is_found_by_name_and_birth_date(clinic) -> None:
    for person in PEOPLE[::7]:
        name = f"{person['name'][0]['given'][0]} {person['name'][0]['family']}"
        year, month, day = person["birthDate"].split("-")
        for born in (person["birthDate"], f"DOB {day}/{month}/{year}", f"born {int(month)}/{int(day)}/{year}"):
            (link,) = link_patients(f"{name} ({born}) potassium", clinic)
            assert person["id"] in found([link])[0] and len(link.candidates) <= 2 and link.by_birth


@pytest.mark.parametrize("typed", ["S9999999", "abd-123", "MRN 0000001", "a1b2c3"])
def test_a_marked_id_that_nobody_has_is_a_link_without_candidates(clinic, typed) -> None:
    text = f"labs for {typed} today"
    (link,) = link_patients(text, clinic, ids=marked(text, typed))
    assert (link.kind, link.candidates) == ("id", ())
    assert link_patients(text, clinic) == []


def test_a_name_marked_as_an_id_is_still_a_name(store) -> None:
    assert found(link_patients("labs of petrova", store, ids=[(8, 15)])) == [(PETROVA,)]


# births


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("James Wilson born 1949", [(OLD,)]),
        ("James Wilson, DOB 11/02/1949", [(OLD,)]),
        ("James Wilson, DOB 02/11/1949", [(OLD,)]),
        ("James Wilson d.o.b. 11.2.49", [(OLD,)]),
        ("James Wilson (2001-12-05)", [(YOUNG,)]),
        ("Wilson born on the 30th of July 1985", [(MIDDLE,)]),
        ("Wilson, born July 30, 1985, needs labs", [(MIDDLE,)]),
        ("James Wilson, 1985", [(MIDDLE,)]),
        ("the 77 year old james wilson", [(OLD,)]),
        ("James Wilson, 41yo, refill", [(MIDDLE,)]),
        ("James Wilson born 1950", [()]),
        ("James Wilson, DOB 1949-02-12", [()]),
        ("James Wilson (1949-02-12) labs", [()]),
        ("James Wilson born 1950. What is wilson's INR?", [()]),
        ("petrova and James Wilson born 1949", [(PETROVA,), (OLD,)]),
    ],
)
def test_a_birth_narrows_and_one_that_fits_nobody_is_nobody(store, text, expected, monkeypatch) -> None:
    monkeypatch.setattr("docgemma.reading.patients.read_births", lambda text: read_births(text, TODAY))
    assert found(link_patients(text, store)) == expected


@pytest.mark.parametrize(
    "text",
    ["James Wilson's INR of 2026-11-09", "James Wilson since 2019", "James Wilson and a 50 year old brother",
     "labs 2001 for James Wilson"],
)  # fmt: skip
def test_a_date_or_an_age_of_something_else_does_not_narrow(store, text) -> None:
    (link,) = link_patients(text, store)
    assert set(found([link])[0]) == set(WILSONS) and not link.by_birth


# the tool


@pytest.fixture
def search(settings, store):
    context = ToolContext(settings, store, knowledge=None)
    return lambda name: toolbox().call("search_patient", {"name": name}, context)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("James Wilson DOB 11/02/1949", OLD),
        ("James Wilson, born 1985-07-30", MIDDLE),
        ("wilson 2001-12-05", YOUNG),
        ("James Wilson (1949)", OLD),
        ("Jmaes Wilson born 1949", OLD),
        ("ABC-123", "abc-123"),
        ("MRN 555", "555"),
        ("John Smith abc-123", "abc-123"),
        (OLD.upper(), OLD),
    ],
)
def test_the_search_tool_takes_an_id_or_a_birth_date_beside_the_name(search, name, expected) -> None:
    result = search(name)
    assert [item["id"] for item in result["result"]["patients"]] == [expected], result


@pytest.mark.parametrize(
    "name", ["James Wilson born 1950", "John Smith DOB 1958-04-13", "Maria Garcia abc-123", "MRN 99999999"]
)
def test_the_search_tool_finds_nobody_where_the_birth_or_the_id_is_anothers(search, name) -> None:
    assert search(name)["empty"]


# files


def test_a_patient_who_was_renamed_loses_the_old_look_ups(tmp_path: Path) -> None:
    person = {
        "resourceType": "Patient",
        "id": "p1",
        "name": [{"family": "Okoro"}],
        "identifier": [{"value": "A-90001"}],
    }
    with closing(SqliteStore(tmp_path / "ehr.sqlite", [person])) as store:
        store.save([{**person, "name": [{"family": "Reyes"}], "identifier": [{"value": "A-90002"}]}])
        assert [len(link_patients(text, store)) for text in ("okoro", "A-90001", "reyes", "a90002")] == [0, 0, 1, 1]


def test_an_identifier_of_two_patients_is_ambiguous(tmp_path: Path) -> None:
    people = [{"resourceType": "Patient", "id": key, "name": [{"family": key}], "identifier": [{"value": "77-001"}]}
              for key in ("first", "second")]  # fmt: skip
    with closing(SqliteStore(tmp_path / "ehr.sqlite", people)) as store:
        (link,) = link_patients("MRN 77001", store)
        assert len(link.candidates) == 2


# a FHIR server


class Fhir:
    """Answers Patient searches as a server does (beginnings of names, any value of a list), and counts them."""

    def __init__(self, httpserver: HTTPServer, people: list[dict], careless: bool = False):
        self.people, self.asked, self.careless = people, [], careless
        httpserver.expect_request("/fhir/Patient").respond_with_handler(self.answer)
        self.store = RemoteStore(httpserver.url_for("/fhir"), timeout_s=10)

    def answer(self, request: Request) -> Response:
        query = parse_qs(request.query_string.decode())
        self.asked.append(query)
        fits = [person for person in self.people if self.careless or self.fits(person, query)]
        bundle = {"resourceType": "Bundle", "type": "searchset", "entry": [{"resource": item} for item in fits]}
        return Response(json.dumps(bundle), content_type="application/fhir+json")

    def fits(self, person: dict, query: dict) -> bool:
        names = [*person["name"][0]["given"], person["name"][0]["family"]]
        checks = [
            any(n.lower().startswith(w) for n in names for w in words.lower().split(","))
            for words in query.get("name", [])
        ]
        for key, values in (("_id", [person["id"]]), ("identifier", [item["value"] for item in person["identifier"]])):
            checks += [bool({*values} & {*given.split(",")}) for given in query.get(key, [])]
        days = [day for given in query.get("birthdate", []) for day in given.split(",")]
        return all(checks) and (not days or any(person["birthDate"].startswith(day) for day in days))


@pytest.mark.parametrize(
    "text", ["labs for s6534842 today", "PETER STAFFORD born 1930-01-01", "hintz and zieme", "the labs of celine"]
)
def test_a_server_links_as_the_file_does_with_few_requests(clinic, httpserver: HTTPServer, text) -> None:
    server = Fhir(httpserver, PEOPLE)
    assert link_patients(text, server.store) == link_patients(text, clinic)
    assert len(server.asked) <= 5


def test_what_a_careless_server_returns_is_compared_again(clinic, httpserver: HTTPServer) -> None:
    server = Fhir(httpserver, PEOPLE[:50], careless=True)
    assert found(link_patients("MRN S6534842 and nobody else", server.store)) == [(PEOPLE[7]["id"],)]
    assert link_patients("kertzmann's labs", server.store) == []


def test_a_text_without_words_asks_nothing(httpserver: HTTPServer) -> None:
    server = Fhir(httpserver, PEOPLE)
    assert link_patients(" ... ", server.store) == [] and server.asked == []


def test_the_benchmark_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--patients", "300", "--keep", str(tmp_path / "few.sqlite")])
    assert "all: median" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["born 1.2." + "9" * 30, "born 1949-" + "2" * 5000 + "-1", "born 0/0/0000"])
def test_numbers_that_are_no_day_are_no_birth(text: str) -> None:
    assert not [birth for birth in read_births(text, TODAY) if birth.kind != "year" and len(birth.days[0]) == 10]


@pytest.mark.parametrize("day", ["1971-09-03", "3 September 1971", "03/09/1971"])
def test_a_stated_birth_that_is_marked_as_an_id_is_nobodys_id(store: SqliteStore, day: str) -> None:
    text = f"woman born {day} labs"
    assert link_patients(text, store, ids=[(text.index(day), text.index(day) + len(day))]) == []
    (found,) = link_patients(f"Wilson {text}", store, ids=[(text.index(day) + 7, text.index(day) + 7 + len(day))])
    assert not found.candidates and found.text == "Wilson"
