"""The safety gate before a write: what the record says against an order. It warns; a person decides. Pure.

Every check that could not be made is itself a finding: a short list of findings must never mean that nobody looked.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from docgemma.reading.terms import names
from docgemma.rules.drug_classes import allergy_conflict, classes_of, duplicate_class, is_comparable
from docgemma.rules.findings import CONTRAINDICATED, MAJOR, MODERATE, NOTE, RANKS, UNCHECKED, Finding
from docgemma.text.drugs import DrugNames, ingredients

if TYPE_CHECKING:  # plain data; rules import nothing that could do I/O
    from docgemma.knowledge.base import Interaction

Entry = Mapping[str, Any]
RAAS = frozenset({"ACE inhibitors", "angiotensin receptor blockers"})
SEVERE = ("severe", "anaphyla", "angioedema", "bronchospasm", "airway", "stevens", "sjs", "necrolysis", "dress")
DUAL_RAAS = "an ACE inhibitor with an angiotensin receptor blocker raises the risk of hyperkalaemia and kidney injury"


def check_order(
    medication: str,
    *,
    allergies: Sequence[Entry] | None,
    medications: Sequence[Entry] | None,
    interactions: "Sequence[Interaction] | None",
    drugs: DrugNames,
    no_known_allergies: bool = False,
    not_checked: Sequence[str] = (),
    none_listed: Mapping[str, str] | None = None,
) -> list[Finding]:
    """What the record's allergies and medicines say against an order. Doses are `rules.dosing`; problems, kidney
    function, age and the like `rules.conditions`.

    Args:
        medication: as ordered.
        allergies: `[{"substance", "reaction", "severity", "active"}]` of the chart; None if it could not be read.
        medications: `[{"name", "active"}]` of the chart; None if it could not be read.
        interactions: of the ordered drug with the active ones; None if they could not be looked up.
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
        *_none_listed(medication, none_listed or {}),
    ]


def check_allergy_entry(
    substance: str, *, allergies: Sequence[Entry] | None, medications: Sequence[Entry] | None, drugs: DrugNames
) -> list[Finding]:
    """What to know before an allergy is recorded: it is there already, or the patient takes that drug now.

    Args: as for `check_order`.
    """
    findings, mine = [], ingredients(substance, drugs)
    if allergies is None:
        findings.append(Finding(UNCHECKED, "a duplicate entry (the recorded allergies could not be read)"))
    for entry in _active(allergies):
        if mine & ingredients(entry["substance"], drugs):
            text = f"An allergy to {entry['substance']} is already recorded{_reaction(entry)}."
            findings.append(Finding(MODERATE, text))
    if medications is None:
        findings.append(Finding(UNCHECKED, "a conflict with the active medications (they could not be read)"))
    for entry in _active(medications):
        if why := allergy_conflict(entry["name"], substance, drugs):
            text = f"The patient takes {entry['name']} at present: Allergy to {substance}: {why}."
            findings.append(Finding(MAJOR, text))
    return findings


def check_order_allergies(medication: str, allergies: Sequence[Entry], drugs: DrugNames | None = None) -> list[Finding]:
    """Recorded allergies that concern a drug: itself, its class, or a class known to cross-react; and those that are
    neither a drug nor a class and could not be compared."""
    findings = []
    for entry in _active(allergies):
        said = str(entry.get("substance") or "")
        if why := allergy_conflict(medication, said, drugs):
            cautious = MAJOR if names(SEVERE, f"{entry.get('reaction')} {entry.get('severity')}") else MODERATE
            rank = cautious if why.startswith("caution") else CONTRAINDICATED
            findings.append(Finding(rank, f"Allergy to {said}{_reaction(entry)}: {why}."))
        elif not is_comparable(said, drugs):
            findings.append(Finding(UNCHECKED, f"the allergy to {said} (no known drug or class)"))
    return findings


def _unknown(medication: str, drugs: DrugNames) -> list[Finding]:
    """A drug that nobody here knows has no class, no ingredients and no interactions to compare."""
    if drugs.find(medication):
        return []
    near = drugs.suggest(medication)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    text = f"{medication} is not a known drug name, so its class and ingredients could not be checked.{hint}"
    return [Finding(MAJOR, text)]


def _allergy_status(
    medication: str, allergies: Sequence[Entry] | None, none_known: bool, drugs: DrugNames
) -> list[Finding]:
    if allergies is None:
        return [Finding(UNCHECKED, "allergies (the patient's record could not be read)")]
    if not _active(allergies) and not none_known:
        return [Finding(UNCHECKED, "allergies (none are recorded, and the record does not say that there are none)")]
    return check_order_allergies(medication, allergies, drugs)


def _interaction_findings(
    medication: str,
    medications: Sequence[Entry] | None,
    interactions: "Sequence[Interaction] | None",
    not_checked: Sequence[str],
    drugs: DrugNames,
) -> list[Finding]:
    if medications is None:
        return [Finding(UNCHECKED, "interactions and duplicates (the active medications could not be read)")]
    if _active(medications) and interactions is None:
        return [Finding(UNCHECKED, f"interactions of {medication} with the active medications (the look-up failed)")]
    ordered = ingredients(medication, drugs)
    findings = []
    for item in interactions or []:
        if any(ordered & ingredients(name, drugs) for name in item.drugs):
            other = next((name for name in item.drugs if not ordered & ingredients(name, drugs)), item.drugs[1])
            detail = " ".join(part.strip() for part in (item.mechanism, item.management) if part.strip())
            text = f"{item.severity.capitalize()} interaction with {other}: {detail or 'no details are given'}"
            findings.append(Finding(RANKS.get(item.severity.lower(), MAJOR), text))
    if not_checked:
        findings.append(Finding(UNCHECKED, f"the interaction of {medication} with {', '.join(not_checked)}"))
    return findings


def _none_listed(medication: str, none_listed: Mapping[str, str]) -> list[Finding]:
    """What was looked up and is not listed, with its source and date; it proves nothing beyond that."""
    findings, drug = [], medication[:1].upper() + medication[1:]
    for source in dict.fromkeys(none_listed.values()):
        names = ", ".join(name for name in none_listed if none_listed[name] == source)
        text = f"{drug} with {names}: nothing is listed ({source}), which does not prove that they do not interact."
        findings.append(Finding(NOTE, text))
    return findings


def _duplicates(medication: str, medications: Sequence[Entry] | None, drugs: DrugNames) -> list[Finding]:
    ordered = ingredients(medication, drugs)
    raas = {name for part in ordered for name in classes_of(part)} & RAAS
    findings = []
    for entry in _active(medications):
        theirs = ingredients(entry["name"], drugs)
        active = f"{entry['name']} is active already"
        if same := ordered & theirs:
            findings.append(Finding(MAJOR, f"Duplicate: {active} and contains {', '.join(sorted(same))}."))
        elif shared := duplicate_class(ordered, theirs):
            name, says = shared
            told = says.replace("{other}", entry["name"]).replace("{drug}", medication)
            text = f"{active}: {told}" if told else f"{active} and of the same class ({name})"
            findings.append(Finding(MAJOR, f"Possible duplicate therapy: {text.rstrip('.')}."))
        elif raas and ({name for part in theirs for name in classes_of(part)} & RAAS) - raas:
            findings.append(Finding(MAJOR, f"{active}: {DUAL_RAAS}."))  # lisinopril label, section 7
    return findings


def _active(entries: Sequence[Entry] | None) -> list[Entry]:
    return [entry for entry in entries or [] if entry.get("active", True)]


def _reaction(entry: Entry) -> str:
    detail = ", ".join(str(entry[key]) for key in ("reaction", "severity") if entry.get(key))
    return f" ({detail})" if detail else ""
