"""Read the missing values of an entry from the answer to a question back; what is not understood is asked again."""

import json
from collections.abc import Mapping
from typing import Any

from docgemma.rules.clarify import MAX_WORDS
from docgemma.state import Clarification, Request
from docgemma.text.clauses import fillers
from docgemma.text.durations import UNITS
from docgemma.text.frequency import times_per_day
from docgemma.text.numbers import NUMBER_WORDS
from docgemma.text.words import begun_with, clinical, listed, names, plain

AGAIN = "Not understood: “{said}”. Nothing of it was taken over.\n{question}"
FEW = 5  # words of a reaction that nothing else knows
DENIED = 3  # words behind "not", and of what a dose is for
COUNTED = "0123456789-x"  # "1-2", "2x"
BESIDE = frozenset({"fix", "find", "ok", "gk", "chat", "oos", "demo", "chart"})  # asks of an answer that gives a value
TRIED = frozenset({"fix", "ok", "gk", "chat"})  # asks of an answer that gives none


def settled(said: str) -> str:
    """An answer without what it takes back itself: "od, not bd" is od, "twice a day no once a day" once a day."""
    words = said.split()
    for at in reversed([at for at, word in enumerate(words) if plain(word) == "not"]):
        ends = [place + 1 for place in range(at + 1, len(words)) if words[place][-1] in ",.;"]
        end = min([len(words), *ends])
        bounds = listed("sig", "no_second_dose", "capping") | listed("request_words", "linking")
        bounds &= {*plain(" ".join(words[at + 1 : end])).split()}
        if at + 1 < end <= at + 1 + DENIED and not bounds:  # "not more than 4 a day" and "not with food" deny no value
            del words[at:end]
    correcting = listed("request_words", "correcting")
    words = _between(words, correcting)  # "sorry, 250 mg", "actually not rash"
    for at in reversed([at for at, word in enumerate(words) if plain(word) in correcting]):
        before, after = " ".join(words[:at]), " ".join(words[at + 1 :])
        if times_per_day(before) is not None and times_per_day(after) and not any(map(str.isdigit, before)):
            return after
    return " ".join(words).strip(" ,;-–")


def _between(words: list[str], empty: frozenset[str]) -> list[str]:
    """The words without those at either end that say nothing."""
    telling = [at for at, word in enumerate(words) if plain(word) not in empty]
    return words[telling[0] : telling[-1] + 1] if telling else []


def asked_again(request: Request, clarification: Clarification, ask: str) -> Clarification | None:
    """The same question with what of the answer was not understood; None where the message is no answer."""
    asks, said = set(request["asks"]) - {ask}, request["said"]
    dropped = request["meant"] == "refused" or names(listed("request_words", "dropping", "declining"), said)
    if dropped or _asks(said) or asks - TRIED or len(said.split()) > MAX_WORDS:
        return None
    question = clarification["question"].rpartition("\n")[2]
    return {**clarification, "question": AGAIN.format(said=said, question=question)}


def read_missing(request: Request, clarification: Clarification, ask: str) -> dict[str, Any]:
    """The missing arguments that a message supplies, where each telling word of it is of one of them; else {}."""
    order: Mapping[str, Any] = request["orders"][0] if request["orders"] else {}
    told, said, missing = request["details"], request["said"], clarification["missing"]
    dose = order.get("dose") or told.get("dose") or (said if said.replace(".", "", 1).isdecimal() else "")
    often = _often(request, order, dose)
    people, drugs = request["patients"][:1], [drug["name"] for drug in request["drugs"]]
    before = [str(item) for item in clarification["args"].get("drug_names") or []] if drugs else []
    values: dict[str, Any] = {"patient_id": "".join(one["id"] for one in people), "dosage": dose, "frequency": often}
    values |= {"drug_names": list(dict.fromkeys([*before, *drugs]))}
    fields, named = missing, [order.get("said"), *(drug["said"] for drug in request["drugs"])]
    if "medication_name" in fields and (called := next(filter(None, named), "")):
        values, fields = values | {"medication_name": called}, [*fields, "dosage", "frequency"]
    found = {field: values[field] for field in fields if values.get(field)}
    if found.keys() & {"dosage", "frequency"}:  # "tds for 7 days"
        notes = [clarification["args"].get("notes"), *((order or told).get(field) for field in ("route", "notes"))]
        found |= {"notes": "; ".join(filter(None, notes))} if any(notes) else {}
    if told.get("reaction") and "reaction" in missing:  # "hives, mild"
        found |= {name: told[name] for name in ("reaction", "severity") if told.get(name)}
    left, asks = _unread(request, clarification, dose), set(request["asks"]) - {ask, *BESIDE}
    once = "frequency" in missing and times_per_day(often) == 0  # "just once"
    doubted = left and (found.keys() & {"dosage", "frequency"} or left & listed("request_words", "correcting"))
    if _asks(said) or doubted or (asks and not once and (left or not found)):
        return {}
    others = [field for field in missing if field not in values and field not in found]
    free = 0 < len(plain(said).split()) <= (FEW if others == ["reaction"] and not people else MAX_WORDS)
    words = {*plain(said).split()}
    first = [word for word in plain(said).split() if word not in listed("request_words", "opening") | {"n"}][:1]
    if listed("request_words", "halting") & {*first} and "medication_name" in missing:
        return {}  # "and stop the lorazepam" names no drug to order
    vague = listed("request_words", "denying") & words or words <= fillers() or any(map(str.isdigit, said))
    if len(others) == 1 and not (found or asks) and free and not (vague and others == ["reaction"]):
        found[others[0]] = said.strip(" .")
    return found


def _unread(request: Request, clarification: Clarification, dose: str) -> set[str]:
    """The telling words of an answer that are of no value that it gives."""
    parts = [request["orders"], request["patients"], request["drugs"], request["details"], clarification["args"]]
    held = {*plain(json.dumps([*parts, dose], ensure_ascii=False)).split()}
    sig, single = clinical("sig"), listed("sig", "occasions", "intervals", "once", "repeated", "counts")
    lists = [*sig["times"].values(), *sig["weekdays"], *(entry["said"] for entry in sig["frequencies"])]
    phrases = single.union(*(map(str, some) for some in lists))
    known = {word for phrase in phrases for word in plain(phrase).split()} | {*NUMBER_WORDS, *UNITS}
    known |= listed("request_words", "linking", "entry_words", "stop", "answer", "as_needed", "always", "opening")
    correcting = listed("request_words", "correcting") | {"not"}
    rate, text = times_per_day(request["said"]), plain(request["said"])
    often, _, purpose = text.partition(" for ")
    if len(purpose.split()) <= DENIED and not correcting & {*purpose.split()}:  # "q4h prn for pain"
        text = often
    words = {*text.split()} - ((held | known | fillers()) - correcting)
    return {word for word in words if not (rate and not word.strip(COUNTED))}


def _asks(said: str) -> bool:
    """Whether a message asks something itself, or what became of an entry: "so what's saved now"; "had hives" is no
    question."""
    entered = names(listed("request_words", "entered"), said) or said.rstrip().endswith("?")
    return entered or (begun_with(plain(said).split()) in listed("request_words", "interrogative"))


def _often(request: Request, order: Mapping[str, Any], dose: str) -> str:
    """How often, as it was read; the answer word for word where it is no whole order and says another rate: "every 12
    hours" is not "every"; "twice" is twice daily."""
    read, text = order.get("frequency") or request["details"].get("frequency") or "", request["said"]
    notes = request["details"].get("notes", "")
    others = [dose, order.get("said"), *notes.split(", "), *(one["said"] for one in request["patients"])]
    for part in filter(None, others):
        text = text.replace(part, " ")
    text = " ".join(_between(text.strip(" ,.").split(), fillers()) or text.split()).strip(" ,;")
    if {*plain(text).split()[-1:]} & listed("sig", "counts"):
        text += " daily"
    rate, once = times_per_day(text), plain(text) in listed("sig", "once")
    if rate is None or (not rate and not once) or (read and rate == times_per_day(read)):
        return read
    return text
