"""Whom a turn is about: by name and birth date, never by name alone where two match. What is unsure is asked."""

from collections.abc import Sequence
from typing import NamedTuple

from docgemma.ehr.base import RecordStore
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.rcm.header import same_name
from docgemma.rcm.records import Document, Identity, Person
from docgemma.rcm.scope import Named, beside_services, person_of
from docgemma.rcm.sentences import HEAD
from docgemma.reading.patients import find_people
from docgemma.rules.clarify import other_sex
from docgemma.text.births import fitting, read_births
from docgemma.text.words import plain


class Settled(NamedTuple):
    """Who it is; or, where `person` is None, what to ask and the choices."""

    person: Person | None
    question: str = ""
    options: tuple[Person, ...] = ()


def settle(named: Sequence[Named], papers: Sequence[Identity], store: RecordStore, before: Person | None) -> Settled:
    """The patient of a turn: as the question names them, else as its documents do, else the conversation's.

    Args:
        named: of the question.
        papers: whom the documents of this turn speak of, each further patient of one as an entry of its own.
        before: the patient of the conversation.

    Raises:
        StoreError: the record store cannot be reached.
    """
    told = [paper for paper in papers if paper["name"]]
    settled = _settled(named, told, store, before)
    for paper in papers:
        if settled.person and not paper["name"] and differs(paper, settled.person):
            said = f"The document speaks of a patient {shown(paper)}, the record of {settled.person['label']}."
            return Settled(None, f"{said} Whom do you mean?", (settled.person,))
    return settled


def _settled(named: Sequence[Named], told: Sequence[Identity], store: RecordStore, before: Person | None) -> Settled:
    found = [one for one in named if one["candidates"] or any(_means(one["said"], paper) for paper in told)]
    named = found or named[:1]  # a code or a clinician that was read as a name has nobody behind it
    if len({plain(one["said"]) for one in named}) > 1:
        meant = tuple(person for one in named for person in one["candidates"])
        return Settled(None, "One patient at a time: whom do you mean?", meant)
    if named:
        return _named(named[0], told, store)
    on_paper = [_of_paper(one, store) for one in told]
    people = list({(one["name"], one["birth_date"]): one for one in on_paper}.values())
    if len(people) == 1:
        twins = [person_of(one) for one in find_people(told[0]["name"], store)] if not told[0]["birth_date"] else []
        if len(twins) > 1:
            return Settled(None, f"Several patients are called {told[0]['name']}, and the document does not say when "
                                 "the patient was born. Whom do you mean?", tuple(twins))  # fmt: skip
        return Settled(people[0])
    if people:
        return Settled(None, "The documents speak of more than one patient. Whom do you mean?", tuple(people))
    if before:
        return Settled(before)
    return Settled(None, "Which patient is this about? Give the full name and the birth date, or the patient's ID.")


def with_name(papers: list[Identity], document: Document, called: Sequence[str]) -> list[Identity]:
    """Whom a document speaks of whose header labels no name: whom the question names, where its first lines do."""
    paper, *others = papers
    head = document["pages"][0]["text"][:HEAD] if document["pages"] else ""
    there, days = set(plain(head).replace(",", " ").split()), {day for one in read_births(head) for day in one.days}
    for name, _, born in (one.partition(", born ") for one in called if not paper["name"]):
        if len(parts := plain(name).replace("'s", "").split()) > 1 and there.issuperset(parts):
            day = paper["birth_date"] or next(iter(days.intersection(born.split(" or "))), "")
            return [{**paper, "name": name, "birth_date": day}, *others]
    return papers


def fits_pronoun(question: str, person: Person, store: RecordStore) -> bool:
    """Whether "his" or "she" of a question that names nobody can mean the open patient."""
    match = store.patient(person["id"]) if person["id"] else None
    return not (match and other_sex(question, match.sex))


def differs(paper: Identity, person: Person) -> bool:
    """Whether a document speaks of somebody else: of another name, or of that name and another birth date."""
    if paper["name"] and not same_name(paper["name"], person["name"]):
        return True
    both = paper["birth_date"] and person["birth_date"]
    return bool(both) and not paper["birth_date"].startswith(person["birth_date"])


def shown(paper: Identity) -> str:
    """A document's patient in words."""
    return ", ".join(filter(None, (paper["name"], paper["birth_date"] and f"born {paper['birth_date']}")))


def _named(one: Named, told: Sequence[Identity], store: RecordStore) -> Settled:
    people = one["candidates"]
    if people:
        called = [one["said"], *(person["name"] for person in people)]
        mine = [paper for paper in told if any(same_name(paper["name"], name) for name in called)]
    else:
        mine = [paper for paper in told if _means(one["said"], paper)]
    days = [paper["birth_date"] for paper in mine if paper["birth_date"]]
    if len(people) > 1 and days:  # the document says which of them
        people = [person for person in people if person["birth_date"] in days]
        if not people:
            said = f"No {one['said']} of the record was born on {days[0]}, as the document says. Whom do you mean?"
            return Settled(None, said, tuple(one["candidates"]))
    if len(people) == 1 and mine and all(differs(paper, people[0]) for paper in mine):  # of that name, not that patient
        said = f"The document speaks of {shown(mine[0])}, the record of {people[0]['label']}. Whom do you mean?"
        return Settled(None, said, (people[0], _stranger(mine[0])))
    if len(people) == 1 and told and not mine:
        stranger = _of_paper(told[0], store)
        said = f"The question is about {people[0]['label']}, the document about {shown(told[0])}. Whom do you mean?"
        return Settled(None, said, (people[0], stranger))
    if len(people) == 1:
        return Settled(people[0])
    if people:
        return Settled(None, f"{len(people)} patients fit {one['said']}. Whom do you mean?", tuple(people))
    if mine:
        return Settled(_of_paper(mine[0], store))
    also = [_of_paper(paper, store) for paper in told]
    beside = f" The document speaks of {shown(told[0])}." if told else ""
    how = "Whom do you mean? Give the full name and the birth date, or the patient's ID."
    return Settled(None, f"No patient {one['said']} was found in the record.{beside} {how}", tuple(also))


def _of_paper(paper: Identity, store: RecordStore) -> Person:
    """The patient of the record whom a document names, by name and birth date; else one without a chart."""
    people = find_people(paper["name"], store)
    found = [match for match in people if same_name(paper["name"], match.name) and not match.guessed]
    if paper["birth_date"]:
        found = [match for match in fitting(found, [paper["birth_date"]]) if match.birth_date]
    return person_of(found[0]) if len(found) == 1 else _stranger(paper)


def _stranger(paper: Identity) -> Person:
    return Person(id="", name=paper["name"], birth_date=paper["birth_date"], label=shown(paper))


def _means(said: str, paper: Identity) -> bool:
    """Whether what a question calls a patient is a document's patient: "Ostrowski R TKA" of Walter Ostrowski, and
    "osterman, born 1963-05-11" of one who was born then. What stands beside the name may only be an initial, a drug, or
    a word of payers and procedures: no other given name, no other birth date."""
    said, _, born = said.partition(", born ")
    if born and paper["birth_date"] and born != paper["birth_date"]:
        return False
    spoken, known = (set(plain(text.replace(",", " ")).replace("'s", "").split()) for text in (said, paper["name"]))
    drugs = load_drug_names()
    beside = {word for word in beside_services(said) - known if len(word) > 1 and not drugs.find(word)}
    named = any(len(word) > 2 for word in spoken & known) or bool(born and paper["birth_date"])
    return same_name(said, paper["name"]) or (named and not beside)
