"""Find the orders, notes and stops of a message that the plan has no entry for; and the order of one drug in the place
of another. Pure."""

from collections.abc import Sequence
from itertools import pairwise, takewhile

from docgemma.reading.two_asks import is_bare
from docgemma.state import OrderRef, Request
from docgemma.text.said import asked_parts
from docgemma.text.words import begun_with, listed, names, plain

FEW = 5  # words of a bare question of stopping
TOLD = ("persons", "male", "female", "stop", "questioning", "excluding")  # lists of words before a "stop" that is told


def halts(request: Request, asked: bool) -> list[str]:
    """The clauses by which a named drug is to be stopped or held, or by which that is `asked`: "stop metformin?"."""
    drugs = [plain(drug["said"]) for drug in request["drugs"]]
    noted = " ; ".join(plain(order.get("notes", "")) for order in request["orders"])  # "hold if SBP below 100"
    found = []
    for part in (part for part, marked in asked_parts(request["said"]) if drugs and marked == asked):
        words = ["", *plain(part).split()]
        told = {word for before, word in pairwise(words) if before not in listed("request_words", *TOLD)}
        bare = len(words) == 2 or (names(drugs, part) and not (asked and len(words) > FEW))
        if bare and told & listed("request_words", "to_halt") and plain(part) not in noted:
            found.append(part)
    return found


def unheard_order(request: Request) -> str:
    """The drug of an order, "add X", or of a dose that is to be entered, "write it up if so"; else nothing."""
    dosed = [order["said"] for order in request["orders"] if order["dose"]]
    dosed += [drug["said"] for drug in request["drugs"] if (drug.get("details") or request["details"]).get("dose")]
    verbs = listed("request_words", "to_order")
    begun = [(part, asked) for part, asked in asked_parts(request["said"]) if begun_with(plain(part).split()) in verbs]
    told = begun or names(listed("request_words", "writing_up"), request["said"])
    drugs = [drug["said"] for drug in request["drugs"]]
    named = [drug for drug in drugs if any(drug in part and not asked for part, asked in begun)]  # no dose is told
    return "".join((dosed if told and dosed else named)[:1])


def unheard_note(request: Request) -> bool:
    """Whether a clause gives the text of a note, "then note: ...", that was not read as one."""
    firsts = [part.split()[0] for part, _ in asked_parts(request["said"]) if "note" not in request["asks"]]
    return any(first[-1] == ":" and plain(first) in listed("request_words", "note_heads") for first in firsts)


def is_conditional(request: Request) -> bool:
    """Whether something is to be done if something else holds."""
    return bool(listed("request_words", "conditional") & set(plain(request["said"]).split()))


def in_place(request: Request, considered: Sequence[OrderRef]) -> list[OrderRef]:
    """The one order of a message that begins with it, in the place of another drug, "bisoprolol 2.5 od instead of
    metoprolol", or says nothing else, "labetalol 100 bd so"; [] where anything is asked, denied or told."""
    said = request["said"]
    whole = [order for order in request["orders"] or considered if order["dose"] and order["frequency"]]
    instead = "change" in request["asks"] or names(listed("request_words", "in_place"), said)
    known = {word for one in request["patients"] for word in plain(f"{one['said']} {one['name']}").split()}
    known |= listed("request_words", "ordering", "opening")
    bare = is_bare(said, request, whole, "ordering")
    if request["meant"] or "?" in said or len(whole) != 1 or not (instead or bare) or is_conditional(request):
        return []
    before = takewhile(lambda word: word != plain(whole[0]["said"]).split()[0], plain(said).split())
    begins = all(word in known or not any(map(str.isalpha, word)) for word in before)
    others = {drug["name"] for drug in request["drugs"]} - {whole[0]["drug"]}
    return whole if begins and len(others) == (not bare) else []
