"""What a message changes of the request before it: an order's details or drug, an allergy, a note's words. Pure."""

from itertools import dropwhile, pairwise
from typing import Any, cast

from docgemma.reading.labels import WRITES
from docgemma.rules.instructions import kind_of, merged, parts_of
from docgemma.rules.known import BRIEF, replaced
from docgemma.state import OrderRef, Request
from docgemma.text.courses import AS_WRITTEN
from docgemma.text.frequency import times_per_day
from docgemma.text.rewording import added, reworded
from docgemma.text.said import parted
from docgemma.text.shorthand import expanded
from docgemma.text.words import clinical, listed, names, plain

CORRECTED = frozenset({"patients", "unclear", "drugs", "orders", "allergies", "notes", "measures"})
AS_NEEDED = "as needed"
FEW = 4  # words by which another note is begun
UNLIKE = 20  # times another dose: of another unit
ORDER_DETAILS = ("dose", "route", "frequency", "notes")
LOOSE = frozenset({"rx", "meds", "chat", "gk"})  # asks of details that an order which waits is given


def corrected(request: Request, last: Request) -> Request:
    """The last request with what this message changes of it."""
    new: dict[str, Any] = {field: value for field, value in request.items() if field in CORRECTED and value}
    new |= {"said": request["said"], "meant": last["meant"], "corrects": True}
    if request["patients"] or request["unclear"]:
        new |= {"patients": request["patients"], "unclear": request["unclear"], "owners": {}}
    drug = request["drugs"][-1] if request["drugs"] else None
    if last["orders"] and not (request["details"] or request["orders"] or drug):
        request = replaced(request, details=_stated(request["said"], last["orders"][-1]["dose"]))
    years = {year for one in request["patients"] for year in (one["label"][-10:-6], one["label"][-8:-6])}
    dose = request["details"].get("dose", "")
    if dose in years and names([f"{dose} one", f"born {dose}"], request["said"]):  # "no sorry the 85 one"
        kept = {name: text for name, text in request["details"].items() if name != "dose"}
        request = replaced(request, details=kept)
    details = request["details"]
    if last["orders"] and "rx" in last["asks"] and (details or drug or request["orders"]):
        new["orders"] = [*last["orders"][:-1], changed_order(last["orders"][-1], request)]
    if last["allergies"] and "allergy" in last["asks"] and (details or drug or request["allergies"]):
        changes = {name: details[name] for name in ("reaction", "severity") if name in details}
        words = plain(request["said"]).split()
        meant = len(words) <= BRIEF or listed("request_words", "correcting") & set(words)
        said = drug["said"] if drug and meant else ""  # not of "change her mtx to monday"
        given = request["allergies"][0] if request["allergies"] else {"substance": said}
        given = {name: value for name, value in given.items() if value}
        new["allergies"] = [*last["allergies"][:-1], {**last["allergies"][-1], **given, **changes}]
    if last["notes"] and "note" in last["asks"] and not request["notes"]:
        note = last["notes"][-1]
        new["notes"] = [*last["notes"][:-1], {**note, "note_text": reworded(note["note_text"], request["said"])}]
    found = replaced(last, **new)
    before, after = cast(Any, last), cast(Any, found)
    same = all(before[key] == after[key] for key in ("patients", "unclear", "orders", "allergies", "notes"))
    if set(last["asks"]) & set(WRITES) and same:
        return replaced(found, meant="unsure")  # what is wrong was not understood: the same card is not put up again
    return found


def _stated(said: str, dose: str) -> dict[str, str]:
    """The dose or frequency of a few words that say nothing else: "250 instead of 500", "not bid, tds"."""
    words = plain(said.replace("instead of", "not")).split()
    told = [word for before, word in pairwise(["", *words]) if before != "not"]
    number = [word for word in told if word.replace(".", "", 1).isdecimal()]
    known = {str(short) for entry in clinical("sig")["frequencies"] for short in entry["said"]}
    often = [word for word in told if word in known - listed("request_words", "linking", "stop")]
    old = [word for before, word in pairwise(words) if before == "not" and word.isdecimal() and word not in dose]
    left = {*told, *old} - {*number, *often, "not"} - listed("request_words", "stop", "correcting", "altering", "back")
    found = {"dose": number, "frequency": often}
    return {} if left else {name: some[0] for name, some in found.items() if len(some) == 1}


def of_waiting(request: Request, card: Request) -> Request:
    """A message as a correction of the entry that waits, where it adds to its note, or names nobody and no other drug
    and changes it or tells details: "500 mg for 7 days", "take after meals"."""
    if _adds_to_note(request, card):
        return replaced(request, asks=["fix"], notes=[])
    others = {drug["name"] for drug in request["drugs"]} - {drug["name"] for drug in card["drugs"]}
    if others or request["patients"]:
        return request
    asks, asking, details = request["asks"], request["said"].endswith("?"), request["details"]
    if "change" in asks and not asking:
        asks = [*(ask for ask in asks if ask != "change"), "fix"]
    given = "rx" in asks and request["meant"] == "ordered" and details.get("dose")
    loose = {*ORDER_DETAILS} & {*details} and {*asks} <= LOOSE and not asking and card["orders"]
    if (given or loose) and not (request["orders"] or request["unclear"]):
        asks = [*(ask for ask in asks if ask not in (LOOSE if loose else {"rx"})), "fix"]
    return replaced(request, asks=asks)


def _adds_to_note(request: Request, last: Request) -> bool:
    """Whether a message adds to the note that waits: it says so, or corrects it."""
    said = request["said"]
    another = listed("request_words", "noting_plainly") & {*plain(said).split()[1:FEW]}  # "add a note: ..."
    pointed = names(listed("request_words", "to_the_note"), said) or ("fix" in request["asks"] and not another)
    return bool(last["notes"] and "note" in last["asks"] and request["notes"] and pointed and added(said))


def changed_order(order: OrderRef, request: Request) -> OrderRef:
    """An order with other details, or another drug; as it was where what to change is not sure."""
    changes: dict[str, Any] = {}
    if request["orders"]:  # "oh not enalapril, ramipril 2.5"
        other = [one for one in request["orders"] if one["drug"] != order["drug"]]
        changes = {name: value for name, value in (other or request["orders"])[0].items() if value}
        if changes["how"] == "unknown":  # "change hers to alternate days" names no drug
            changes = {name: value for name, value in changes.items() if name in ORDER_DETAILS}
    told = request["details"]
    if request["drugs"] and not request["orders"]:
        if mine := _named_itself(order, request):
            others = [drug["said"] for drug in request["drugs"] if drug not in mine]
            told = _beside_no_other(told, others, request["said"])
        elif _spoken_of(request["drugs"][-1]["said"], request["said"]):
            return order
        else:
            drug = request["drugs"][-1]
            changes = {"said": drug["said"], "drug": drug["name"], "how": drug["how"]}
    changes |= {name: told[name] for name in ORDER_DETAILS if name in told}
    if _of_same_unit(changes.get("dose", ""), order["dose"]):  # "make it 500": of the unit that was said
        changes["dose"] = f"{changes['dose']} {order['dose'].lstrip('0123456789., ')}".strip()
    if f"{plain(order['drug'])} ".startswith(f"{plain(changes.get('drug', ';'))} "):  # "the metoprolol" is the tartrate
        changes = {name: value for name, value in changes.items() if name in ORDER_DETAILS}
    needed, often = listed("request_words", "as_needed"), changes.get("frequency")
    same, before = changes.get("drug", order["drug"]) == order["drug"], order["frequency"]
    told_so = names(needed | listed("request_words", "always"), request["said"])
    if same and often and names(needed, f"{before} {order['notes']}") and not told_so:
        changes["frequency"] = f"{often} prn"
    elif same and often and expanded(often, "frequencies") == AS_NEEDED and times_per_day(before):  # "prn for pain"
        changes["frequency"] = f"{before} prn"
    if not same:  # has no route or course of the drug before
        often = {"frequency": ""} if "dose" in changes else {}
        return cast(OrderRef, {**order, "route": "", "notes": "", **often, **changes})
    if _part_of_course(order, changes, request["said"]):
        return order
    denied, once = told.get("denied", ""), times_per_day(changes.get("frequency", "")) == 0  # one dose lasts no days
    gone = [kind for kind, is_so in (("route", changes.get("route")), ("length", once)) if is_so]
    notes = parts_of(merged(order["notes"], changes.get("notes", ""), denied))
    changes["notes"] = "; ".join(part for part in notes if kind_of(part) not in gone)
    return cast(OrderRef, {**order, "route": merged(order["route"], "", denied), **changes})


def _named_itself(order: OrderRef, request: Request) -> list[dict[str, Any]]:
    """The order's own drug, where a message names it and refuses none: it stays the one that is ordered."""
    own = {plain(order["drug"]), plain(order["said"])}
    named = [one for one in request["drugs"] if own & {plain(str(one.get(key))) for key in ("said", "name", "generic")}]
    return [] if names(listed("request_words", "not_ordering"), request["said"]) else named


def _spoken_of(drug: str, said: str) -> bool:
    """Whether a message tells what is for another drug, "tonight only for the glargine", and puts none in its place."""
    before = plain(said).partition(plain(drug))[0].split()
    pointed = next(dropwhile(listed("request_words", "pointing").__contains__, reversed(before)), "")
    swapped = listed("request_words", "changing", "beginning", "correcting") & {*plain(said).split()}
    return pointed == "for" and not swapped


def _beside_no_other(details: dict[str, str], others: list[str], said: str) -> dict[str, str]:
    """The details that do not stand in a clause with another drug: "daily folic stays, mtx goes up on monday"."""
    apart = " ".join(clause for clause in parted(said).split("\n") if names(others, clause))
    kept = {name: [part for part in text.split(", ") if part not in apart] for name, text in details.items()}
    return {name: ", ".join(parts) for name, parts in kept.items() if parts}


def _part_of_course(order: OrderRef, changes: dict[str, Any], said: str) -> bool:
    """Whether a message gives a second dose beside the one of the order, or one of several doses of a course that
    stands as written: one field holds neither, so it is not understood."""
    words = [*dropwhile(listed("request_words", "opening").__contains__, plain(said).split())]
    often, turns = changes.get("frequency", ""), listed("sig", "alternating")
    beside = turns & {*words} and not names(turns, often)
    further = bool(words) and words[0] in listed("sig", "following") and " ".join(words[1:])[:1].isdigit()
    if changes.get("dose") and order["dose"] and (beside or further):
        return True
    given, kinds = {"dose", "frequency"} & {*changes}, {kind_of(part) for part in parts_of(changes.get("notes", ""))}
    whole = often == AS_WRITTEN or (len(given) > 1 and not names(listed("sig", "stepping", "titrating"), said))
    return order["frequency"] == AS_WRITTEN and bool(given or {"rest", "length"} & kinds) and not whole


def _of_same_unit(number: str, dose: str) -> bool:
    """Whether a bare number may be of the unit of the dose before: 25 after 250 mg is, 500 after 1 g is not."""
    old = dose[: len(dose) - len(dose.lstrip("0123456789.,"))].replace(",", "")
    bare = all(part.replace(".", "", 1).isdecimal() for part in (number, old)) and "/kg" not in dose
    return bare and float(old) / UNLIKE <= float(number) <= float(old) * UNLIKE
