"""What one message asks for, linked to what exists: patients of the record store, drugs of the dictionary, the spans of
orders, allergies and notes. The graph works on this; nothing downstream reads wording again."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from docgemma.ehr.base import RecordStore
from docgemma.ehr.births import read_births
from docgemma.reading.drugs import DrugLink, abbreviations, groups, link_drug, link_drugs
from docgemma.reading.labels import TOPICS, WRITES
from docgemma.reading.owners import owners
from docgemma.reading.patients import PatientLink, link_patients
from docgemma.reading.reader import Reader, Reading, Span
from docgemma.reading.terms import everyday
from docgemma.reading.words import plain
from docgemma.rules.drugs import DrugNames
from docgemma.rules.numbers import said_frequencies
from docgemma.state import ActivePatient, OrderRef, PatientRef, Request

SURE = 0.5
PLAINLY = 0.8  # of a write: below, a person is asked whether it is meant
MEMBERS = 4  # of a group of drugs that are looked up
TELLING = 3900  # pieces of the vocabulary that tell nothing by themselves
ALONE = 0.97  # of what a clause asks for
CLAUSES = 5
CLAUSE_ENDS = str.maketrans(dict.fromkeys(",;.?!+&", "\n"))
UNTYPED_NOTE = "clinical note"
NOTE_KINDS = (  # LOINC document types, as they are said
    "progress note", "consultation note", "consult note", "procedure note", "operative note", "operation note",
    "discharge summary", "nursing note", "telephone note", "telephone encounter", "phone note", "follow-up note",
    "clinic note", "ward round note", "admission note", "handover note", "history and physical note", "transfer note",
    "referral letter", "physio note", "social work note", "pharmacy note", "addendum",
)  # fmt: skip
NO_DOSE = ("kg", "lb", "lbs", "cm", "stone", "mmhg", "years", "yo")  # "she's 96 kg, make it 60"
SEVERITIES = {"mil": "mild", "sli": "mild", "min": "mild", "mod": "moderate", "sev": "severe", "ser": "severe",
              "lif": "severe", "cri": "severe", "ana": "severe", "fat": "severe", "bad": "severe"}  # fmt: skip
STATUSES = {"rec": "recruiting", "enr": "recruiting", "ope": "recruiting", "sta": "recruiting", "act": "active",
            "ong": "active", "run": "active", "cur": "active", "com": "completed", "fin": "completed",
            "clo": "completed", "con": "completed", "ter": "terminated", "wit": "withdrawn", "sus": "suspended",
            "not": "not yet recruiting", "upc": "not yet recruiting"}  # fmt: skip


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
    reading = reader.read(message, before=before, patient=active["name"] if active else "")
    notes = reading.spans.get("note.text", []) if reading.asks["note"] > SURE else []
    quoted = [(span.start, span.end) for span in notes]
    people = _people(message, reading, quoted, drugs, store, reader)
    if not people and not active and notes:  # "abd-101 refused physio. Please document": named within the note alone
        people = _people(message, reading, [], drugs, store, reader)[:1]
    beside = [*quoted, *((link.start, link.end) for link in people)]
    linked = link_drugs(message, drugs, _outside(reading, ("drug", "rx.drug"), quoted), beside)
    orders = _orders(message, reading, quoted, drugs)
    places = [*quoted, *((link.start, link.end) for link in [*people, *linked])]
    return Request(
        asks=[*(asked := reading.asked(SURE)), *_of_clauses(message, asked, reader)],
        meant=_meant(reading),
        patients=[_patient(link) for link in people if len(link.candidates) == 1],
        unclear=[_unclear(link, message) for link in people if len(link.candidates) != 1],
        drugs=[_drug(link) for link in linked],
        orders=orders,
        allergies=_allergies(message, reading, quoted),
        notes=[
            {"note_type": _kind(message, reading, span), "note_text": _dictated(message, span, reading)}
            for span in notes[:1]
        ],
        corrects=False,
        details=_loose(message, reading, quoted),
        measures=[span.text for span in _outside(reading, ("measure",), quoted)],
        condition=_text(reading, "condition"),
        conditions=[span.text for span in _outside(reading, ("condition",), quoted)],
        status=_status(message, reading),
        query=_text(reading, "query"),
        trials=_trial_ids(message),
        said=message,
        telling=_telling(message, places, reader),
        owners=_owners(message, reading, quoted, people),
    )


def _telling(message: str, places: Sequence[tuple[int, int]], reader: Reader) -> list[str]:
    """Words that are neither a name, a drug, a note nor everyday English: the chart is searched for them."""
    rest = message
    for start, end in places:
        rest = rest[:start] + " " * (end - start) + rest[end:]
    words = dict.fromkeys(word for word in plain(rest).replace("/", " ").split() if word.isalpha() and len(word) > 2)
    return [word for word in words if word not in everyday() and not reader.common(word, TELLING)]


def _owners(
    message: str, reading: Reading, quoted: Sequence[tuple[int, int]], people: Sequence[PatientLink]
) -> dict[str, list[list[str]]]:
    """Of each kind of entry, whose it is, where several patients are named."""
    clear = [link for link in people if len(link.candidates) == 1]
    if len({link.candidates[0].id for link in clear}) < 2:
        return {}
    kinds = (("rx", "rx.drug"), ("allergy", "alg.subst"), ("note", "note.text"))
    spans = {kind: _outside(reading, (channel,), quoted if kind != "note" else []) for kind, channel in kinds}
    return {kind: owners(message, [span.start for span in found], clear) for kind, found in spans.items() if found}


def _of_clauses(message: str, asked: Sequence[str], reader: Reader) -> list[str]:
    """Look-ups that a clause asks for plainly when it is read by itself; entries are read from the whole alone."""
    ended = message.translate(CLAUSE_ENDS).replace(" and ", "\n")
    clauses = [clause for clause in ended.split("\n") if len(clause.split()) > 1]
    if len(clauses) < 2 or len(clauses) > CLAUSES or set(asked) & {"note", "fix", "cancel"}:
        return []
    alone = [reader.read(clause).asks for clause in clauses]
    return [
        ask
        for ask in (*TOPICS, "safe", "ddi", "change")
        if ask not in asked and any(asks[ask] > ALONE for asks in alone)
    ]


def _people(
    message: str,
    reading: Reading,
    quoted: Sequence[tuple[int, int]],
    drugs: DrugNames,
    store: RecordStore | None,
    reader: Reader,
) -> list[PatientLink]:
    names, ids = _outside(reading, ("name",), quoted), _outside(reading, ("id",), quoted)
    if store is None:
        return [PatientLink(span.start, span.end, span.text, kind, (), False)
                for kind, spans in (("name", names), ("id", ids)) for span in spans]  # fmt: skip
    taken = [*quoted, *((span.start, span.end) for span in reading.spans.get("query", []))]
    ordinary = _ordinary(drugs, reader)
    found = link_patients(
        message, store, [(span.start, span.end) for span in names], [(span.start, span.end) for span in ids],
        ordinary=ordinary,
    )  # fmt: skip
    found = [link for link in found if not any(start <= link.start < end for start, end in taken)]
    found = [part for link in found for part in _split(link, message, store, ordinary)]
    found = [_by_year(link, message) for link in found]
    found = [_by_surname(link, store) for link in found if link.candidates or _is_name(link, ordinary)]
    return found or _by_birth_alone(message, reading, store)


def _is_name(link: PatientLink, ordinary: Callable[[str], bool]) -> bool:
    """Whether somebody is named whom nobody here is: not "k", "ooh" or "drain"."""
    words = plain(link.text).replace("'", " ").split()
    if link.kind == "id":
        return len(link.text) > 4
    return any(len(word) > 2 and not ordinary(word) and not word.isdigit() for word in words)


def _split(link: PatientLink, message: str, store: RecordStore, ordinary: Callable[[str], bool]) -> list[PatientLink]:
    """A name that nobody has, as the patients whose surnames are its parts: "goldstein, nowak", "haddad ta"."""
    if link.candidates or link.kind != "name" or link.by_birth:
        return [link]
    parts = [part for part in plain(link.text).replace("/", " ").removesuffix("'s").split() if len(part) > 2]
    known = [part for part in parts if store.named([[part]])[0]]
    rest = [part for part in parts if part not in known]
    listed = "," in link.text or len(known) == 1
    if (
        not known
        or not listed
        or any(not ordinary(part) for part in rest)
        or (len(parts) > 1 and len(known) < 2 and not rest and "," in link.text)
    ):
        return [link]
    return [PatientLink(link.start, link.end, part, "name", tuple(store.named([[part]])[0]), True) for part in known]


def _by_year(link: PatientLink, message: str) -> PatientLink:
    """An ambiguous name with a year or age anywhere in the message that only some of its candidates fit."""
    if len(link.candidates) < 2:
        return link
    days = [day for birth in read_births(message) for day in birth.days]
    words = message.casefold().replace(",", " ").split()
    short = [
        word
        for before, word in pairwise(words)
        if before in ("born", "the", "b.") and word.isdigit() and len(word) == 2
    ]
    days += [match.birth_date[:4] for match in link.candidates if match.birth_date[2:4] in short]
    fit = tuple(match for match in link.candidates if any(match.birth_date.startswith(day) for day in days))
    return replace(link, candidates=fit, by_birth=True) if fit and len(fit) < len(link.candidates) else link


def _by_surname(link: PatientLink, store: RecordStore) -> PatientLink:
    """A name that nobody has, as the one patient of that surname whose given name begins alike: "Len Abernathy"."""
    words = plain(link.text).removesuffix("'s").split()
    if link.candidates or link.kind != "name" or link.by_birth or len(words) < 2:
        return link
    people = store.named([[words[-1]]])[0]
    alike = [match for match in people if any(part[:2] == words[0][:2] for part in plain(match.name).split()[:-1])]
    return replace(link, candidates=tuple(alike), exact=False) if len(alike) == 1 else link


def _by_birth_alone(message: str, reading: Reading, store: RecordStore) -> list[PatientLink]:
    """Who was born on a day that is given, where nobody is named."""
    if not any(reading.asks[ask] > SURE for ask in (*TOPICS, *WRITES, "find", "may", "change")):
        return []
    links = []
    for birth in read_births(message):
        days = [day for day in birth.days if len(day) == 10]
        people = store.born(days) if days and birth.kind in ("stated", "date") else []
        if people:
            text = people[0].name
            links.append(PatientLink(birth.start, birth.end, text, "name", tuple(people), True, True))
    return links[:1]


def _ordinary(drugs: DrugNames, reader: Reader) -> Callable[[str], bool]:
    """Words that are no surname by themselves: drugs, ward abbreviations, measures, and words of everyday English."""
    return lambda word: reader.common(word) or word in drugs or word in abbreviations() or word in everyday()


def _unclear(link: PatientLink, message: str) -> str:
    """A name that nobody, or more than one, has; with the birth date that nobody of that name has."""
    days = [day for birth in read_births(message) for day in birth.days if len(day) == 10]
    return f"{link.text}, born {days[0]}" if days and link.kind == "name" and not link.candidates else link.text


def _patient(link: PatientLink) -> PatientRef:
    match = link.candidates[0]
    born = f", born {match.birth_date}" if link.kind == "name" and match.birth_date and link.by_birth else ""
    name = match.name if not link.exact or link.text[:1].isdigit() else link.text
    return PatientRef(
        id=match.id, name=match.name, label=match.label, sex=match.sex, said=link.text,
        search="" if link.kind == "id" else f"{name}{born}", exact=link.exact,
    )  # fmt: skip


def _drug(link: DrugLink) -> dict[str, Any]:
    members = groups()[link.name][:MEMBERS] if link.how == "group" else []
    return {"said": link.text, "name": link.name, "how": link.how, "members": members}


def _meant(reading: Reading) -> str:
    """Whether a write is "ordered" plainly, "asked" about, "refused", or "unsure"; "" where none is mentioned."""
    others = any(score > SURE for ask, score in reading.asks.items() if ask not in WRITES)
    if not any(reading.asks[ask] > SURE for ask in WRITES) and (others or reading.polarity["refused"] <= PLAINLY):
        return ""
    best = max(reading.polarity, key=reading.polarity.__getitem__)
    if best == "ordered" and reading.asks["may"] > SURE and not reading.asks["note"] > SURE:
        return "unsure"
    return "unsure" if best == "ordered" and reading.polarity["ordered"] < PLAINLY else best


def _orders(message: str, reading: Reading, quoted: Sequence[tuple[int, int]], drugs: DrugNames) -> list[OrderRef]:
    """Each ordered drug with its own dose, route, frequency and instructions.

    A detail belongs to the drug before it; where the first dose stands before the first drug, to the drug behind it.
    What was said once, behind the last drug, holds for all that have nothing of the kind.
    """
    names = _outside(reading, ("rx.drug",), quoted)
    if not names:
        return []
    parts = {field: _outside(reading, (f"rx.{field}",), quoted) for field in ("dose", "route", "freq", "notes")}
    leading = bool(parts["dose"]) and parts["dose"][0].start < names[0].start and len(parts["dose"]) >= len(names)
    owned: list[dict[str, list[Span]]] = [{field: [] for field in parts} for _ in names]
    for field, spans in parts.items():
        for span in spans:
            behind = [at for at, name in enumerate(names) if name.start > span.start]
            owner = behind[0] if leading and field == "dose" and behind else max((behind or [len(names)])[0] - 1, 0)
            owned[owner][field].append(span)
    for field in ("freq", "notes"):
        for mine in owned if len(parts[field]) == 1 else []:
            mine[field] = parts[field]
    return [_order(message, name, mine, drugs) for name, mine in zip(names, owned, strict=True)]


def _frequency(message: str, spans: Sequence[Span]) -> str:
    """What was said of how often, once: "weekly, not daily" is weekly, "od, so once a day" is od."""
    told: list[str] = []
    for span in spans:
        said = said_frequencies(span.text)
        if "not" not in message[: span.start].casefold().split()[-2:] and not (
            said and said <= {each for text in told for each in said_frequencies(text)}
        ):
            told.append(span.text)
    return ", ".join(told)


def _order(message: str, name: Span, mine: dict[str, list[Span]], drugs: DrugNames) -> OrderRef:
    link = link_drug(name.text, drugs)
    typed = name.text.rpartition(" - ")[2] if link.how == "named" else name.text  # "thrush - fluconazole"
    joined = {field: ", ".join(span.text for span in spans) for field, spans in mine.items()}
    return OrderRef(
        said=typed, drug=link.name if link.how != "unknown" else name.text, how=link.how,
        dose=mine["dose"][0].text if mine["dose"] else "", route=joined["route"],
        frequency=_frequency(message, mine["freq"]), notes=joined["notes"],
    )  # fmt: skip


def _allergies(message: str, reading: Reading, quoted: Sequence[tuple[int, int]]) -> list[dict[str, str]]:
    substances, reactions = (_outside(reading, (channel,), quoted) for channel in ("alg.subst", "alg.react"))
    made = []
    for at, span in enumerate(substances):
        until = substances[at + 1].start if at + 1 < len(substances) else len(reactions) and 10**9
        mine = [item.text for item in reactions if len(substances) == 1 or span.start < item.start < until]
        made.append(
            {"substance": span.text, "reaction": ", ".join(mine), "severity": _severity(message, reading, mine)}
        )
    return made


def _loose(message: str, reading: Reading, quoted: Sequence[tuple[int, int]]) -> dict[str, str]:
    """Details without the drug or substance that they belong to: "no, 25 mg"; "actually it was anaphylaxis"."""
    found = {}
    if not _outside(reading, ("rx.drug",), quoted):
        for field, channel in (
            ("dose", "rx.dose"),
            ("route", "rx.route"),
            ("frequency", "rx.freq"),
            ("notes", "rx.notes"),
        ):
            found[field] = " ".join(span.text for span in _outside(reading, (channel,), quoted))
    if not _outside(reading, ("alg.subst",), quoted):
        reactions = [span.text for span in _outside(reading, ("alg.react",), quoted)]
        found |= {"reaction": ", ".join(reactions), "severity": _severity(message, reading, reactions)}
    return {name: value for name, value in found.items() if value}


def _severity(said_all: str, reading: Reading, reactions: Iterable[str]) -> str:
    spans = reading.spans.get("severity", [])
    denied = any("not" in said_all.casefold()[: span.start].split()[-1:] for span in spans)
    word = _closed(_text(reading, "severity"), SEVERITIES)
    said = "" if denied else word
    anaphylaxis = any("anaphyla" in plain(item) for item in reactions)
    return said or ("severe" if anaphylaxis else "")


def _outside(reading: Reading, channels: Sequence[str], places: Sequence[tuple[int, int]]) -> list[Span]:
    """Spans of these channels that do not stand in quoted text, in order of appearance."""
    spans = [span for channel in channels for span in reading.spans.get(channel, [])]
    free = [span for span in spans if not any(start <= span.start < end for start, end in places)]
    if "rx.dose" in channels:
        free = [span for span in free if not span.text.casefold().endswith(NO_DOSE)]
    return sorted(free, key=lambda span: span.start)


def _kind(message: str, reading: Reading, text: Span) -> str:
    """The kind of a note as said ("progress note"), from the reader or from the words beside "note"."""
    around = plain(message.replace(text.text, " ; "))
    named = next((kind for kind in NOTE_KINDS if f" {kind} " in f" {around} "), "")
    read = _text(reading, "note.kind")
    bare = plain(read) in ("", "note", "notes", "entry")
    return named or (UNTYPED_NOTE if bare else f"{read} note" if f"{plain(read)} note" in around else read)


def _status(message: str, reading: Reading) -> str:
    """A trial's recruitment status, where one is asked for."""
    if reading.asks["trial"] <= SURE:
        return ""
    words = plain(message)
    if "not yet" in words:
        return "not yet recruiting"
    said = _closed(_text(reading, "status"), STATUSES)
    return said or ("recruiting" if {"recruiting", "enrolling"} & set(words.split()) else "")


def _dictated(message: str, span: Span, reading: Reading) -> str:
    """A note's text, whole: from the word in which it begins, or the colon just before, to the end of its sentence."""
    others = [
        item
        for channel in ("name", "id", "note.kind", "rx.drug", "alg.subst")
        for item in reading.spans.get(channel, [])
    ]
    start, end = span.start, span.end
    while start and not message[start - 1].isspace() and message[start - 1] not in ':"“':
        start -= 1
    colon = message.rfind(":", 0, start)
    if colon >= 0 and len(message[colon:start].split()) <= 4 and not any(colon < item.start < start for item in others):
        start = colon + 1
    stop = next(
        (
            at
            for at in range(end, len(message))
            if message[at] in ".!?\n" and message[at + 1 : at + 2] in ("", " ", "\n")
        ),
        len(message),
    )
    if not any(end <= item.start < stop for item in others) and len(message[end:stop].split()) <= 4:
        end = stop
    return message[start:end].strip(' \t\n"“”:;,-–—')


def _text(reading: Reading, channel: str) -> str:
    spans = reading.spans.get(channel, [])
    return max(spans, key=lambda span: span.score).text if spans else ""


def _closed(text: str, values: dict[str, str]) -> str:
    """A word as one of few values, by its first letters."""
    return next((values[word[:3]] for word in plain(text).split() if word[:3] in values), "")


def _trial_ids(message: str) -> list[str]:
    words = [word.strip(".,;:()?!").upper() for word in message.split()]
    return [word for word in words if len(word) == 11 and word.startswith("NCT") and word[3:].isdigit()]
