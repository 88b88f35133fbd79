"""The orders of a message, each with its own details."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import cast

from docgemma.reading.allergies import reactions_of, severity_of
from docgemma.reading.drugs import link_drug
from docgemma.reading.marked import Marked, denied, found_at, of_drug_behind, pieces_of, tells_value, within
from docgemma.reading.reader import Span
from docgemma.reading.terms import measure_said, said_in
from docgemma.state import OrderRef
from docgemma.text.births import read_births
from docgemma.text.clauses import EDGES, masked, widened
from docgemma.text.courses import LONGEST, TIMES, pointed, two_doses
from docgemma.text.drugs import DrugNames
from docgemma.text.durations import duration, durations, follow_ups
from docgemma.text.frequency import RATE, said_frequencies, times_per_day
from docgemma.text.numbers import ROMAN, quantities
from docgemma.text.words import clinical, listed, plain

LONG_PAST = 365  # days; no order begins so long ago
FEW = 4  # words of a message that says little beside an instruction
FORMS = {"tablet", "capsule", "puff", "drop"}  # units that are counted
DETAILS = {"dose": "rx.dose", "route": "rx.route", "frequency": "rx.freq", "notes": "rx.notes"}


def read_orders(marked: Marked, drugs: DrugNames) -> list[OrderRef]:
    """Each ordered drug with its own dose, route, frequency and instructions.

    A detail belongs to the drug before it; where the first dose stands before the first drug, to the drug behind it.
    A frequency or instruction that was said once, and not between two drugs, holds for all.
    """
    parts = _details(marked)
    ordered = pieces_of(masked(marked.message, _ordered_by(marked)), marked.spans("rx.drug"))  # "TORB kcl"
    ordered = [span for span in ordered if len(span.text) > 1]  # "vit d 22", "K 5.3"
    dosed = [span for span in marked.spans("drug") if marked.message[span.end :].lstrip()[:1].isdigit()]
    free = masked(marked.message, [(span.start, span.end) for span in ordered])
    others = [span for span in dosed if span.text in drugs and free[span.start : span.end] == span.text]
    ordered = sorted([*ordered, *others], key=lambda span: span.start) if ordered else []  # has its details for itself
    called = [range(*place) for place in marked.people]  # "clexane bridging benali 1 mg/kg"
    names = [span for span in ordered if span.text in drugs or not any(span.start in place for place in called)]
    after = names[0].end if len(names) == 1 else len(marked.message)
    if any(span.start > after and not marked.message[after : span.start].strip() for span in parts["dose"]):
        for kind in ("dose", "frequency"):  # "calpro 640, budesonide 9 mg": no dose stands before a drug and behind it
            near = [it for it in parts[kind] if it.end + 1 == names[0].start and _counted(it.text) == (kind == "dose")]
            parts[kind] = [*near, *(one for one in parts[kind] if one.start > after)]  # "stat aspirin 300 mg"
    leading = bool(names and parts["dose"]) and parts["dose"][0].start < names[0].start
    leading = leading and len(parts["dose"]) >= len(names)
    owned: list[dict[str, list[Span]]] = [{field: [] for field in parts} for _ in names]
    for field, spans in parts.items() if names else ():
        once = field in ("frequency", "notes") and len(spans) == 1
        once = once and not names[0].start < spans[0].start < names[-1].start
        once = once and not _of_last(spans[0].text)
        for span in spans:
            behind = [at for at, name in enumerate(names) if name.start > span.start]
            owner = behind[0] if leading and field == "dose" and behind else max((behind or [len(names)])[0] - 1, 0)
            for mine in owned if once else [owned[owner]]:
                mine[field].append(span)
    between = [plain(marked.message[name.end : after.start]).split()[-2:] for name, after in pairwise(names)]
    corrected = [  # "azithro 500.. no, doxy 100 bd": nobody gives the dose of a drug that is refused
        bool(mine["dose"] and listed("request_words", "correcting") & {*words})
        for words, mine in zip(between, owned[1:], strict=True)
    ]
    kept = [item for item, gone in zip(zip(names, owned, strict=True), [*corrected, False], strict=False) if not gone]
    return [_order(marked, name, mine, drugs) for name, mine in kept if name not in others]


def _of_last(instruction: str) -> bool:
    """Whether an instruction is of the drug before it alone: it has an amount, "increase to 5", not "for 5 days"."""
    return bool({item.unit for item in quantities(instruction)} - {*TIMES[1:]}) and not durations(instruction)


def considered_doses(marked: Marked, drugs: DrugNames) -> dict[str, OrderRef]:
    """The details of each of several drugs that are asked about and not ordered: "paracetamol 1 g qds + ibuprofen 400
    tds, happy?"."""
    spans = marked.reading.spans
    if spans.get("rx.drug") or len(spans.get("drug", [])) < 2:
        return {}
    reading = replace(marked.reading, spans={**spans, "rx.drug": spans["drug"]})
    read = read_orders(replace(marked, reading=reading), drugs)
    return {order["said"]: order for order in read if order["dose"]}


def _ordered_by(marked: Marked) -> list[tuple[int, int]]:
    """Where it stands that an order was given by mouth and read back, and by whom, "TORB", "dr patel"; and when what is
    to be looked at again behind it."""
    ordered = min((start for start, _ in marked.places("rx.drug")), default=len(marked.message))
    told = [place for place in follow_ups(masked(marked.message, marked.quoted)) if place[0] > ordered]
    told += [(span.start, span.end) for span in found_at(marked, listed("request_words", "read_back"))]
    held = masked(marked.message, [*marked.people, *marked.places("rx.drug", "drug", "name", "id")])
    for title in found_at(marked, listed("request_words", "prescribers")):
        name = (held[title.end :].lstrip(". ").split("\n")[0].split() or [""])[0].rstrip(EDGES)
        if held[title.start : title.end] == title.text and name.isalpha():
            told.append((title.start, marked.message.index(name, title.end) + len(name)))
    return told


def _details(marked: Marked) -> dict[str, list[Span]]:
    """The marked details, of no birth date and no name, each instruction with the words of its clause that nothing else
    holds. A course has its length apart ("tid x10 d"), and what is no frequency beside one is an instruction ("T6")."""
    given = _ordered_by(marked) if marked.spans("rx.drug") else []
    others = [*marked.people, *given, *marked.places("rx.drug")]  # "PEG 3350 17 g"
    message = masked(marked.message, [*_birth_dates(marked.message), *others, *_before_arrow(marked)])
    apart = [place for place in durations(message) if not any(a <= place[0] < b for a, b in marked.quoted)]
    found = {field: pieces_of(message, marked.spans(channel)) for field, channel in DETAILS.items()}
    said = [phrase for phrases in clinical("sig")["times"].values() for phrase in phrases]
    rates = [*found_at(marked, said), *(Span(one.group(), *one.span(), 1) for one in RATE.finditer(message))]
    found["frequency"] = [_whole_rate(span, rates, found["dose"]) for span in found["frequency"]]
    found["dose"] = [one for one in found["dose"] if not within(one, found["frequency"])]  # "6 monthly" is no dose
    begins = {span.end + 1 for span in marked.spans("rx.drug")}  # "folic acid 5 weekly"
    numbers = [span for span in found["notes"] if span.text.isdecimal() and span.start in begins]
    whole = [_whole_dose(message, span) for span in sorted([*found["dose"], *numbers], key=lambda span: span.start)]
    behind = [(span, f"{span.text} {message[span.end :]}".casefold().split()[:4]) for span in whole]
    amount = [span for span, words in behind if "dose" not in words or quantities(span.text)]
    found["dose"] = [span for span in amount if not within(span, whole)]  # "half the dose" is none
    values = [span for span in found["notes"] if measure_said(plain(span.text)) and tells_value(message[span.end :])]
    found["denied"] = [span for span in found["route"] if denied(marked.message, span)]
    found["route"] = [span for span in found["route"] if span not in found["denied"]]
    for field in ("route", "notes"):  # "10 U", "weight 70"
        found[field] = [span for span in found[field] if not within(span, whole) and span not in [*whole, *values]]
    message = masked(message, apart)
    often = pieces_of(masked(message, [(a.start, a.end) for a in found["dose"] if "/" in a.text]), found["frequency"])
    often = [one for one in often if not (one.text.isdecimal() and within(one, [*whole, *found["notes"]]))]  # "1/12"
    rates = [one for one in often if times_per_day(one.text) is not None or one.text.isalpha()]
    known = [one for one in rates if plain(one.text) not in listed("sig", "occasions")]  # "daily with dinner"
    known = known or [Span(message[a:b], a, b, 1) for a, b in (_led(message, (one.start, one.end)) for one in often)]
    now = [span for span in marked.spans("rx.freq") if span.text.casefold() == "now"]
    at_once = now if {plain(one.text) for one in known} - {"now"} else []  # "now + q4 prn"
    message = masked(message, [(span.start, span.end) for span in known])
    found["dose"] = [(pieces_of(message, [span]) or [span])[0] for span in found["dose"]]  # "1g four" times daily
    said = found_at(marked, listed("sig", "occasions"))
    loose = [[one, *(part for part in said if within(one, [part]))] for one in pieces_of(message, found["notes"])]
    notes = [max(spans, key=lambda span: len(span.text)) for spans in loose]  # "empty" stomach
    notes += [*(one for one in often if not within(one, known) and one not in known), *at_once]
    free = masked(message, [(span.start, span.end) for span in notes])
    brief = len(message.split()) <= FEW and any(_led(free, (one.start, 0))[0] < one.start for one in said)
    notes += pieces_of(free, [one for one in said if (brief or begins) and not of_drug_behind(marked, one)])
    told = [(span.start, span.end) for span in notes]
    rest = masked(message, [*told, *marked.places("rx.drug", "drug", "name", "id", "rx.dose", "rx.route")])
    wide = [*apart, *(widened(rest, place) if marked.spans("rx.drug") else _led(rest, place) for place in told)]
    wide = [(a, b) for a, b in wide if not (message[a:b].isdecimal() and message[:a].endswith(" not "))]  # "5 not 7"
    wide = [*given, *(wide if sum(end - start for start, end in wide) <= LONGEST else [*apart, *told])]
    return {**found, "frequency": known, "notes": [Span(marked.message[a:b], a, b, 1) for a, b in sorted(wide)]}


def _led(text: str, place: tuple[int, int]) -> tuple[int, int]:
    """An instruction with the prepositions right before it, "starting on monday"; "to 7 days" changes it: none."""
    leads = (listed("request_words", "linking") | listed("sig", "starting")) - listed("sig", "ranging", "from_to")
    start = place[0]
    while text[:start].endswith(" ") and plain(word := text[:start].split(" ")[-2]) in leads:
        start -= len(word) + 1
    return start, place[1]


def _whole_rate(said: Span, rates: Sequence[Span], doses: Sequence[Span]) -> Span:
    """How often with the rest of its phrase: "q12" weeks, "alt" days, 6 "monthly"; "10 weekly" may be a dose, and
    "2 qid" is as often as "qid"."""
    rest = next((said.text[dose.end - said.start :].lstrip() for dose in doses if dose.start == said.start), "")
    if rest and times_per_day(rest) == times_per_day(said.text):
        return Span(rest, said.end - len(rest), said.end, said.score)
    whole = [one for one in rates if one.start == said.start or (one.end == said.end and " monthly" in plain(one.text))]
    return max([said, *whole], key=lambda one: len(one.text))


def _before_arrow(marked: Marked) -> list[tuple[int, int]]:
    """The dose that another replaces, "1 tab bd -> 2 tabs bd"; none where it has its length, or a third follows."""
    message = marked.message
    arrows = [(message.find(mark), mark) for mark in listed("sig", "arrows") if mark in message]
    at, mark = min(arrows, default=(0, ""), key=lambda arrow: (arrow[0], -len(arrow[1])))
    after = max((start for start, _ in marked.places("rx.drug", "drug") if start < at), default=at)
    old = [start for start, _ in marked.places("rx.dose") if after < start < at]
    new = message[at + len(mark) :].strip()
    course = any(one in new for _, one in arrows) or any(duration(word) for word in message[after:at].split())
    return [(old[0], at + len(mark))] if old and new[:1].isdigit() and not course else []


def _whole_dose(message: str, dose: Span) -> Span:
    """A dose with the lower one of a range, "30 to 60 mg", and with the unit behind a bare number, "10 U"."""
    before, unit = message[: dose.start].split(), "".join(message[dose.end :].split()[:1]).strip(EDGES)
    start, end, (low, to) = dose.start, dose.end, ["", "", *before][-2:]
    ends = [item.value for item in quantities(f"{low} ; {dose.text.split()[0]}")]
    changed = listed("request_words", "altering", "changing") | listed("sig", "from_to")
    ranged = to.casefold() in listed("sig", "ranging") and low.replace(".", "", 1).isdecimal() and ends == sorted(ends)
    if ranged and not changed & {*plain(" ".join(before)).split()}:
        start = message.rindex(low, 0, start)
    start = message.rindex(to, 0, start) if to.casefold() in ROMAN and _counted(f"{to} {dose.text}") else start  # "ii"
    units = {item.unit for item in quantities(f"{dose.text} {unit}")} - {*TIMES}
    if dose.text.isdecimal() and units and unit.casefold() not in clinical("request_words")["no_dose"]:
        end = message.index(unit, end) + len(unit)
    rate = message[end:].split()[0].rstrip(EDGES) if message[end:].startswith("/") else ""  # "21 mg/24h"
    if {item.unit for item in quantities(f"1 {rate[1:].lstrip('0123456789')}")} == {"hour"}:
        end += len(rate)
    return Span(message[start:end], start, end, dose.score)


def _birth_dates(message: str) -> list[tuple[int, int]]:
    """Where days stand that are long past: a patient's birth, and no day of an order."""
    dated = [birth for birth in read_births(message) if birth.kind in ("stated", "date")]
    past = (date.today() - timedelta(days=LONG_PAST)).isoformat()
    return [(birth.start, birth.end) for birth in dated if all(day < past for day in birth.days)]


def _order(marked: Marked, name: Span, mine: dict[str, list[Span]], drugs: DrugNames) -> OrderRef:
    message, people = marked.message, [*marked.people, *marked.places("name", "id")]
    people += [place for place in marked.places("rx.drug", "drug") if place[0] > name.start] + _before_arrow(marked)
    link = link_drug(name.text, drugs)
    lead = name.text.casefold().partition(link.name.casefold())[0] if link.how == "named" else ""
    typed = name.text[len(lead) :] if lead.endswith(" - ") or said_in(lead, "uses") else name.text  # "pain codeine"
    drug = link.name if link.how != "unknown" else name.text
    told = {"said": typed, "drug": drug, "how": link.how, **_given(message, mine)}
    for a, b in pairwise(mine["dose"][:2]):  # "30/500 ii tabs", "2 tabs ramipril 5 mg"
        if _counted(a.text) ^ _counted(b.text) and masked(message, [(name.start, name.end)])[a.end : b.start].isspace():
            told["dose"] = " ".join(sorted((a.text, b.text), key=_counted))
    told["dose"] = told["dose"] or next((word for word in name.text.split() if word.endswith("%")), "")  # "5% patch"
    weight = told_weight(message) if "/kg" in told["dose"].replace(" ", "") and len(marked.people) < 2 else ""
    ends = [name.end, *(span.end for span in mine["dose"][:1])]
    forms = {form for end in ends if (form := _release(message[end:], end == name.end)) not in told["notes"].split()}
    told["notes"] = ", ".join(filter(None, [*forms, _of_one_drug(told["notes"], drugs).removeprefix("'s "), weight]))
    starts = [name.end, *(span.start for span in mine["dose"][:1] if span.start > name.end)]
    courses = [two_doses(masked(message, people)[start:]) for start in starts]
    told["frequency"] = told["frequency"] or _at_once(message, mine)
    return cast(OrderRef, told | next(filter(None, courses), {}))


def _at_once(message: str, mine: dict[str, list[Span]]) -> str:
    """How one dose is ordered, behind its amount and route: "1 mg iv now", "20 iv push", "1 g iv over 10"."""
    told = [span for field in ("dose", "route") for span in mine[field]] if mine["dose"] and mine["route"] else []
    behind = [*plain(message[max((span.end for span in told), default=len(message)) :]).split()[:3], "", ""]
    by_vein = {plain(span.text) for span in mine["route"]} & listed("sig", "by_vein")
    infused = by_vein and behind[0] == "over" and behind[1][:1].isdigit() and not durations(" ".join(behind))
    return "once" if infused else clinical("sig")["at_once"].get(behind[0], "")


def _release(behind: str, of_name: bool) -> str:
    """How a tablet releases its drug, right behind its name or dose: "100 mg MR"; "2.5 mg cr 140" is a creatinine."""
    word, after = [*behind.split()[:2], "", ""][:2]
    fits = behind[:1] == " " and plain(word) in listed("sig", "released") and (of_name or not after[:1].isdigit())
    return word.strip(EDGES) if fits else ""


def _of_one_drug(notes: str, drugs: DrugNames) -> str:
    """Instructions up to another drug with its dose: "5/7 and pred 40" is "5/7"."""
    words, linking = notes.split(), listed("request_words", "linking")
    for at, (word, after) in enumerate(pairwise(words)):
        if word.isalpha() and after[0].isdigit() and link_drug(word, drugs).how in ("named", "short"):
            return " ".join(words[: at - 1] if at and words[at - 1] in linking else words[:at])
    return notes


def _given(message: str, mine: dict[str, list[Span]]) -> dict[str, str]:
    """The details of an order as said: the first dose, how often once, every route and instruction."""
    told = {field: ", ".join(span.text.strip(EDGES) for span in mine[field]) for field in ("route", "notes")}
    dose, second = [*(span.text for span in mine["dose"][:2]), "", ""][:2]
    if _is_strength(dose) and {item.unit for item in quantities(second)} == {"ml"}:
        dose = f"{second} ({dose})"  # "10 mg/5 ml soln, 5 ml"
    dose += "%" if dose and message[mine["dose"][0].end :].startswith("%") else ""  # "lidocaine 5% patch"
    return {"dose": pointed(dose), **told, "frequency": _frequency(message, mine["frequency"])}


def _counted(dose: str) -> bool:
    """Whether a dose says how many, "2 puffs", "ii tabs", and nothing of how much is in them."""
    return bool(units := {item.unit for item in quantities(dose)}) and units <= FORMS


def _is_strength(dose: str) -> bool:
    """Whether a dose says how much of a liquid holds it, "10mg/5ml"."""
    _, mark, volume = dose.partition("/")
    return bool(mark) and {item.unit for item in quantities(f"1 {volume}" if volume.isalpha() else volume)} == {"ml"}


def told_weight(message: str) -> str:
    """The weight in kg that a message tells, "weight 22 kg", "weight 20 or 22 kg"; "" where it tells none."""
    words = [word.strip(",;:()?!").rstrip(".") for word in message.casefold().split()]
    units, found = clinical("units")["person"]["weight"], set()
    for at, word in enumerate(words):
        number = word.rstrip("abcdefghijklmnopqrstuvwxyz")
        unit = word[len(number) :] or "".join(words[at + 1 : at + 2])
        changes = listed("request_words", "weight_changes") & {*words[max(at - 2, 0) : at]}
        if unit in units and number.replace(".", "", 1).isdecimal() and not changes:
            found.add(round(Decimal(number) * Decimal(str(units[unit])), 1).normalize())
    return f"weight {' or '.join(f'{kg:f}' for kg in sorted(found))} kg" if found else ""


def _frequency(message: str, spans: Sequence[Span]) -> str:
    """What was said of how often, once: "weekly, not daily" is weekly, "od, so once a day" is od."""
    told: list[str] = []
    empty = listed("request_words", "pointing", "beside_change")  # "once then", "once for the fever"
    for span in spans:
        words = span.text.split()
        while words and plain(words[-1]) in empty:
            words.pop()
        said, before = said_frequencies(span.text), said_frequencies(", ".join(told))
        if words and not denied(message, span) and not (said and said <= before):
            told.append(" ".join(words))
    return ", ".join(told)


def loose_details(marked: Marked) -> dict[str, str]:
    """Details without the drug or substance that they belong to: "no, 25 mg"; "actually it was anaphylaxis"."""
    found, parts = dict[str, str](), {} if marked.spans("rx.drug") else _details(marked)
    pieces = {plain(span.text) for span in parts.get("frequency", [])} & listed("sig", "no_frequency")
    if parts and not pieces:  # "repeat after 5 min": a piece of an instruction is none
        parts["dose"] *= not all(denied(marked.message, span) for span in parts["dose"])  # "not the 10 mg"
        parts["notes"] = [span for span in parts["notes"] if not span.text.isdecimal()]  # "make it 7"
        doses = [pointed(span.text) for span in parts["dose"]]
        bare = len(doses) > 1 and not any(map(str.isalpha, "".join(doses)))  # "on 5 bd, should he be on 2.5": which?
        found = _given(marked.message, parts) | {"dose": "" if bare else " ".join(doses)}
        found["denied"] = ", ".join(span.text for span in parts["denied"])
        if doses and not marked.spans("drug"):
            found |= two_doses(masked(marked.message, marked.people)[parts["dose"][0].start :])
    if not marked.spans("alg.subst"):
        reactions = [text for _, text in reactions_of(marked)]
        severity = severity_of(marked, reactions, range(len(marked.message)))
        found |= {"reaction": ", ".join(reactions), "severity": severity}
    return {name: value for name, value in found.items() if value}
