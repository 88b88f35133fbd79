"""What one message asks for, linked to what exists: patients of the record store, drugs of the dictionary, the spans of
orders, allergies and notes. The graph works on this; nothing downstream reads wording again."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

from docgemma.ehr.base import RecordStore
from docgemma.knowledge.literature import shipped, studies_in
from docgemma.reading.allergies import read_allergies, substance_behind
from docgemma.reading.drugs import DrugLink, link_drugs, said_for
from docgemma.reading.entries import DETAILS, considered_doses, loose_details, read_note, read_orders
from docgemma.reading.labels import TOPICS, WRITES
from docgemma.reading.marked import Marked, found_at, within
from docgemma.reading.meant import PLAINLY, SURE, asks_of_record, meant
from docgemma.reading.owners import parts
from docgemma.reading.patients import PatientLink, as_patient, as_unclear, born_on, read_people
from docgemma.reading.reader import Reader, Reading, Span
from docgemma.reading.terms import everyday, measure_said, measures_in, refers_back, said_in
from docgemma.state import ActivePatient, OrderRef, Request
from docgemma.text.clauses import masked
from docgemma.text.drugs import DrugNames
from docgemma.text.quoted import OPEN
from docgemma.text.said import CLAUSE_ENDS, clauses, closed, parted
from docgemma.text.words import SHORT, clinical, listed, names, plain

MEMBERS = 4  # of a group of drugs that are looked up
TELLING = 3900  # pieces of the vocabulary that tell nothing by themselves
ALONE = 0.97  # of what a clause asks for
UNLIKE = 0.1  # of a change of the record that only a clause asks for
CLAUSES = 5
LOOK_UPS = (*TOPICS, "safe", "ddi", "change")
COMPLETE = (*LOOK_UPS, "may", "lit", "trial", "rx", "allergy", "note", "gk")  # asks of a message that stands alone
ANSWERS = ("fix", "ok", "cancel")  # asks of one that goes on with what was said
RECORDED = {"rx": "meds", "allergy": "alg", "note": "notes"}  # an entry -> what is recorded of its kind
CHANNELS_OF_DRUGS: tuple[str, ...] = ("drug", "rx.drug")
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
    reading = _in_context(message, before, name, reader)
    told_before = _told_before(message, reading)
    asking = message.rstrip().endswith("?") or any(reading.asks[ask] > SURE for ask in WRITES)
    if told_before and not asking:  # "don't add an allergy, just note it"
        reading = replace(reading, asks={**reading.asks, "note": 1.0})
    notes = reading.spans.get("note.text", []) if reading.asks["note"] > SURE else []
    if any(reading.asks[ask] > SURE for ask in ("rx", "allergy")):  # a word of an order is no note beside it
        notes = [span for span in notes if " " in span.text]
    elif told_before and reading.asks["note"] > SURE and not within(told_before[0], notes):
        notes = told_before
    reading = substance_behind(_whole_names(reading, message, drugs), message)
    noted = _told_in_note(message, reading) if reading.asks["note"] > SURE else []
    notes = notes or noted
    marked = Marked(message, reading, [(span.start, span.end) for span in notes])
    people = _people(marked, drugs, store, reader)
    if not people and not active and notes:  # "abd-101 refused physio. Please document": named within the note alone
        people = _people(Marked(message, reading), drugs, store, reader)[:1]
    if not people and active:  # "what about the wilson with the warfarin", while another is open
        people = [
            link for link in _people(Marked(message, reader.read(message)), drugs, store, reader) if link.candidates
        ]
    clear = [link for link in people if len(link.candidates) == 1]
    marked = replace(marked, people=[(link.start, link.end) for link in people])
    beside = [*marked.quoted, *marked.people]
    linked = link_drugs(message, drugs, marked.spans("drug", "rx.drug"), beside, reading.asks["ddi"] > SURE)
    no_drugs = listed("request_words", "no_drugs")  # "micromol"
    other = no_drugs | everyday() | {*said_for("conditions")}  # "MRONJ", "coeliac"
    linked = [link for link in linked if link.how not in ("unknown", "near") or not measure_said(plain(link.text))]
    linked = [link for link in linked if link.how != "unknown" or plain(link.text) not in other]
    studies = _studies(message, lambda word: _known(word, drugs, reader))
    parts = {plain(part) for name in studies for part in (name, *name.replace("-", " ").split())}
    linked = [link for link in linked if plain(link.text) not in parts]  # DAPA-CKD is no drug
    whole, measures = set(measures_in(message)), [span.text for span in marked.spans("measure")]
    told = _parts(marked, clear)
    read = [(order, whose) for part, whose in told for order in read_orders(part, drugs)]
    mine = [(order, whose) for order, whose in read if plain(order["said"]) not in no_drugs]
    orders = [order for order, _ in mine]
    full = clinical("drug_abbreviations")["ordered"]
    linked = [
        replace(link, name=told_as, how="short")
        if link.how == "unknown" and (told_as := full.get(plain(link.text)))
        else link
        for link in linked
    ]  # "Vit K"
    allergies = [(item, whose) for part, whose in told for item in read_allergies(part, drugs)]
    places = [*beside, *((link.start, link.end) for link in linked)]
    asked = [ask for ask in reading.asked(SURE) if ask != "rx" or orders or not read]
    published = "lit" if studies else "trial" if _trial_ids(message) and not active else ""
    if published and not people:  # "REVISE - bleed numbers?"
        kept = ("may", "ddi", *WRITES) if linked else ()
        asked = [*(ask for ask in asked if ask in kept), published]
    elif studies and "note" not in asked:  # "RE-ALIGN: can Nadia Benali have dabigatran?"
        asked = [*(ask for ask in asked if ask not in ("img", "trial", "gk", "notes")), "lit"]
    if said_in(message, "literature") and not (people or active):  # "guideline recommendation for X" is no note
        asked = [ask for ask in asked if ask != "notes"]
    described = listed("request_words", "evidence") & {*plain(message).split()} and not (people or active)
    if described and not (asked or (linked and _is_new(marked))):  # "that leaflet trial in seniors?"
        asked = ["lit"]
    if asks_of_record(message):
        asked += [about for ask, about in RECORDED.items() if ask in asked and about not in asked]
    if noted:
        asked = [ask for ask in asked if ask != "allergy"]  # "she had jaw pain after X, put it in a note"
    new = bool(orders) and _is_new(marked)
    asked = [ask for ask in asked if ask != "change" or not new]
    spoken = listed("request_words", "allergy_words", "noting_plainly")
    if "change" in asked and not spoken & set(plain(message).split()):
        asked = [ask for ask in asked if ask != "allergy"]  # "dc his lactulose, diarrhea"
    rest = _behind_dropped(message, [link.text for link in linked]) if linked else ""
    if rest and (not notes or reading.asks["rx"] > SURE):
        again = read_request(rest, reader=reader, drugs=drugs, store=store, active=active)
        if again["asks"]:  # "was gonna put tramadol in, skip it. just give me his bp med"
            return {**again, "patients": again["patients"] or [as_patient(link) for link in clear]}
    if instead := _behind_dropped(message, []):  # "binned that. ramipril 2.5 od"
        again = read_request(instead, reader=reader, drugs=drugs, store=store, active=active)
        if again["orders"] and again["meant"] == "ordered":
            return {**again, "said": message}
    if wanted := _without_refused(message, [link for link in linked if link.how in ("named", "short", "near")]):
        again = read_request(wanted, reader=reader, drugs=drugs, store=store, active=active)
        if again["orders"] and again["meant"] == "ordered" and meant(reading, message) != "asked":
            return {**again, "said": message}
    plainly = reading.polarity["ordered"] > PLAINLY and len(clear) < 2
    if plainly and (wanted := _without_stopped(marked, linked)):
        again = read_request(wanted, reader=reader, drugs=drugs, store=store, active=active)
        whole_orders = again["orders"] and all(order["dose"] and order["frequency"] for order in again["orders"])
        if whole_orders and again["meant"] == "ordered":  # what is stopped beside it is refused, and checked
            more = [as_drug(link, drugs) for link in linked]
            more = [drug for drug in more if drug["name"] not in [one["name"] for one in again["drugs"]]]
            whom = again["patients"] or [as_patient(link) for link in clear]
            asks = [*dict.fromkeys([*again["asks"], "change"])]
            return {**again, "said": message, "asks": asks, "patients": whom, "drugs": [*again["drugs"], *more]}
    details, given_of = loose_details(marked), considered_doses(marked, drugs)
    known_drugs = [link for link in linked if link.how in ("named", "short", "near")]
    alone = len(known_drugs) == 1 and not (before or marked.spans("alg.subst"))
    first = known_drugs[0].start if alone else len(message)
    dosed = details.get("dose") and message.find(details["dose"].split()[0]) > first
    if "rx" in asked and not orders and dosed:  # "missed his X. restart 150 bd"
        drug, given = known_drugs[0], {key: details.pop(key, "") for key in DETAILS}
        orders = [cast(OrderRef, {"said": drug.text, "drug": drug.name, "how": drug.how, **given})]
    return Request(
        asks=[*asked, *(ask for ask in _of_clauses(marked, asked, reader) if ask != "change" or not new)],
        meant=meant(reading, message),
        patients=[as_patient(link) for link in clear],
        unclear=[as_unclear(link, message) for link in people if link not in clear],
        drugs=[{**as_drug(link, drugs), "details": given_of.get(link.text, {})} for link in linked],
        orders=orders,
        allergies=[item for item, _ in allergies],
        notes=[read_note(marked, span) for span in notes[:1]],
        corrects=False,
        details=details,
        measures=[text for text in measures if not (named := measures_in(text)) or whole & {*named}],
        conditions=[span.text for span in marked.spans("condition") if (span.start, span.end) not in marked.people],
        status=_status(marked),
        query=", ".join(studies or _queries(marked)),
        trials=_trial_ids(message),
        studies=studies,
        said=message,
        telling=_telling(message, places, reader),
        owners=_owners(
            rx=[whose for _, whose in mine],
            allergy=[whose for _, whose in allergies],
            note=[whose for part, whose in told for at, _ in marked.quoted if part.message[at : at + 1].strip()],
        ),
    )


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


def _people(marked: Marked, drugs: DrugNames, store: RecordStore | None, reader: Reader) -> list[PatientLink]:
    names, ids = marked.places("name"), marked.places("id")
    if store is None:
        return [PatientLink(*place, marked.message[slice(*place)], "name", (), False) for place in [*names, *ids]]

    short = {*everyday(), *said_for("abbreviations"), *said_for("ambiguous"), *said_for("conditions")}
    short |= listed("sig", "occasions") | listed("request_words", "function_words")

    def ordinary(word: str) -> bool:
        """No surname by itself: a drug, a ward abbreviation, a measure, a word of everyday English."""
        return reader.common(word) or word in drugs or word in short

    names = [_but_drugs(marked.message, place, drugs, store) for place in names]
    conditions = marked.places("condition") if not names else []
    names += [place for place in conditions if _first_name(marked.message[slice(*place)], store)]
    asks = marked.reading.asks
    beside = [*marked.quoted, *((span.start, span.end) for span in marked.reading.spans.get("query", []))]
    about = any(asks[ask] > SURE for ask in (*TOPICS, *WRITES, "find", "may", "change"))
    about |= not any(score > SURE for score in asks.values()) or not any(map(str.isalpha, marked.message))
    found = read_people(marked.message, names, ids, store, ordinary, beside)
    studies = _studies(marked.message, lambda word: _known(word, drugs, reader))
    published = {word for name in (*studies, *_trial_ids(marked.message)) for word in plain(name).split()}
    found = [link for link in found if link.candidates or not published & {*plain(link.text).split()}]
    return found or (born_on(marked.message, ids, store) if about else [])


def _but_drugs(message: str, place: tuple[int, int], drugs: DrugNames, store: RecordStore) -> tuple[int, int]:
    """The place of a name without a drug beside it, where nobody has such a name: "Liam amox"."""
    text = message[slice(*place)]
    kept = " ".join(word for word in text.split() if word not in drugs and plain(word) not in said_for("abbreviations"))
    if not kept or kept == text or kept not in text or store.search_patients(text):
        return place
    return place[0] + text.find(kept), place[0] + text.find(kept) + len(kept)


def _first_name(word: str, store: RecordStore) -> bool:
    """Whether only one patient has this first name, and it names nothing else: "trials for leilani"."""
    people = [] if " " in word or plain(word) in everyday() else store.search_patients(word)
    return len(people) == 1 and not people[0].guessed and plain(people[0].name).split()[0] == plain(word)


def _telling(message: str, places: Sequence[tuple[int, int]], reader: Reader) -> list[str]:
    """Words that are neither a name, a drug, a note nor everyday English: the chart is searched for them."""
    rest = message
    for start, end in places:
        rest = rest[:start] + " " * (end - start) + rest[end:]
    words = dict.fromkeys(word for word in plain(rest).replace("/", " ").split() if word.isalpha() and len(word) > 2)
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


def _whole_names(reading: Reading, message: str, drugs: DrugNames) -> Reading:
    """With each drug that is known only by a longer name marked as that: "ferric carboxymaltose"."""
    if not any(name in reading.spans for name in CHANNELS_OF_DRUGS):
        return reading
    known = drugs.find(message)

    def whole(span: Span) -> Span:
        found = [item for item in known if item.start <= span.start and span.end <= item.end and span.text not in drugs]
        return Span(found[0].text, found[0].start, found[0].end, span.score) if found else span

    linked = {name: [*map(whole, reading.spans.get(name, []))] for name in CHANNELS_OF_DRUGS}
    return replace(reading, spans={**reading.spans, **{name: spans for name, spans in linked.items() if spans}})


def _told_in_note(message: str, reading: Reading) -> list[Span]:
    """The clause that tells what happened with a drug, where it goes into a note and no allergy is spoken of."""
    told = [span for channel in ("alg.subst", "alg.react") for span in reading.spans.get(channel, [])]
    spoken = listed("request_words", "allergy_words") & {*plain(message).split()}
    if not told or spoken or not names(listed("request_words", "as_note"), message):
        return []
    ended = f"{message.translate(CLAUSE_ENDS).replace(':', chr(10))}\n"
    start = ended.rfind("\n", 0, min(span.start for span in told)) + 1
    text = message[start : ended.index("\n", max(span.end for span in told))].strip()
    while plain(text.split()[0]) in listed("request_words", "noting_plainly", "commands"):
        text = text.partition(" ")[2]
    start = message.index(text, start)
    return [Span(text, start, start + len(text), 1)]


def _told_before(message: str, reading: Reading) -> list[Span]:
    """The sentences before the one that puts them into a note, "rash on X suspected. Just note it"."""
    marked, folded = Marked(message, reading), message.casefold()
    back = [span for span in found_at(marked, listed("request_words", "as_note"))
            if plain(folded[: span.start]).split()[-1:] in (["it"], ["that"], ["this"])]  # fmt: skip
    back += found_at(marked, listed("request_words", "noted_back"))
    start = message.rfind(". ", 0, back[0].start) + 1 if back and ":" not in message[back[0].end :] else 0
    first = min((end for begin, end in marked.places("name", "id") if begin == 0), default=0)
    text = message[first:start].strip(" .,;:-–—")
    return [Span(text, at := message.index(text, first), at + len(text), 1)] if text else []


def _without_refused(message: str, drugs: Sequence[DrugLink]) -> str:
    """A message without the clause that refuses one of its drugs, "not the ibuprofen", where the other one is ordered;
    "" where there is none, or where what follows may be refused too."""
    ended = message.translate(CLAUSE_ENDS).replace(":", "\n").replace(" but ", "\n    ")
    for drug in drugs:
        start, end = ended.rfind("\n", 0, drug.start) + 1, ended.find("\n", drug.end) % (len(message) + 1)
        lead, rest = plain(message[start : drug.start]), plain(message[end:]).split()
        refused = any(f"{lead} ".startswith(f"{phrase} ") for phrase in listed("request_words", "not_ordering"))
        ordered = listed("request_words", "ordering") & {*rest[:3]} and rest[0] not in listed(
            "request_words", "joining"
        )
        if refused and len(drugs) > 1 and (ordered or drugs[-1].start < end):
            return message[:start] + message[end:]
    return ""


def _is_new(marked: Marked) -> bool:
    """Whether nothing is changed by an order: "change every 72 h" tells how often; "sorry, start X" begins anew."""
    message, drugs = marked.message, marked.spans("rx.drug")
    words = plain(message[: drugs[0].start]).split() if drugs else []
    begun = (
        words[-1:]
        and words[-1] in listed("request_words", "beginning")
        and listed("request_words", "correcting") & {*words}
    )
    changes = listed("request_words", "changing", "altering", "halting", "stopping", "handling") | {"instead"}
    often = [span.start for span in marked.spans("rx.freq") if plain(message[: span.start]).split()[-1:] == ["change"]]
    told = masked(
        message, [(0, drugs[0].start)] if begun else [(message.casefold().rfind("change", 0, at), at) for at in often]
    )
    return bool(begun or often) and not changes & {*plain(told).split()}


def _without_stopped(marked: Marked, drugs: Sequence[DrugLink]) -> str:
    """A message without the clauses that stop a drug, "hold his warfarin", beside another one; "" where none is."""
    message, empty = marked.message, listed("request_words", "pointing", "opening")
    ended = parted(message)
    for drug in reversed(drugs if len(drugs) > 1 else []):
        start, end = ended.rfind("\n", 0, drug.start) + 1, ended.find("\n", drug.end) % (len(message) + 1)
        start = max([start, *(stop for _, stop in marked.people if start < stop < drug.start)])
        verbs = [word for word in plain(message[start : drug.start]).split() if word not in empty]
        if len(verbs) == 1 and verbs[0] in listed("request_words", "halting"):
            message = f"{message[: len(ended[:start].rstrip())]}{', ' * (start > 0)}{message[end:].lstrip(' ,;+.')}"
    return message if message != marked.message else ""


def _studies(message: str, ordinary: Callable[[str], bool]) -> list[str]:
    """Studies that are named, and articles by their number. One that the collection does not have counts beside one
    that it has ("PARADIGM, and SOLVD"), beside "trial" or "study", or alone."""
    tested = {word for word, how in pairwise(_words(message)) if how.casefold() in listed("request_words", "tested")}
    named = [name for name in studies_in(message) if name not in tested]  # "FAST positive" is a stroke test
    if named and message.isupper() and [word for word in _words(message) if ordinary(plain(word))] == named:  # "PAUSE"
        return []
    words = _words(message)
    beside = {word for word, noun in pairwise(words) if noun.casefold() in listed("request_words", "studies")}
    known = {part for name in named for part in name.replace("-", " ").split()}
    others = [word for word in words if word.isupper() and word.isalpha() and len(word) > SHORT - 1]
    others = [word for word in others if word not in known and not ordinary(plain(word))]
    kept = [word for word in others if (named and not message.isupper()) or word in beside or words == [word]]
    return [*named, *(word for word in words if word in shipped("literature")), *kept]


def _queries(marked: Marked) -> list[str]:
    """What is to be searched for: the surest span, and each other clause that asks for evidence."""
    best = marked.best("query")
    others = [part for part in clauses(marked.message.replace("+", ";")) if best not in part and part not in best]
    return [best, *(part for part in others if said_in(part, "literature"))] if best else []


def _known(word: str, drugs: DrugNames, reader: Reader) -> bool:
    """Whether a word says something already: English, a drug, a condition, a test."""
    lists = ("abbreviations", "ambiguous", "conditions", "groups")
    known = any(word in said_for(kind) for kind in lists) or word in everyday() | listed("request_words", "no_drugs")
    return known or reader.common(word) or word in drugs or bool(measures_in(word))


def _trial_ids(message: str) -> list[str]:
    """Trials that are named by an id: of ClinicalTrials.gov, or of the collection."""
    words = [word.upper() for word in _words(message)]
    registered = {word for word in words if len(word) == 11 and word.startswith("NCT") and word[3:].isdigit()}
    return [word for word in words if word in registered or word in shipped("trials")]


def _words(message: str) -> list[str]:
    return [word.strip(".,;:?!()") for word in message.split()]
