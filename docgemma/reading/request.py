"""What one message asks for, linked to what exists: patients of the record store, drugs of the dictionary, the spans of
orders, allergies and notes. The graph works on this; nothing downstream reads wording again."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

from docgemma.ehr.base import RecordStore
from docgemma.knowledge.literature import trial_names
from docgemma.reading.drugs import DrugLink, link_drugs, said_for
from docgemma.reading.entries import (
    DETAILS,
    UNTYPED_NOTE,
    Marked,
    loose_details,
    read_allergies,
    read_note,
    read_orders,
    told_of,
)
from docgemma.reading.labels import TOPICS, WRITES
from docgemma.reading.meant import PLAINLY, SURE, meant, order_of_story
from docgemma.reading.owners import owners
from docgemma.reading.patients import PatientLink, as_patient, as_unclear, born_on, read_people
from docgemma.reading.reader import Reader, Reading, Span
from docgemma.reading.terms import everyday, measure_said, measures_in, refers_back, said_in, topics_in
from docgemma.state import ActivePatient, OrderRef, Request
from docgemma.text.clauses import fillers, quoted
from docgemma.text.drugs import DrugNames
from docgemma.text.quoted import OPEN
from docgemma.text.said import clauses, closed
from docgemma.text.words import begun_with, listed, names, plain

MEMBERS = 4  # of a group of drugs that are looked up
TELLING = 3900  # pieces of the vocabulary that tell nothing by themselves
ALONE = 0.97  # of what a clause asks for
UNLIKE = 0.1  # of a change of the record that only a clause asks for
CLAUSES = 5
LOOK_UPS = (*TOPICS, "safe", "ddi", "change")
COMPLETE = (*LOOK_UPS, "may", "lit", "trial", "rx", "allergy", "note", "gk")  # asks of a message that stands alone
ANSWERS = ("fix", "ok", "cancel")  # asks of one that goes on with what was said
WHOLE = {"labs": "labs", "vitals": "vit", "medications": "meds", "allergies": "alg", "immunizations": "imm"}
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
    reading = _without_paste(_in_context(message, before, name, reader), message, reader)
    reading = _read_back(order_of_story(reading, message, reader), message)
    notes = reading.spans.get("note.text", []) if reading.asks["note"] > SURE else []
    if any(reading.asks[ask] > SURE for ask in ("rx", "allergy")):  # a word of an order is no note beside it
        notes = [span for span in notes if " " in span.text]
    marked = Marked(message, reading, [(span.start, span.end) for span in notes])
    trials = set() if message.isupper() else trial_names() & {word.strip(".,;:?!()") for word in message.split()}
    people = [link for link in _people(marked, drugs, store, reader) if link.candidates or link.text not in trials]
    if not people and not active and notes:  # "abd-101 refused physio. Please document": named within the note alone
        people = _people(Marked(message, reading), drugs, store, reader)[:1]
    clear = [link for link in people if len(link.candidates) == 1]
    marked = replace(marked, people=[(link.start, link.end) for link in people])
    marked = _without_names(marked, [link for link in people if link.candidates], drugs)
    beside = [*marked.quoted, *marked.people]
    linked = link_drugs(message, drugs, marked.spans("drug", "rx.drug"), beside, reading.asks["ddi"] > SURE)
    no_drugs = listed("request_words", "no_drugs")  # "micromol"
    other = no_drugs | everyday() | {*said_for("conditions")}  # "MRONJ", "coeliac"
    linked = [link for link in linked if not _is_measure(link.text, link.how)]
    linked = [link for link in linked if link.how != "unknown" or plain(link.text) not in other]
    whole, measures = set(measures_in(message)), [span.text for span in marked.spans("measure")]
    read = read_orders(marked, drugs)  # and "spo2 84% ra" orders nothing
    orders = [order for order in read if not _is_measure(order["said"], order["how"])]
    orders = [order for order in orders if plain(order["said"]) not in no_drugs]
    places = [*beside, *((link.start, link.end) for link in linked)]
    asked = [ask for ask in reading.asked(SURE) if ask != "rx" or orders or not read]
    if trials and not people:  # "REVISE - bleed numbers?"
        asked = [*(ask for ask in asked if ask not in ("trial", "find", *TOPICS)), "lit"]
    spoken = listed("request_words", "allergy_words", "noting_plainly")
    if "change" in asked and not spoken & set(plain(message).split()):
        asked = [ask for ask in asked if ask != "allergy"]  # "dc his lactulose, diarrhea"
    rest = _behind_dropped(message, [link.text for link in linked]) if linked else ""
    if rest and (not notes or reading.asks["rx"] > SURE):
        again = read_request(rest, reader=reader, drugs=drugs, store=store, active=active)
        if again["asks"] or again["measures"]:  # "was gonna put tramadol in, skip it. just give me his bp med"
            return {**again, "patients": again["patients"] or [as_patient(link) for link in clear]}
    if instead := _behind_dropped(message, []):  # "binned that. ramipril 2.5 od"
        again = read_request(instead, reader=reader, drugs=drugs, store=store, active=active)
        if again["orders"] and again["meant"] == "ordered":
            return {**again, "said": message}
    details, starts = loose_details(marked), [span.start for span in marked.spans("rx.drug")]
    known_drugs = [link for link in linked if link.how in ("named", "short", "near")]
    alone = len(known_drugs) == 1 and not (before or marked.spans("alg.subst"))
    first = known_drugs[0].start if alone else len(message)
    dosed = details.get("dose") and message.find(details["dose"].split()[0]) > first
    if "rx" in asked and not orders and dosed and not told_of(message[:first]):  # "missed his X. restart 150 bd"
        drug, given = known_drugs[0], {key: details.pop(key, "") for key in DETAILS}
        orders = [cast(OrderRef, {"said": drug.text, "drug": drug.name, "how": drug.how, **given})]
    request = Request(
        asks=_named_too(message, [*asked, *_of_clauses(marked, asked, reader)], bool(linked)),
        meant=meant(reading, message, reader, {*(link.start for link in linked), *starts}),
        patients=[as_patient(link) for link in clear],
        unclear=[as_unclear(link, message) for link in people if link not in clear],
        drugs=[as_drug(link, drugs) for link in linked],
        orders=orders,
        allergies=read_allergies(marked, drugs),
        notes=[read_note(marked, span) for span in notes[:1]],
        corrects=False,
        details=details,
        measures=[text for text in measures if not (named := measures_in(text)) or whole & {*named}],
        conditions=[span.text for span in marked.spans("condition")],
        status=_status(marked),
        query=" ".join(sorted(trials)) or marked.best("query"),
        trials=_trial_ids(message),
        said=message,
        telling=_telling(message, places, reader),
        owners=_owners(marked, clear),
    )
    return _noted(request, reading)


def _is_measure(said: str, how: str) -> bool:
    """Whether what is no drug's own name is a measure: "spo2", "calpro"."""
    return how in ("unknown", "near") and bool(measure_said(plain(said)))


def _noted(request: Request, reading: Reading) -> Request:
    """The request; where it tells a value and then to note it, as that note: "bp 168/94 at home. note it"."""
    noting, message = listed("request_words", "noting"), request["said"]
    other = request["drugs"] or {*WRITES, "change"} & set(request["asks"]) or reading.polarity["ordered"] < PLAINLY
    for clause in [] if other else clauses(message):
        before, _, after = message.partition(clause)
        text, words = f"{before.rstrip()} {after.lstrip(' ,;.!')}".strip(" ,;"), set(plain(clause).split())
        bare = words & noting and words <= noting | fillers() | listed("request_words", "linking")
        if bare and any(map(str.isdigit, text)):
            note = {"note_type": UNTYPED_NOTE, "note_text": text}
            return cast(Request, {**request, "asks": ["note"], "meant": "ordered", "notes": [note], "details": {}})
    return request


def _in_context(message: str, before: str, patient: str, reader: Reader) -> Reading:
    """The message read with the one before it; alone where it stands alone, so that what was said before changes
    nothing: "prescribe ibuprofen 400 mg tds" after "stop his metformin"."""
    alone = reader.read(message, patient=patient)
    if not before:
        return alone
    reading = reader.read(message, before=before, patient=patient)
    leans = refers_back(message) or any(reading.asks[ask] > SURE for ask in ANSWERS)
    given = alone.asks["rx"] > PLAINLY < alone.polarity["ordered"] and {"rx.drug", "rx.dose"} <= set(alone.spans)
    agreed = listed("request_words", "agreeing") & set(plain(message).split()[:1])
    if given and (agreed or reading.asks["fix"] <= SURE):
        leans = False  # "ok losartan 50 od for her", "doxy 100 bd do it", after it was asked about
    return reading if leans or not any(alone.asks[ask] > PLAINLY for ask in COMPLETE) else alone


def _without_paste(reading: Reading, message: str, reader: Reader) -> Reading:
    """The reading without a note that nobody orders: a referral that is quoted and asked about, a remark beside a
    question, where no word of noting is said."""
    text = next((quoted(message, span.start) for span in reading.spans.get("note.text", [])), "")
    rest = message.replace(text, "") if text else message
    through = [phrase for phrase in listed("request_words", "putting_through") if phrase in rest.casefold()]
    rest = rest[: rest.casefold().find(through[0])] if through else rest  # "swop his X to Y. put it thru" notes nothing
    noting, nouns = listed("request_words", "noting_plainly"), {"the", *listed("request_words", "persons")}
    asking = listed("request_words", "interrogative") | {"any", "anything"}
    said = [plain(part).split() for part in clauses(rest)] or [plain(rest).split()]
    said = [words for words in said if words and words[0] not in asking]  # "anything on her chart to add" adds nothing
    told = any(word in noting and before not in nouns for words in said for before, word in pairwise(["", *words]))
    beside = any(reading.asks[ask] > SURE for ask in (*COMPLETE, "img") if ask not in WRITES)
    asks = [words for words in map(str.split, map(plain, clauses(rest))) if text and not noting & {*words}]
    begun = {begun_with(words) for words in asks} & listed("request_words", "questioning")
    if begun and not names(listed("request_words", "pleading"), rest):  # "ED note: '...'. when was her last visit?"
        last = plain(message[: message.find(text)]).split()[-1:]
        told = any(begun_with(words) in noting for words in said) or bool(noting & {*last})
    begun |= {rest} if text and names(listed("request_words", "considering"), rest) else set()  # "ok to action"
    asked = rest.rstrip().endswith("?") or begun or (reader.read(rest).polarity["asked"] > SURE if text else beside)
    if told or reading.asks["note"] <= SURE:
        return reading
    if not asked and (through or reading.asks["rx"] > SURE):  # what is told of the patient beside an order is no note
        return replace(reading, asks={**reading.asks, "note": 0}, spans={**reading.spans, "note.text": []})
    if not asked:
        return reading
    spans = {channel: found for channel, found in reading.spans.items() if not channel.startswith(("note.", "rx."))}
    return replace(reading, asks={**reading.asks, "note": 0, "rx": 0}, spans=spans)


def _read_back(reading: Reading, message: str) -> Reading:
    """The reading; an order that was given by mouth and read back, "TORB dr lin kcl 20 meq po", as plainly ordered."""
    doubted = "?" in message or listed("request_words", "denying") & set(plain(message).split())
    whole = {"rx.drug", "rx.dose"} <= set(reading.spans) and reading.asks["note"] <= SURE
    if doubted or not whole or not names(listed("request_words", "read_back"), message):
        return reading
    return replace(reading, asks={**reading.asks, "rx": 1}, polarity={"ordered": 1, "asked": 0, "refused": 0})


def _people(marked: Marked, drugs: DrugNames, store: RecordStore | None, reader: Reader) -> list[PatientLink]:
    names, ids = marked.places("name"), marked.places("id")
    if store is None:
        return [PatientLink(*place, marked.message[slice(*place)], "name", (), False) for place in [*names, *ids]]

    short = {*everyday(), *said_for("abbreviations"), *said_for("ambiguous"), *said_for("conditions")}
    short |= listed("sig", "occasions") | listed("request_words", "function_words")

    def ordinary(word: str) -> bool:
        """No surname by itself: a drug, a ward abbreviation, a measure, a word of everyday English."""
        return reader.common(word) or word in drugs or word in short

    asks = marked.reading.asks
    beside = [*marked.quoted, *((span.start, span.end) for span in marked.reading.spans.get("query", []))]
    about = any(asks[ask] > SURE for ask in (*TOPICS, *WRITES, "find", "may", "change"))
    about |= not any(score > SURE for score in asks.values()) or not any(map(str.isalpha, marked.message))
    found = read_people(marked.message, names, ids, store, ordinary, beside)
    return found or (born_on(marked.message, store) if about else [])


def _without_names(marked: Marked, people: Sequence[PatientLink], drugs: DrugNames) -> Marked:
    """The marks without an order's drug that is a patient's name, "clexane bridging benali 1 mg/kg"; where no other is
    left, the one known drug of the message is ordered."""
    spans, places = marked.reading.spans, [(link.start, link.end) for link in people]
    left = [span for span in spans.get("rx.drug", []) if span.text in drugs or (span.start, span.end) not in places]
    if len(left) == len(spans.get("rx.drug", [])):
        return marked
    known = [link for link in link_drugs(marked.message, drugs, (), [*marked.quoted, *places]) if link.how != "group"]
    left = left or [Span(link.text, link.start, link.end, 1) for link in known if len(known) == 1]
    return replace(marked, reading=replace(marked.reading, spans={**spans, "rx.drug": left}))


def _telling(message: str, places: Sequence[tuple[int, int]], reader: Reader) -> list[str]:
    """Words that are neither a name, a drug, a note nor everyday English: the chart is searched for them."""
    rest = message
    for start, end in places:
        rest = rest[:start] + " " * (end - start) + rest[end:]
    words = dict.fromkeys(word for word in plain(rest).replace("/", " ").split() if word.isalpha() and len(word) > 2)
    return [word for word in words if word not in everyday() and not reader.common(word, TELLING)]


def _owners(marked: Marked, clear: Sequence[PatientLink]) -> dict[str, list[list[str]]]:
    """Of each kind of entry, whose it is, where several patients are named."""
    if len({link.candidates[0].id for link in clear}) < 2:
        return {}
    starts = {ask: [span.start for span in marked.spans(channel)] for ask, channel in CHANNELS.items()}
    starts["note"] = [start for start, _ in marked.quoted]
    return {ask: owners(marked.message, found, clear) for ask, found in starts.items() if found}


def _of_clauses(marked: Marked, asked: Sequence[str], reader: Reader) -> list[str]:
    """Look-ups that a clause asks for plainly when it is read by itself; entries are read from the whole alone, and no
    order is a change of another, nor what the whole does not sound like ("he's out of uloric")."""
    parts = clauses(marked.message)
    if not 1 < len(parts) <= CLAUSES or set(asked) & {"note", "fix", "cancel"}:
        return []
    unlike = marked.reading.asks["change"] < UNLIKE
    same = [unlike or any(span.text in clause for span in marked.spans("rx.drug")) for clause in parts]
    found = [
        {ask for ask in LOOK_UPS if score[ask] > ALONE and not (unchanged and ask == "change")}
        for score, unchanged in zip((reader.read(clause).asks for clause in parts), same, strict=True)
    ]
    return [ask for ask in LOOK_UPS if ask not in asked and any(ask in asks for asks in found)]


def _named_too(message: str, asks: list[str], drugs: bool) -> list[str]:
    """The asks, and beside parts of a chart those that are named as a whole: "K and the meds"; no drug is a vaccine."""
    if drugs and not said_in(message, "immunizations") and "immunizations" not in topics_in(message):
        asks = ["may" if ask == "imm" else ask for ask in asks]
    if not set(asks) & set(TOPICS) or set(asks) & {*WRITES, "may", "fix", "cancel", "change"}:
        return asks
    return list(dict.fromkeys([*asks, *(WHOLE[topic] for topic in topics_in(message) if topic in WHOLE)]))


def as_drug(link: DrugLink, drugs: DrugNames) -> dict[str, Any]:
    """A drug of a request: as said, the dictionary's name, the members of a group."""
    members = said_for("groups")[link.name]["drugs"][:MEMBERS] if link.how == "group" else []
    generic = drugs.generic(link.name) or link.name
    return {"said": link.text, "name": link.name, "how": link.how, "members": members, "generic": generic}


def _status(marked: Marked) -> str:
    """A trial's recruitment status, where one is asked for."""
    told = [word for word in marked.message.split() if "recruiting" in word.casefold()]
    return closed(marked.best("status") or "".join(told[:1]), "statuses") if marked.reading.asks["trial"] > SURE else ""


def _behind_dropped(message: str, drugs: Sequence[str]) -> str:
    """What stands behind the words by which a message takes back the order of a drug before them, or, where no drug is
    given, that of the message before, with a mark behind them; "" where none is."""
    told, ends = f" {message.casefold()} ", [0]
    for phrase in listed("request_words", "dropping"):
        before, found, rest = told.rpartition(f" {phrase}")
        whole = any(drug.casefold() in before for drug in drugs) if drugs else rest.strip()[:1] in ",;:.-–"
        if found and not rest[:1].isalnum() and whole:
            ends.append(len(before) + len(found) - 1)
    rest = message[max(ends) :].strip(" ,;:.-–")
    return rest if max(ends) and len(rest.split()) > 1 else ""


def _trial_ids(message: str) -> list[str]:
    words = [word.strip(".,;:()?!").upper() for word in message.split()]
    return [word for word in words if len(word) == 11 and word.startswith("NCT") and word[3:].isdigit()]
