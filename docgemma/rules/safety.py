"""The safety gate before a write: what the record says against an order. It warns; a person decides.

Every check that could not be made is itself a finding: a short list of findings must never mean that nobody looked.
Not covered: renal and hepatic dosing, pregnancy, children.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from docgemma.rules.dosing import check_dose
from docgemma.rules.drug_classes import CROSS, SACUBITRIL, DrugClass, classes_of, classes_said
from docgemma.rules.drugs import DrugNames, ingredients

if TYPE_CHECKING:  # plain data; rules import nothing that could do I/O
    from docgemma.knowledge.base import Interaction

RANK = ("contraindicated", "major", "moderate", "minor")
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
    none_listed: Mapping[str, str] | None = None,
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
        none_listed: active medications without a listed interaction: where that was looked up, and as of when.
    """
    return [
        *_unknown(medication, drugs),
        *_allergy_status(medication, allergies, no_known_allergies, drugs),
        *_interaction_findings(medication, medications, interactions, not_checked, drugs),
        *_duplicates(medication, medications, drugs),
        *(check_dose(medication, dosage, frequency, max_daily_dose, drugs) if dosage else []),
        *_none_listed(medication, none_listed or {}),
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


def _none_listed(medication: str, none_listed: Mapping[str, str]) -> list[str]:
    """What was looked up and is not listed, with its source and date; it proves nothing beyond that."""
    lines, drug = [], medication[:1].upper() + medication[1:]
    for source in dict.fromkeys(none_listed.values()):
        names = ", ".join(name for name in none_listed if none_listed[name] == source)
        lines.append(
            f"{drug} with {names}: nothing is listed ({source}), which does not prove that they do not interact."
        )
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
