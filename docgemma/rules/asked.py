"""What a question asks for, by its words: which writes, and whether a record is to be read. Whole words only.

A write is asked for by an order ("prescribe X", "can you start X"), never by a question about one ("should I start
X?"), by a condition ("before starting X") or by its negation ("don't prescribe yet, just check").
"""

import re

from docgemma.rules import asked_words as words
from docgemma.rules.details import doses, frequencies
from docgemma.rules.ids import PATIENT_ID
from docgemma.rules.request import names_note, ordered, request
from docgemma.state import ExtractedEntities


def writes_asked(question: str, entities: ExtractedEntities) -> list[str]:
    """The write tools that a question orders, in the order prescription, allergy, note."""
    question = request(question)
    asked = []
    if _prescribes(question, entities):
        asked.append("prescribe_medication")
    if _allergy(question):
        asked.append("add_allergy")
    if _note(question, "add_allergy" in asked):
        asked.append("save_clinical_note")
    return asked


def writes_possible(question: str, entities: ExtractedEntities) -> list[str]:
    """Write tools that a question might mean though it does not order them in so many words: the model may decide.

    Nothing is possible in a question, nor where a write is refused.
    """
    question = request(question)
    if never_orders(question):
        return []
    possible = []
    if doses(question) and (entities["drug_mentions"] or words.START.search(question)):
        possible.append("prescribe_medication")
    if words.MAYBE_ALLERGY.search(question) and words.KEEPS.search(question):
        possible.append("add_allergy")
    if words.MAYBE_NOTE.search(question):
        possible.append("save_clinical_note")
    return possible


def never_orders(question: str) -> bool:
    """Whether a question asks or refuses, so that no write can be meant by it whatever the model makes of it."""
    question = request(question)
    if words.REFUSES.search(question):
        return True
    polite = words.REQUEST.search(question) and not words.ADVICE.search(question)  # "could you add …?" is an order
    return bool(words.ASKS.search(question)) and not polite


def reads_record(question: str, entities: ExtractedEntities, has_patient: bool) -> bool:
    """Whether the chart of a particular patient is to be read."""
    question = request(question)
    person = bool(entities["patient_ids"] or entities["patient_names"] or has_patient or words.PERSON.search(question))
    if not person:
        return False
    writing = bool(writes_asked(question, entities))
    if any(_is_record(question, match, writing) for match in words.RECORD_NOUN.finditer(question)):
        return True
    if any(not _is_target(question, match) for match in words.OPENS.finditer(question)):
        return True
    if writing and not words.READ_VERB.search(question):
        return False
    if any(not (writing and _is_target(question, match)) for match in words.OWNED_ITEM.finditer(question)):
        return True
    return (
        bool(words.IS_TAKING.search(question))
        or _named_is_on(question, entities)
        or _item_of_patient(question, entities, writing)
    )


def _named_is_on(question: str, entities: ExtractedEntities) -> bool:
    """ "Is Ana Popescu allergic to anything", "is abc-123 on a statin"."""
    who = [re.escape(name) for name in (*entities["patient_names"], *entities["patient_ids"])]
    return bool(who) and bool(
        re.search(
            rf"\b(?:is|are)\s+(?:\w+\.?\s+){{0,2}}?(?:{'|'.join(who)})\s+(?:\w+\s+){{0,2}}?(?:taking|on|allergic)\b",
            question,
            re.IGNORECASE,
        )
    )


def anonymous(question: str) -> bool:
    """Whether "the patient" is meant without saying who: nobody can be searched for."""
    return bool(
        re.search(r"\b(?:this|the|my|that|our|a)\s+(?:\w+\s+)?patient\b|\bpatient['’]s\b", question, re.IGNORECASE)
    )


def _prescribes(question: str, entities: ExtractedEntities) -> bool:
    if any(ordered(question, match.start()) for match in words.PRESCRIBE.finditer(question)):
        return True
    drug = bool(entities["drug_mentions"] or doses(question))
    if drug and any(ordered(question, match.start()) for match in words.PUT_ORDER_IN.finditer(question)):
        return True
    for pattern in (words.WANTED, words.PASSIVE):
        if doses(question) and any(ordered(question, match.start()) for match in pattern.finditer(question)):
            return True
    if _bare_order(question, entities):
        return True
    for match in words.START.finditer(question):
        rest = question[match.end() : match.end() + 120]
        if words.NOT_MEDICATION.match(rest) or (
            match.group().lower() == "order"
            and words.IN_ORDER.search(question[max(0, match.start() - 20) : match.start()])
        ):
            continue
        verb = match.group().lower()
        meant = (
            drug if verb in ("give", "put", "resume", "begin", "add") else drug or words.MEDICATION_WORD.search(rest)
        )
        if verb == "put" and not _puts_on(rest, entities):
            continue
        if verb in ("give", "begin", "add") and not doses(rest):
            continue
        if verb == "add" and not _drug_first(rest, entities):
            continue
        if meant and ordered(question, match.start()):
            return True
    return False


def _bare_order(question: str, entities: ExtractedEntities) -> bool:
    """ "40 mg of furosemide every morning for abc-123": a drug, a dose, how often and for whom, and nothing else."""
    said = entities["patient_ids"] and entities["drug_mentions"] and doses(question) and frequencies(question)
    return bool(said) and not (words.ASKS.search(question) or words.HAS_HAD.search(question))


def _puts_on(rest: str, entities: ExtractedEntities) -> bool:
    """Whether somebody is put on a drug: "put her on sertraline", not "put sertraline on her allergy list"."""
    what = re.search(r"\bon\b(.*)", rest, re.IGNORECASE | re.DOTALL)
    if not what:
        return False
    said = what[1].casefold()
    return any(name.casefold() in said for name in entities["drug_mentions"]) or bool(doses(what[1]))


def _drug_first(rest: str, entities: ExtractedEntities) -> bool:
    """Whether the object is a drug itself: "add aspirin 75 mg", not "add a note: had aspirin 75 mg" nor an allergy."""
    drug = any(rest.casefold().strip().startswith(name.casefold()) for name in entities["drug_mentions"])
    return drug and not words.MAYBE_ALLERGY.search(rest)


def _allergy(question: str) -> bool:
    if any(ordered(question, match.start()) for match in words.ALLERGY.finditer(question)):
        return True
    return any(
        ordered(question, match.start("verb"))
        for pattern in (words.ALLERGY_THEN, words.REACTED, words.REACTED_THEN)
        for match in pattern.finditer(question)
    ) or any(ordered(question, match.start()) for match in words.ALLERGY_LIST.finditer(question))


def _note(question: str, allergy: bool) -> bool:
    for match in words.NOTE.finditer(question):
        if (names_note(match) or not allergy) and ordered(question, match.start()):
            return True
    return False


def _is_record(question: str, match: re.Match, writing: bool) -> bool:
    word = match.group().lower()
    before, after = question[: match.start()][-60:], question[match.end() : match.end() + 40]
    verb = word in ("record", "chart", "records", "charts") and words.RECORD_VERB_BEFORE.search(before)
    if verb and (words.OBJECT_AFTER.match(after) or (writing and _begins_write(question, match.start()))):
        return False  # "record an allergy", "record sulfa as an allergy"
    if writing and word == "summary" and before.casefold().endswith("discharge "):
        return False  # the note to be written
    return not (writing and _is_target(question, match))


def _begins_write(question: str, at: int) -> bool:
    """Whether the word here is the verb of an allergy or a note, with nothing else named before that."""
    found = [pattern.match(question, at) for pattern in (words.ALLERGY, words.NOTE)]
    return any(match and not re.search(r",|\band\b", match.group()) for match in found)


def _is_target(question: str, match: re.Match) -> bool:
    """Where a write goes: "to his chart", "in the patient's record"."""
    return bool(words.TARGET_BEFORE.search(question[: match.start()][-60:]))


def _item_of_patient(question: str, entities: ExtractedEntities, writing: bool) -> bool:
    """ "labs for abc-123", "the medications of John Smith"."""
    names = {word.casefold() for name in entities["patient_names"] for word in name.split()}
    for match in words.ITEM_OF.finditer(question):
        if (writing and _is_target(question, match)) or re.search(
            r"\b(?:order|send|draw|repeat)\s+(?:\w+\s+){0,2}$", question[: match.start()][-40:], re.IGNORECASE
        ):
            continue
        who = match["who"].casefold().rstrip("'’s")
        following = question[match.end("who") : match.end("who") + 40]
        if (
            PATIENT_ID.match(match["who"])
            or who in names
            or (not who and match.group().endswith(("him", "her", "them")))
        ):
            return True
        if who == "patient" and not following.startswith("s"):
            return True
    return False
