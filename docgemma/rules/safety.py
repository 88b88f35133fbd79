"""The safety gate before a write: what the record says against an order. It warns; a person decides.

Every check that could not be made is itself a finding: a short list of findings must never mean that nobody looked.
Not covered: renal and hepatic dosing, pregnancy, children.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from docgemma.rules.drug_classes import CROSS, SACUBITRIL, DrugClass, classes_of, classes_said
from docgemma.rules.drugs import DrugNames
from docgemma.rules.numbers import NUMBER_WORDS, quantities, said_frequencies

if TYPE_CHECKING:  # plain data; rules import nothing that could do I/O
    from docgemma.knowledge.base import Interaction

RANK = ("contraindicated", "major", "moderate", "minor")
PER_DAY = {"1/d": 1, "2/d": 2, "3/d": 3, "4/d": 4, "6/d": 6, "night": 1}
PER_WEEK = {"1/w": 1}
EVERY = re.compile(
    r"\b(?:every|q)\s?\.?(\d{1,2})(?:\s?(?:-|–|to)\s?\d{1,2})?\s?(h|hr|hrs|hours?|d|days?|w|weeks?)\b", re.IGNORECASE
)
TIMES = re.compile(
    rf"\b(\d{{1,2}}|{'|'.join(NUMBER_WORDS)})\s?(?:x|times?)\s?(?:a|per|each|/)?\s?(?:day|daily)\b", re.IGNORECASE
)
ONCE = re.compile(r"^\s*(?:once|stat|now|one[- ]time|single dose|once only|x\s?1)\W*$", re.IGNORECASE)
OTHER_DAY = re.compile(r"\b(?:every other day|alternate days|qod|every second day)\b", re.IGNORECASE)
AS_NEEDED = re.compile(r"\b(?:prn|as (?:needed|required))\b", re.IGNORECASE)

Entry = Mapping[str, Any]


def check_order(
    medication: str,
    dosage: str,
    frequency: str,
    *,
    allergies: Sequence[Entry] | None,
    medications: Sequence[Entry] | None,
    interactions: "Sequence[Interaction] | None",
    max_daily_dose: str | None,
    drugs: DrugNames,
    no_known_allergies: bool = False,
    not_checked: Sequence[str] = (),
) -> list[str]:
    """What speaks against an order, the worst first: one plain line for a clinician each.

    Args:
        medication, dosage, frequency: as ordered.
        allergies: `[{"substance", "reaction", "severity", "active"}]` of the chart; None if it could not be read.
        medications: `[{"name", "active"}]` of the chart; None if it could not be read.
        interactions: of the ordered drug with the active ones; None if they could not be looked up.
        max_daily_dose: of the label, "3000 mg"; None or "" if none is known.
        drugs: knows brand and generic of one drug as the same.
        no_known_allergies: the chart says so, which differs from an empty list.
        not_checked: active medications that the source of interactions does not know.
    """
    return [
        *_unknown(medication, drugs),
        *_allergy_status(medication, allergies, no_known_allergies, drugs),
        *_interaction_findings(medication, medications, interactions, not_checked, drugs),
        *_duplicates(medication, medications, drugs),
        *check_dose(medication, dosage, frequency, max_daily_dose, drugs),
    ]


def check_allergy_entry(
    substance: str, *, allergies: Sequence[Entry] | None, medications: Sequence[Entry] | None, drugs: DrugNames
) -> list[str]:
    """What to know before an allergy is recorded: it is there already, or the patient takes that drug now.

    Args: as for `check_order`.
    """
    findings = []
    mine = ingredients(substance, drugs)
    if allergies is None:
        findings.append("The recorded allergies could not be read, so a duplicate entry could not be ruled out.")
    for entry in _active(allergies):
        if mine & ingredients(entry["substance"], drugs):
            findings.append(f"An allergy to {entry['substance']} is already recorded{_reaction(entry)}.")
    if medications is None:
        findings.append("The active medications could not be read, so a conflict with them could not be ruled out.")
    for entry in _active(medications):
        findings += [
            f"The patient takes {entry['name']} at present: {line}"
            for line in check_order_allergies(entry["name"], [{"substance": substance, "reaction": ""}], drugs)
        ]
    return findings


def check_order_allergies(medication: str, allergies: Sequence[Entry], drugs: DrugNames | None = None) -> list[str]:
    """Recorded allergies that concern a drug: itself, its class, or a class known to cross-react."""
    ordered = ingredients(medication, drugs)
    ordered_classes = {item.name for name in ordered for item in classes_of(name)} | {
        item.name for item in classes_said(medication)
    }
    findings = []
    for entry in _active(allergies):
        said = str(entry.get("substance") or "")
        if line := _conflict(medication, ordered, ordered_classes, said, drugs):
            findings.append(f"Allergy to {said}{_reaction(entry)}: {line}.")
    return findings


def check_dose(medication: str, dosage: str, frequency: str, max_daily_dose: str | None, drugs: DrugNames) -> list[str]:
    """The daily dose against the label's adult maximum. What cannot be computed is said, never passed over."""
    findings = []
    often = times_per_day(frequency)
    if "methotrexate" in ingredients(medication, drugs) and often is not None and often >= Decimal("0.5"):
        # Methotrexate label, boxed warning: daily instead of weekly dosing has been fatal
        findings.append(
            "Methotrexate is ordered daily; outside oncology it is given once weekly, and daily use can be fatal."
        )
    limit = _amount(max_daily_dose or "")
    if limit is None:
        return [*findings, f"The dose could not be checked: no maximum daily dose of {medication} is known."]
    amount, limit_text = _amount(dosage), f"{max_daily_dose} a day"
    if amount is None or amount[1] != limit[1]:
        given = dosage or "no dose"
        return [*findings, f"The dose could not be checked: {given} does not compare with a maximum of {limit_text}."]
    if often is None:
        if amount[0] > limit[0]:
            findings.append(f"A single dose of {dosage} is above the maximum of {limit_text}.")
        return [*findings, f"The daily dose could not be checked: {_unclear(frequency)}."]
    if (total := amount[0] * often) > limit[0]:
        needed = " if every as-needed dose is taken" if AS_NEEDED.search(frequency) else ""
        daily = f"{dosage} {frequency} is {_number(total)} {amount[1]} a day{needed}"
        findings.append(f"{daily}, above the maximum of {limit_text}.")
    return findings


def _unclear(frequency: str) -> str:
    given = frequency.strip()
    return "no frequency is given" if given in ("", "not specified") else f"the frequency {given} is not understood"


def times_per_day(frequency: str) -> Decimal | None:
    """Doses a day, the most that a range allows ("every 4-6 hours" is 6); None if the words are not understood."""
    if match := EVERY.search(frequency):
        count, unit = int(match[1]), match[2][0].lower()
        hours = count * {"h": 1, "d": 24, "w": 168}[unit]
        return Decimal(24) / hours if hours else None
    if match := TIMES.search(frequency):
        word = match[1].lower()
        return Decimal(word) if word.isdigit() else Decimal(NUMBER_WORDS[word])
    if OTHER_DAY.search(frequency):
        return Decimal("0.5")
    said = said_frequencies(frequency)
    if said & set(PER_DAY):
        return Decimal(max(PER_DAY[item] for item in said if item in PER_DAY))
    if said:
        return Decimal(1) / 7
    return Decimal(1) if ONCE.match(frequency) else None


def ingredients(name: str, drugs: DrugNames | None) -> frozenset[str]:
    """Generic names in a medication's name, strength and form ignored: "Metformin 500 MG Oral Tablet" is metformin."""
    found = drugs.find(name) if drugs else []
    if found:
        return frozenset(part for item in found for part in drugs.ingredients(item.name))
    words = re.sub(r"\d.*$", "", name).strip().casefold()
    return frozenset({words or name.casefold()})


def _unknown(medication: str, drugs: DrugNames) -> list[str]:
    """A drug that nobody here knows has no class, no ingredients and no interactions to compare."""
    if drugs.find(medication):
        return []
    near = drugs.suggest(medication)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return [f"{medication} is not a known drug name, so its class and ingredients could not be checked.{hint}"]


def _allergy_status(
    medication: str, allergies: Sequence[Entry] | None, none_known: bool, drugs: DrugNames
) -> list[str]:
    if allergies is None:
        return ["Allergies could not be checked: the patient's record could not be read."]
    if not _active(allergies) and not none_known:
        return ["Allergies could not be checked: none are recorded, and the record does not say that there are none."]
    return check_order_allergies(medication, allergies, drugs)


def _conflict(
    medication: str, ordered: frozenset[str], ordered_classes: set[str], said: str, drugs: DrugNames | None
) -> str | None:
    allergic = ingredients(said, drugs)
    if ordered & allergic:
        return f"{medication} is the same drug"
    classes = {item.name: item for name in allergic for item in classes_of(name)} | {
        item.name: item for item in classes_said(said)
    }
    shared = [item for name, item in classes.items() if name in ordered_classes and item.allergy]
    if shared:
        return _same_class(medication, shared[0])
    if "sacubitril" in ordered and {"ACE inhibitors", "angiotensin receptor blockers"} & set(classes):
        return SACUBITRIL
    for cross in CROSS:
        if (
            cross.allergy in classes
            and cross.order in ordered_classes
            and (not cross.members or ordered & cross.members)
        ):
            return cross.says
    return None


def _same_class(medication: str, shared: DrugClass) -> str:
    if shared.name == "opioids":  # true cross-allergy is uncommon, side effects are often recorded as allergy
        return f"caution, {medication} is an opioid too; clarify the reaction before ordering"
    return f"{medication} belongs to the same class ({shared.name})"


def _interaction_findings(
    medication: str,
    medications: Sequence[Entry] | None,
    interactions: "Sequence[Interaction] | None",
    not_checked: Sequence[str],
    drugs: DrugNames,
) -> list[str]:
    if medications is None:
        return ["Interactions and duplicates could not be checked: the active medications could not be read."]
    active = _active(medications)
    if active and interactions is None:
        return [f"Interactions of {medication} with the active medications could not be checked."]
    ordered = ingredients(medication, drugs)
    mine = [item for item in interactions or [] if any(ordered & ingredients(name, drugs) for name in item.drugs)]
    mine.sort(key=lambda item: RANK.index(item.severity.lower()) if item.severity.lower() in RANK else 1)
    lines = []
    for item in mine:
        other = next((name for name in item.drugs if not ordered & ingredients(name, drugs)), item.drugs[1])
        detail = " ".join(part.strip() for part in (item.mechanism, item.management) if part.strip())
        lines.append(f"{item.severity.capitalize()} interaction with {other}: {detail or 'no details are given'}")
    lines += [f"The interaction of {medication} with {name} could not be checked." for name in not_checked]
    return lines


def _duplicates(medication: str, medications: Sequence[Entry] | None, drugs: DrugNames) -> list[str]:
    ordered = ingredients(medication, drugs)
    mine = {item.name for name in ordered for item in classes_of(name) if item.duplicate}
    findings = []
    for entry in _active(medications):
        theirs = ingredients(entry["name"], drugs)
        shared = sorted(mine & {item.name for name in theirs for item in classes_of(name)})
        if same := ordered & theirs:
            findings.append(f"Duplicate: {entry['name']} is active already and contains {', '.join(sorted(same))}.")
        elif shared:
            findings.append(
                f"Possible duplicate therapy: {entry['name']} is active already and of the same class ({shared[0]})."
            )
        elif dual := _dual_raas(mine, theirs):
            findings.append(f"{entry['name']} is active already: {dual}.")
    return findings


def _dual_raas(mine: set[str], theirs: frozenset[str]) -> str | None:
    """Lisinopril label, section 7: dual blockade of the renin-angiotensin system."""
    pair = {"ACE inhibitors", "angiotensin receptor blockers"}
    other = {item.name for name in theirs for item in classes_of(name)} & pair
    if mine & pair and other - mine:
        return (
            "an ACE inhibitor with an angiotensin receptor blocker raises the risk of hyperkalaemia and kidney injury"
        )
    return None


def _active(entries: Sequence[Entry] | None) -> list[Entry]:
    return [entry for entry in entries or [] if entry.get("active", True)]


def _reaction(entry: Entry) -> str:
    detail = ", ".join(str(entry[key]) for key in ("reaction", "severity") if entry.get(key))
    return f" ({detail})" if detail else ""


def _amount(text: str) -> tuple[Decimal, str] | None:
    """The (largest) quantity of a dose; None where there is none, or only one without a unit."""
    found = [item for item in quantities(text) if item.unit]
    units = {item.unit for item in found} - {"hour", "month"}
    if len(units) != 1:
        return None
    unit = units.pop()
    return max(item.value for item in found if item.unit == unit), unit


def _number(value: Decimal) -> str:
    return f"{value:,.2f}".rstrip("0").rstrip(".")
