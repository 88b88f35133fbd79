"""What one message asks for, linked to what exists: patients of the record store, drugs of the dictionary, the spans of
orders, allergies and notes. The graph works on this; nothing downstream reads wording again."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

from docgemma.ehr.base import RecordStore
from docgemma.reading.allergies import read_allergies, substance_behind
from docgemma.reading.drugs import DrugLink, link_drugs, said_for
from docgemma.reading.entries import DETAILS, considered_doses, loose_details, read_orders
from docgemma.reading.labels import TOPICS, WRITES
from docgemma.reading.marked import Marked
from docgemma.reading.meant import PLAINLY, SURE, asks_of_record, meant
from docgemma.reading.notes import read_note, with_notes
from docgemma.reading.owners import parts
from docgemma.reading.patients import PatientLink, as_patient, as_unclear, born_on, read_people
from docgemma.reading.published import queries, status, studies, trial_ids
from docgemma.reading.reader import Reader, Reading, Span
from docgemma.reading.taken_back import behind_dropped, is_new, without_refused
from docgemma.reading.terms import everyday, measure_said, measures_in, refers_back, said_in
from docgemma.reading.two_asks import entry_and_question
from docgemma.state import ActivePatient, Request
from docgemma.text.clauses import masked
from docgemma.text.drugs import DrugNames
from docgemma.text.quoted import OPEN
from docgemma.text.said import clauses
from docgemma.text.told import short_forms
from docgemma.text.words import clinical, listed, plain

MEMBERS = 4  # of a group of drugs that are looked up
TELLING = 3900  # pieces of the vocabulary that tell nothing by themselves
ALONE = 0.97  # of what a clause asks for
UNLIKE = 0.1  # of a change of the record that only a clause asks for
CLAUSES = 5
LOOK_UPS = (*TOPICS, "safe", "ddi", "change")
COMPLETE = (*LOOK_UPS, "may", "lit", "trial", "rx", "allergy", "note", "gk")  # asks of a message that stands alone
ANSWERS = ("fix", "ok", "cancel")  # asks of one that goes on with what was said
RECORDED = {"rx": "meds", "allergy": "alg", "note": "notes"}  # an entry -> what is recorded of its kind
CHANNELS = {"rx": "rx.drug", "allergy": "alg.subst", "note": "note.text"}  # where an entry begins


def read_request(
    message: str,
    *,
    reader: Reader,
    drugs: DrugNames,
    store: RecordStore | None,
    before: str = "",
    active: ActivePatient | None = None,
) -> Request:
    """Read a message once, for the whole turn.

    Args:
        store: None links no patients (evaluation of wording alone): names and ids stay as typed.
        before: the clinician's message before it.
        active: the patient who is open.

    Raises:
        StoreError: the record store cannot be reached. Nobody is then taken for unknown.
    """
    name = active["name"] if active and OPEN not in active["name"] else ""  # one that speaks is no part of a request
    read_again = partial(read_request, reader=reader, drugs=drugs, store=store, active=active)
    reading = _whole_names(_in_context(message, before, name, reader), message, drugs)
    reading, notes, noted = with_notes(message, substance_behind(reading, message))
    marked = Marked(message, reading, [(span.start, span.end) for span in notes])
    named, trials = studies(message, partial(_ordinary, drugs=drugs, reader=reader)), trial_ids(message)
    published = {plain(part) for one in (*named, *trials) for part in (one, *one.replace("-", " ").split())}
    people_of = partial(_people, drugs=drugs, store=store, reader=reader, published=published)
    people = people_of(marked)
    if not people and not active and notes:  # "abd-101 refused physio. Please document": named within the note alone
        people = people_of(Marked(message, reading))[:1]
    if not people and active:  # "what about the wilson with the warfarin", while another is open
        people = [link for link in people_of(Marked(message, reader.read(message))) if link.candidates]
    clear = [link for link in people if len(link.candidates) == 1]
    marked = replace(marked, people=[(link.start, link.end) for link in people])
    beside = [*marked.quoted, *marked.people]
    linked = link_drugs(message, drugs, marked.spans("drug", "rx.drug"), beside, reading.asks["ddi"] > SURE)
    linked = [link for link in linked if plain(link.text) not in published and not _is_other(link)]
    every, measures = set(measures_in(message)), [span.text for span in marked.spans("measure")]
    told = _parts(marked, clear)
    read = [(order, whose) for part, whose in told for order in read_orders(part, drugs)]
    mine = [(order, whose) for order, whose in read if plain(order["said"]) not in listed("request_words", "no_drugs")]
    orders = [order for order, _ in mine]
    linked = [_ordered_as(link) for link in linked]
    known = [link for link in linked if link.how in ("named", "short", "near")]
    allergies = [(item, whose) for part, whose in told for item in read_allergies(part, drugs)]
    places = [*beside, *((link.start, link.end) for link in linked)]
    asked = [ask for ask in reading.asked(SURE) if ask != "rx" or orders or not read]
    about = "lit" if named else "trial" if trials and not active else ""
    if about and not people:  # "REVISE - bleed numbers?"
        kept = ("may", "ddi", *WRITES) if linked else ()
        asked = [*(ask for ask in asked if ask in kept), about]
    elif named and "note" not in asked:  # "RE-ALIGN: can Nadia Benali have dabigatran?"
        asked = [*(ask for ask in asked if ask not in ("img", "trial", "gk", "notes")), "lit"]
    if said_in(message, "literature") and not (people or active):  # "guideline recommendation for X" is no note
        asked = [ask for ask in asked if ask != "notes"]
    described = listed("request_words", "evidence") & {*plain(message).split()} and not (people or active)
    if described and not (asked or (linked and is_new(marked))):  # "that leaflet trial in seniors?"
        asked = ["lit"]
    if asks_of_record(message):
        asked += [topic for ask, topic in RECORDED.items() if ask in asked and topic not in asked]
    spoken = listed("request_words", "allergy_words", "noting_plainly") & {*plain(message).split()}
    gone = {"change"} if orders and is_new(marked) else set[str]()
    if noted or ("change" in {*asked} - gone and not spoken):
        gone.add("allergy")  # "she had jaw pain after X, put it in a note"; "dc his lactulose, diarrhea"
    asked = [ask for ask in asked if ask not in gone]
    patients, how = [as_patient(link) for link in clear], meant(reading, message)
    rest = behind_dropped(message, [link.text for link in linked]) if linked else ""
    if rest and (not notes or reading.asks["rx"] > SURE) and (again := read_again(rest))["asks"]:
        return {**again, "patients": again["patients"] or patients}  # "X, skip it. just give me his bp med"
    instead = behind_dropped(message, [])  # "binned that. ramipril 2.5 od"
    for wanted in filter(None, (instead, "" if how == "asked" else without_refused(message, known))):
        again = read_again(wanted)
        if again["orders"] and again["meant"] == "ordered":
            return {**again, "said": message}
    details, given_of = loose_details(marked), considered_doses(marked, drugs)
    alone = len(known) == 1 and not (before or marked.spans("alg.subst"))
    if "rx" in asked and not orders and alone and details.get("dose"):  # "missed his X. restart 150 bd"
        ordered = {**reading.spans, "rx.drug": [Span(known[0].text, known[0].start, known[0].end, 1)]}
        orders = read_orders(replace(marked, reading=replace(reading, spans=ordered)), drugs)
        details = {key: value for key, value in details.items() if key not in DETAILS}
    whole = Request(
        asks=[*asked, *(ask for ask in _of_clauses(marked, asked, reader) if ask not in gone)],
        meant=how,
        patients=patients,
        unclear=[as_unclear(link, message) for link in people if link not in clear],
        drugs=[{**as_drug(link, drugs), "details": given_of.get(link.text, {})} for link in linked],
        orders=orders,
        allergies=[item for item, _ in allergies],
        notes=[read_note(marked, span) for span in notes[:1]],
        corrects=False,
        details=details,
        measures=[text for text in measures if not (some := measures_in(text)) or every & {*some}],
        conditions=[span.text for span in marked.spans("condition") if (span.start, span.end) not in marked.people],
        status=status(marked),
        query=", ".join(named or queries(marked)),
        trials=trials,
        studies=named,
        said=message,
        telling=_telling(message, places, reader),
        owners=_owners(
            rx=[[] if _of_nobody(message, order["said"], people) else whose for order, whose in mine],
            allergy=[whose for _, whose in allergies],
            note=[whose for part, whose in told for at, _ in marked.quoted if part.message[at : at + 1].strip()],
        ),
    )
    entered = reading.spans.get("rx.dose") or any(reading.asks[ask] > UNLIKE for ask in WRITES)
    return (entry_and_question(message, whole, reader, read_again, bool(active)) if entered else None) or whole


def _in_context(message: str, before: str, patient: str, reader: Reader) -> Reading:
    """The message read with the one before it; alone where it stands alone, so that what was said before changes
    nothing: "prescribe ibuprofen 400 mg tds" after "stop his metformin"."""
    alone = reader.read(message, patient=patient)
    if not before:
        return alone
    reading = reader.read(message, before=before, patient=patient)
    leans = refers_back(message) or any(reading.asks[ask] > SURE for ask in ANSWERS)
    given = alone.asks["rx"] > PLAINLY < alone.polarity["ordered"] and {"rx.drug", "rx.dose"} <= set(alone.spans)
    if given and reading.asks["fix"] <= SURE:
        leans = False  # "doxy 100 bd do it", after it was asked about
    return reading if leans or not any(alone.asks[ask] > PLAINLY for ask in COMPLETE) else alone


def _people(
    marked: Marked, drugs: DrugNames, store: RecordStore | None, reader: Reader, published: set[str]
) -> list[PatientLink]:
    """The patients of a message; no study or trial (`published`) that nobody is called after."""
    names, ids = marked.places("name"), marked.places("id")
    if store is None:
        return [PatientLink(*place, marked.message[slice(*place)], "name", (), False) for place in [*names, *ids]]
    names = [_but_drugs(marked.message, place, drugs, store) for place in names]
    conditions = marked.places("condition") if not names else []
    names += [place for place in conditions if _first_name(marked.message[slice(*place)], store)]
    asks, queries = marked.reading.asks, marked.reading.spans.get("query", [])
    ordinary = partial(_ordinary, drugs=drugs, reader=reader)
    apart = [place for place in names if not any(span.start <= place[0] < span.end for span in queries)]
    searched = [] if apart else _in_queries(marked.message, queries, store, ordinary)
    names = [*apart, *searched] or names
    beside = [*marked.quoted, *((span.start, span.end) for span in queries if not searched)]
    about = any(asks[ask] > SURE for ask in (*TOPICS, *WRITES, "find", "may", "change"))
    about |= not any(score > SURE for score in asks.values()) or not any(map(str.isalpha, marked.message))
    found = read_people(marked.message, names, ids, store, ordinary, beside)
    found = [link for link in found if link.candidates or not published & {*plain(link.text).split()}]
    return found or (born_on(marked.message, ids, store) if about else [])


def _but_drugs(message: str, place: tuple[int, int], drugs: DrugNames, store: RecordStore) -> tuple[int, int]:
    """The place of a name without a drug beside it, where nobody has such a name: "Liam amox"."""
    text = message[slice(*place)]
    kept = " ".join(word for word in text.split() if word not in drugs and plain(word) not in said_for("abbreviations"))
    if not kept or kept == text or kept not in text or store.search_patients(text):
        return place
    return place[0] + text.find(kept), place[0] + text.find(kept) + len(kept)


def _in_queries(
    message: str, queries: Sequence[Span], store: RecordStore, ordinary: Callable[[str], bool]
) -> list[tuple[int, int]]:
    """First names of patients in what is searched for: "bridging for Nadia". No name leaves for an outside service."""
    found = []
    for span in queries:
        for word, after in pairwise([*span.text.split(), ""]):
            name = word.strip(",.;:?!()").removesuffix("'s")
            if name.istitle() and not after.istitle() and not ordinary(plain(name)) and _first_name(name, store):
                at = message.index(name, span.start)
                found.append((at, at + len(name)))
    return found


def _first_name(word: str, store: RecordStore) -> bool:
    """Whether only one patient has this first name, and it names nothing else: "trials for leilani"."""
    people = [] if " " in word or plain(word) in everyday() else store.search_patients(word)
    return len(people) == 1 and not people[0].guessed and plain(people[0].name).split()[0] == plain(word)


def _telling(message: str, places: Sequence[tuple[int, int]], reader: Reader) -> list[str]:
    """Words that are neither a name, a drug, a note nor everyday English: the chart is searched for them."""
    rest = plain(masked(message, places))
    words = dict.fromkeys(word for word in rest.replace("/", " ").split() if word.isalpha() and len(word) > 2)
    return [word for word in words if word not in everyday() and not reader.common(word, TELLING)]


def _parts(marked: Marked, clear: Sequence[PatientLink]) -> list[tuple[Marked, list[str] | None]]:
    """What is said of each patient, with whose it is; the whole, and None, where no two are named."""
    starts = {span.start for span in marked.spans(*CHANNELS.values())} | {start for start, _ in marked.quoted}
    if len({link.candidates[0].id for link in clear}) < 2 or not starts:
        return [(marked, None)]
    return [(marked.part(start, stop), ids) for start, stop, ids in parts(marked.message, sorted(starts), clear)]


def _owners(**entries: list[list[str] | None]) -> dict[str, list[list[str]]]:
    """Of each kind of entry, whose it is, where several patients are named."""
    named = {ask: [ids for ids in whose if ids is not None] for ask, whose in entries.items()}
    return {ask: whose for ask, whose in named.items() if whose}


def _of_nobody(message: str, drug: str, people: Sequence[PatientLink]) -> bool:
    """Whether an order is of a name that nobody has, "amox for Zbigniew. What is Garcia's K?": the nearest to it."""
    return len(people) > 1 and not min(people, key=lambda link: abs(link.start - message.find(drug))).candidates


def _of_clauses(marked: Marked, asked: Sequence[str], reader: Reader) -> list[str]:
    """Look-ups that a clause asks for plainly when it is read by itself; entries are read from the whole alone, and no
    order is a change of another, nor what the whole does not sound like ("he's out of uloric")."""
    parts = clauses(marked.message)
    if not 1 < len(parts) <= CLAUSES or set(asked) & {"note", "fix", "cancel"}:
        return []
    unlike = marked.reading.asks["change"] < UNLIKE
    scores = [reader.read(clause).asks for clause in parts]
    found = [ask for ask in LOOK_UPS if ask not in asked and any(score[ask] > ALONE for score in scores)]
    return [ask for ask in found if not (unlike and ask == "change")]


def _is_other(link: DrugLink) -> bool:
    """Whether a name that is known for no drug's is a measure's, "micromol", or a condition's, "MRONJ", "coeliac"."""
    name, unknown = plain(link.text), link.how == "unknown"
    other = unknown and (name in everyday() or name in short_forms())
    none = measure_said(name) or name in listed("request_words", "no_drugs")  # "cont" is no Clont
    return other or bool((unknown or link.how == "near") and none)


def _ordered_as(link: DrugLink) -> DrugLink:
    """An unknown name that stands for a drug as that: "Vit K"."""
    full = clinical("drug_abbreviations")["ordered"].get(plain(link.text)) if link.how == "unknown" else None
    return replace(link, name=full, how="short") if full else link


def as_drug(link: DrugLink, drugs: DrugNames) -> dict[str, Any]:
    """A drug of a request: as said, the dictionary's name, the members of a group."""
    members = said_for("groups")[link.name]["drugs"][:MEMBERS] if link.how == "group" else []
    generic = drugs.generic(link.name) or link.name
    return {"said": link.text, "name": link.name, "how": link.how, "members": members, "generic": generic}


def _whole_names(reading: Reading, message: str, drugs: DrugNames) -> Reading:
    """With each drug that is known only by a longer name marked as that: "ferric carboxymaltose"."""
    marks = {name: reading.spans[name] for name in ("drug", "rx.drug") if name in reading.spans}
    known = drugs.find(message) if marks else []

    def whole(span: Span) -> Span:
        found = [item for item in known if item.start <= span.start and span.end <= item.end and span.text not in drugs]
        return Span(found[0].text, found[0].start, found[0].end, span.score) if found else span

    return replace(reading, spans=reading.spans | {name: [*map(whole, spans)] for name, spans in marks.items()})


def _ordinary(word: str, drugs: DrugNames, reader: Reader) -> bool:
    """Whether a word says something already, and is no surname or study by itself: English, a drug, a test."""
    words = listed("request_words", "no_drugs", "function_words", "publishers") | listed("sig", "occasions")
    short = (said_for("abbreviations"), said_for("ambiguous"), said_for("conditions"), said_for("groups"))
    known = reader.common(word) or word in drugs or word in words or word in everyday()
    return known or any(word in some for some in short) or bool(measures_in(word))
