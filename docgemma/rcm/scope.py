"""What a question is about: one of eight intents, judged on the question alone, and what it names.

A clinical question is never refused by accident: where nothing is sure it is GENERAL_CLINICAL.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, TypedDict, cast, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import create_model

from docgemma.ehr.base import PatientMatch, RecordStore
from docgemma.ehr.names import PARTICLES, query_tokens
from docgemma.errors import ModelError
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.llm.base import LLM, GenConfig, Prompt
from docgemma.paths import data_file
from docgemma.rcm.header import words as header_words
from docgemma.rcm.meaning import embed
from docgemma.rcm.policy_files import load_policies
from docgemma.rcm.policy_names import called, words
from docgemma.rcm.records import Intent, Person, Policy
from docgemma.rcm.sentences import lists
from docgemma.rcm.sides import parts, sides
from docgemma.reading.labels import TOPICS
from docgemma.reading.patients import find_people
from docgemma.reading.reader import Reader
from docgemma.reading.request import read_request
from docgemma.reading.terms import said_in, topics_in
from docgemma.text.drugs import DrugNames
from docgemma.text.words import names, plain

INTENTS: tuple[Intent, ...] = get_args(Intent)
GENERATION = GenConfig(temperature=0.0, max_tokens=32)
REFUSED_BY = 0.15  # by so much OUT_OF_SCOPE leads; with both, 132 of 144 held questions are refused, 0 of 219 wrongly
SURELY = 0.6  # where a payer is named or something of a chart is asked
LEAST = 0.25  # of an intent that is taken in its place
PLAINLY = 0.8
TELLING = 3900  # pieces of the vocabulary that name no service
ASKED: dict[str, Intent] = {"meds": "MEDICATIONS", "alg": "ALLERGIES", "ddi": "INTERACTIONS", "may": "SAFETY_CHECK"}
PAYERS: tuple[Intent, ...] = ("POLICY_CHECK", "DENIAL_RISK")
CLINICAL = frozenset([*TOPICS, "safe", "ddi", "may", "rx", "allergy"])


class Named(TypedDict):
    """A patient whom a question names: who that may be, best first; nobody has this name where it is empty."""

    said: str
    candidates: list[Person]


class Wanted(TypedDict):
    """What a question names; "" and [] where it does not."""

    patients: list[Named]
    payer: str
    drugs: list[str]
    lists: list[Intent]  # medicines or allergies, each where it is plainly asked for
    side: Literal["", "left", "right", "both"]


def intent_of(question: str, llm: LLM, reader: Reader) -> Intent:
    """The intent of a question.

    Args:
        question: alone, before anything of the conversation is put in front of it.
        llm: asked where it is a language model; one that fails makes the question GENERAL_CLINICAL, never refused.
            Where the edge model is configured to come after it, code decides.
    """
    if _of_everyone(question):
        return "OUT_OF_SCOPE"
    read = reader.read(question)
    ordered = read.asks["rx"] > PLAINLY and read.polarity["ordered"] > PLAINLY and not _payers_named(question)
    if ordered and load_drug_names().find(question):
        return "SAFETY_CHECK"  # nothing is ordered here: what speaks against it is told
    if llm.profile == "edge":
        return nearest(question, reader)
    asked = Prompt(system=lists("prompts")["router"], user=f"Question: {question}")
    schema = create_model("Routed", intent=(cast(Any, Literal[INTENTS]), ...))
    try:
        done = llm.structured(asked, schema, GENERATION, node="router")
    except ModelError:
        return nearest(question, reader) if getattr(llm, "ends_with_code", False) else "GENERAL_CLINICAL"
    return cast(Intent, cast(Any, done.value).intent)


def nearest(question: str, reader: Reader) -> Intent:
    """The intent by the labelled questions of data/rcm/questions.yaml: a ridge regression on their meaning."""
    if _policy_named(question):
        return "POLICY_CHECK"
    scores = meaning([question], reader)[0] @ _weights()
    best = INTENTS[int(scores.argmax())]
    second = scores[:-1].max()  # OUT_OF_SCOPE is the last
    payers, told = _payers_named(question), clinical(question, reader)
    if scores[-1] - second >= (SURELY if payers or told else REFUSED_BY) and not (payers and told):
        return "OUT_OF_SCOPE"
    if _payers_named(question) and best not in PAYERS:  # whoever names a payer asks of its policy or its denials
        best = max(PAYERS, key=lambda intent: scores[INTENTS.index(intent)])
    if best == "POLICY_CHECK" and _payers_named(question) and names(lists("questions")["denials"], question):
        return "DENIAL_RISK"
    read = reader.read(question)
    drug = read.spans.get("drug") or read.spans.get("rx.drug")
    if best == "POLICY_CHECK" and not payers and drug and {"may", "rx"} & set(read.asked(PLAINLY)):
        best = "SAFETY_CHECK"  # "may she take acetaminophen, given what is on her record?" names no payer
    plain_asks = set(read.asked(PLAINLY)) - ({"may"} if best == "INTERACTIONS" else set())
    unsafe = best == "SAFETY_CHECK"  # "she has no allergies, so confirm that it is safe": the check is made
    if best in ASKED.values() and not unsafe and len(plain_asks) == 1 and plain_asks <= ASKED.keys():
        return ASKED[plain_asks.pop()]
    if best != "OUT_OF_SCOPE":
        return best
    return INTENTS[int(scores[:-1].argmax())] if second >= LEAST else "GENERAL_CLINICAL"


def clinical(question: str, reader: Reader) -> bool:
    """Whether a question plainly speaks of health care: a part of the body, a procedure, a payer, an ask of a chart."""
    if set(reader.read(question).asked(PLAINLY)) & CLINICAL or parts(question):
        return True
    known = [name for policy in load_policies().values() for name in (policy["payer"], *called(policy))]
    return names(known, question)


def is_question(message: str, reader: Reader) -> bool:
    """Whether a message plainly asks for something of a chart: no answer to what was asked back."""
    return bool(set(reader.read(message).asked(PLAINLY)) & CLINICAL)


def says_nothing(question: str, intent: Intent, reader: Reader) -> bool:
    """Whether a message, read alone, asks for nothing that a chart holds: "ok", "hello", noise."""
    if clinical(question, reader) or topics_in(question) or said_in(question, "measures"):
        return False
    if not any(reader.common(word) for word in plain(question).split()):
        return True
    asked = set(reader.read(question).asked())
    return asked == {"chat"} or (intent == "GENERAL_CLINICAL" and asked <= {"chat", "change", "gk"})


@lru_cache(maxsize=1)
def _weights() -> NDArray[np.float32]:
    """(meaning and a constant, intents), as data/rcm/router.py fits them."""
    weights: NDArray[np.float32] = np.load(data_file("rcm", "router.npy"))
    return weights


def meaning(questions: Sequence[str], reader: Reader) -> NDArray[np.float32]:
    """(n, 2 * 384 + 1): where each question lies, by the encoder's last and an early layer, and a constant.

    Ids say nothing of it. By both layers 340 of 363 held questions get their intent, by the last alone 324.
    """
    bare = [" ".join(word for word in text.split() if word.isalpha() or not _code(word)) or text for text in questions]
    means = np.array([states[1:-1].mean(0) for states in reader.encoder.states_of(bare)])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    return np.concatenate([means, embed(bare), np.ones((len(means), 1))], 1, dtype=np.float32)


def _code(word: str) -> bool:
    return any(map(str.isdigit, word)) and any(map(str.isalpha, word))


def wanted(question: str, *, reader: Reader, drugs: DrugNames, store: RecordStore) -> Wanted:
    """What a question names, linked to what exists. It is read alone: what was said before is the thread's to know.

    Raises:
        StoreError: the record store cannot be reached.
    """
    request = read_request(question, reader=reader, drugs=drugs, store=store)
    sure = [(one["said"], [store.patient(one["id"])]) for one in request["patients"] if not _too_little(one["said"])]
    heads = [(said, said.partition(", born ")[0]) for said in request["unclear"]]
    unclear = [said for said, head in heads if beside_services(head) and not _policy_named(said)]
    sure += [(said, [*find_people(said, store)]) for said in unclear if not _too_little(said)]
    policy = _policy_named(question)
    payers = [policy["payer"]] if policy else _payers_named(question)
    named = sides(question)
    return Wanted(
        patients=[Named(said=said, candidates=[person_of(one) for one in found if one]) for said, found in sure],
        payer=payers[0] if len(payers) == 1 else "",
        drugs=[drug["name"] for drug in request["drugs"]],
        lists=[ASKED[ask] for ask in ("meds", "alg") if ask in reader.read(question).asked()],
        side="both" if len(named) > 1 else cast(Any, next(iter(named), "")),
    )  # fmt: skip


def _too_little(said: str) -> bool:
    """Whether a name is but a year, letters or particles: "y" or "de los" of another language opens nobody's chart."""
    year = said.isdigit() and len(said) == 4 and said[:2] in ("19", "20")
    return year or all(word in PARTICLES or (len(word) == 1 and word.isalpha()) for word in query_tokens(said))


def _policy_named(question: str) -> Policy | None:
    """The policy whose id stands in a question."""
    return next((policy for key, policy in load_policies().items() if key in question.upper()), None)


def _of_everyone(question: str) -> bool:
    """Whether a question wants data of many patients; a payer's rules speak of all of them."""
    wanted = lists("questions")["everyone"]
    ours = [phrase for phrase in wanted if {"our", "my"} & set(phrase.split())]
    by_payer = _policy_named(question) or _payers_named(question)
    return names(ours if by_payer else wanted, question)


def beside_services(said: str) -> set[str]:
    """The words of what was read as a name that are no code, payer, procedure or abbreviation of one.

    None of "L-spine 72148" or "Harborview's" is left, which are nobody; of "delphine marchetti prairie" her name is.
    """
    return set(words(said.replace(",", " ").replace("'s", ""))) - _services()


@lru_cache(maxsize=1)
def _services() -> frozenset[str]:
    policies = load_policies().values()
    named = [code for policy in policies for one in policy["procedures"] for code in one["codes"]]
    named += [name for policy in policies for name in called(policy)]
    named += [name for payer, short in _called().items() for name in (payer, *short)]
    return frozenset(word for name in named for word in words(name))


def _payers_named(question: str) -> list[str]:
    """The payers that a question names, by the first word of their names or the letters of their policies' ids."""
    folded = {*plain(question).replace("'s", "").replace("-", " ").split()}
    return [payer for payer, short in _called().items() if short & folded]


def payer_in(head: str) -> str:
    """The one payer whose whole name stands in the first lines of a document; "" where none or several do."""
    folded = f" {' '.join(plain(head).split())} "
    named = [payer for payer in _called() if f" {plain(payer)} " in folded]
    return named[0] if len(named) == 1 else ""


@lru_cache(maxsize=1)
def _called() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for policy in load_policies().values():
        short = policy["id"].partition("-")[0].casefold()
        found.setdefault(policy["payer"], {plain(policy["payer"]).split()[0]}).add(short)
    return found


def looked_for(question: str, requested: Sequence[str], want: Wanted, reader: Reader) -> list[str]:
    """By what a policy is looked for, in order: the question where it names a service, then what the documents request.

    "Is this covered?" names none; "is botox covered?" names one that must not be answered by another request's policy.
    """
    words = _telling(question, want)
    there = set(plain(" ".join(requested)).replace("-", " ").split())
    same = all(reader.common(word, TELLING) for word in words - there)
    return [*([question] if words or not requested else []), *(requested if same else [])]


def names_service(question: str, want: Wanted, reader: Reader) -> bool:
    """Whether a question holds a word or a code that may name a service: "her right knee" alone names none."""
    coded = any(word.isdigit() and len(word) == len("27447") for word in plain(question).split())
    return coded or any(not (reader.common(word, TELLING) or parts(word)) for word in _telling(question, want))


def _telling(question: str, want: Wanted) -> set[str]:
    """The words of a question beside its patient, its payer and what every such question says."""
    beside = [*(one["said"] for one in want["patients"]), want["payer"], *lists("questions")["general"]]
    said = plain(question).replace("'s", "").replace("-", " ").split()
    doctors = {name for title, name in pairwise(said) if title.rstrip(".") in header_words()["doctors"]}
    words = set(said) - set(plain(" ".join(beside)).split()) - doctors
    return {word for word in words if word.isalpha() and len(word) > 2}


def person_of(match: PatientMatch) -> Person:
    return Person(id=match.id, name=match.name, birth_date=match.birth_date, label=match.label)
