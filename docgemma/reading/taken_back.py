"""A message without what it takes back itself: a drug that it drops, refuses or stops, beside one that is ordered."""

from collections.abc import Sequence

from docgemma.reading.drugs import DrugLink
from docgemma.reading.marked import Marked
from docgemma.text.clauses import masked
from docgemma.text.said import CLAUSE_ENDS
from docgemma.text.words import listed, plain


def behind_dropped(message: str, drugs: Sequence[str]) -> str:
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


def without_refused(message: str, drugs: Sequence[DrugLink]) -> str:
    """A message without the clause that refuses one of its drugs, "not the ibuprofen", where the other one is ordered;
    "" where there is none, or where what follows may be refused too."""
    ended = message.translate(CLAUSE_ENDS).replace(":", "\n").replace(" but ", "\n    ")
    for drug in drugs:
        start, end = _clause(ended, drug)
        lead, rest = plain(message[start : drug.start]), plain(message[end:]).split()
        refused = any(f"{lead} ".startswith(f"{phrase} ") for phrase in listed("request_words", "not_ordering"))
        ordered = listed("request_words", "ordering") & {*rest[:3]} and {*rest[:1]} - listed("request_words", "joining")
        if refused and len(drugs) > 1 and (ordered or drugs[-1].start < end):
            return message[:start] + message[end:]
    return ""


def is_new(marked: Marked) -> bool:
    """Whether nothing is changed by an order: "change every 72 h" tells how often; "sorry, start X" begins anew."""
    message, drugs = marked.message, marked.spans("rx.drug")
    words = plain(message[: drugs[0].start]).split() if drugs else []
    begun = {*words[-1:]} & listed("request_words", "beginning") and listed("request_words", "correcting") & {*words}
    changes = listed("request_words", "changing", "altering", "halting", "stopping", "handling") | {"instead"}
    often = [span.start for span in marked.spans("rx.freq") if plain(message[: span.start]).split()[-1:] == ["change"]]
    places = [(message.casefold().rfind("change", 0, at), at) for at in often]
    told = masked(message, [(0, drugs[0].start)] if begun else places)
    return bool(begun or often) and not changes & {*plain(told).split()}


def _clause(ended: str, drug: DrugLink) -> tuple[int, int]:
    """Where the clause of a drug begins and ends in a message with an end of line behind each."""
    return ended.rfind("\n", 0, drug.start) + 1, ended.find("\n", drug.end) % (len(ended) + 1)
