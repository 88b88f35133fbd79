"""Whom a message means of those spoken of before, and the question back where that is not sure."""

from collections.abc import Set
from itertools import pairwise

from docgemma.ehr.base import PatientMatch
from docgemma.nodes.context import Context
from docgemma.reading.labels import WRITES
from docgemma.reading.owners import sex_meant
from docgemma.rules import clarify, known
from docgemma.rules.patients_meant import patients_meant
from docgemma.state import AgentState, Clarification, Option, Request
from docgemma.text.words import listed, plain


def of_several(request: Request, last: Request, state: AgentState) -> Request:
    """The request after one about several patients: with the one who is meant, else with all of them: the patient who
    is open is not more meant than another. Whom an entry or "him" is for is then asked."""
    others = request["patients"] or request["unclear"]
    if others or len(last["patients"]) < 2 or not patients_meant({**state, "request": request, "tool_results": []}):
        return request
    said = request["said"]
    for note in request["notes"]:
        said = said.replace(note["note_text"], "")
    spoken = listed("request_words", *clarify.SEXES) & set(plain(said).split())
    said = "" if spoken and _of_colleague(state, spoken) else said
    fitting = clarify.among(said, last["patients"], bool(request["trials"] or last["trials"]))
    meant = fitting if len(fitting) == 1 else last["patients"]
    return known.replaced(request, patients=[{**one, "said": "", "search": ""} for one in meant])


def contradicts(state: AgentState, request: Request, context: Context) -> Clarification | None:
    """A question back where a pronoun does not fit the sex of the patient who is open and nobody is named, or a title
    or pronoun that of the one for whom an entry is ordered; and where one of those spoken of before is meant."""
    active, said, asks = state.get("active_patient"), state["message"], set(request["asks"])
    asked = request["patients"] if asks & set(WRITES) or len(request["patients"]) > 1 else []  # a look-up reads nobody
    people = list(filter(None, (context.store.patient(one["id"]) for one in asked)))
    if len(people) == 1 and asks & set(WRITES) and request["meant"] == "ordered":
        one, sex = people[0], people[0].sex
        words = clarify.other_sex(said, sex, request["patients"][0]["said"], "note" in asks)
        behind = {sex_meant(said, said.find(order["said"]), ordered=True) for order in request["orders"]}
        words |= behind & {clarify.SEXES.get(sex)}  # "John Smith's wife is unwell, prescribe her doxycycline"
        codes = [item for item in request["unclear"] if any(map(str.isdigit, item)) and " " not in item]
        question = f"{one.label} is recorded as {sex}, and the message says “{min(words, default='')}”."
        if codes:
            question = f"{one.label} has the ID {one.id}, and the message says {' and '.join(codes)}."
        question += " Is this who is meant? Say yes, or give a name or an ID."
        return _whom(question, people, said) if words or codes else None
    owned = [whose for ask in asks & set(WRITES) for whose in request["owners"].get(ask, [])]
    if request["meant"] == "ordered" and owned and not (any(owned) and all(request["owners"].get("rx", []))):
        question = f"For whom is this entry? Named are: {'; '.join(one.label for one in people)}. Give a name or an ID."
        return _whom(question, people, said)
    open_one, named = state.get("clarification"), request["patients"] or request["unclear"]
    if open_one and open_one["kind"] == "patient" and asks & set(WRITES) and clarify.sexes_in(said) and not named:
        return {**open_one, "query": said}  # "1 g for him then": whom the last message meant is still asked
    pointed = _points_back(request, state.get("request"))
    several = len(people) > 1 and not any(one["said"] for one in request["patients"])  # of the turn before
    sexes = clarify.sexes_in(said)
    people = people if named or not (pointed or sexes) else _spoken_of(state, context)
    people = [] if active and [one.id for one in people] == [active["id"]] else people
    if people and (pointed or asks & set(WRITES) or len(sexes) == 1 if several else pointed and not named):
        question = f"Whom do you mean? Spoken of before: {'; '.join(one.label for one in people)}. Give a name or ID."
        return _whom(question, people, said)
    if named or not active or "note" in asks:
        return None
    patient = context.store.patient(active["id"]) if patients_meant({**state, "request": request}) else None
    wrong = clarify.other_sex(said, patient.sex) if patient else set[str]()
    spoken = [one for one in people[::-1] if patient and one.id != patient.id]
    if not patient or not wrong or (not spoken and _of_colleague(state, wrong)):
        return None
    spoken = [person for person in spoken if person.sex == clarify.SEXES[patient.sex]]
    listing = f" {'; '.join(person.label for person in spoken)} was spoken of before." if spoken else ""
    single = " or choose" if spoken else " or say yes"
    question = f"The open patient is {patient.label}.{listing} Whom do you mean? Give a name or an ID,{single}."
    return _whom(question, [*spoken, patient], said)


def _whom(question: str, people: list[PatientMatch], message: str) -> Clarification:
    return Clarification(
        kind="patient",
        question=question,
        options=[Option(id=one.id, label=one.label) for one in people],
        tool="search_patient",
        args={"name": people[-1].name},
        missing=["patient_id"],
        query=message,
    )


def _of_colleague(state: AgentState, pronouns: Set[str]) -> bool:
    """Whether "he called back, wants losartan" speaks of a colleague, as "he changed it to doxy" always does."""
    texts = [*(turn["user"] for turn in (state.get("history") or [])[-1:]), state["message"]]
    named = listed("request_words", "colleagues") & set(plain(" ".join(texts)).split())
    words = [*plain(state["message"]).split(), ""]
    verbs = {verb for word, verb in pairwise(words) if word in pronouns}
    told = pronouns & {word.removesuffix("'s") for word in words}  # none is in "41F on lithium"
    return bool(told) and verbs <= listed("request_words", "speaking" if named else "prescribing")


def _spoken_of(state: AgentState, context: Context) -> list[PatientMatch]:
    """The last patients of this conversation's look-ups, in its order."""
    calls = [call for turn in state.get("history") or [] for call in turn["tools"]]
    ids = dict.fromkeys(str(call["args"].get("patient_id") or "") for call in calls)
    return [person for who in ids if who and (person := context.store.patient(who))][-6:]


def _points_back(request: Request, last: Request | None) -> bool:
    """Whether a message means somebody spoken of before: "the first chap"; "the other one" may be a drug."""
    things = any(len(one["drugs"]) > 1 or one["trials"] for one in (request, last) if one)
    first, others = listed("request_words", "foremost"), listed("request_words", "latest")
    pairs = pairwise(plain(request["said"]).replace("'s", "").split())
    nouns = [noun for word, noun in pairs if word in first or (word in others and (noun != "one" or word == "other"))]
    return any(noun in listed("request_words", "people") and not (noun == "one" and things) for noun in nouns)
