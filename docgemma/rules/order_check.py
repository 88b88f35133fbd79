"""Check an order against the allergies and medicines of the record. It warns; a person decides. Pure.

A check that could not be made is itself a finding: a short list must never mean that nobody looked.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from docgemma.reading.terms import names
from docgemma.rules.drug_classes import allergy_conflict, classes_of, duplicate_class, is_comparable
from docgemma.text.drugs import DrugNames, ingredients

if TYPE_CHECKING:  # plain data; rules import nothing that could do I/O
    from docgemma.knowledge.base import Interaction

Entries = Sequence[Mapping[str, Any]]
CONTRAINDICATED, MAJOR, MODERATE, NOTE, UNCHECKED = range(5)
RANKS = {"contraindicated": CONTRAINDICATED, "major": MAJOR, "moderate": MODERATE, "minor": NOTE}
RAAS = frozenset({"ACE inhibitors", "angiotensin receptor blockers"})
DUAL_RAAS = "an ACE inhibitor with an angiotensin receptor blocker raises the risk of hyperkalaemia and kidney injury"
SEVERE = ("severe", "anaphyla", "angioedema", "bronchospasm", "airway", "stevens", "sjs", "necrolysis", "dress")


class Finding(NamedTuple):
    """One line for a clinician. Of UNCHECKED `text` names the check, the reason in brackets, without a full stop."""

    rank: int
    text: str


def shown(findings: Iterable[Finding]) -> list[str]:
    """The lines of a card: the gravest first, and on the last one everything that could not be checked."""
    ordered = sorted(dict.fromkeys(findings), key=lambda finding: finding.rank)
    unchecked = "; ".join(finding.text for finding in ordered if finding.rank == UNCHECKED)
    lines = [finding.text for finding in ordered if finding.rank != UNCHECKED]
    return [*lines, f"Could not be checked: {unchecked}."] if unchecked else lines


def check_order(
    medication: str,
    *,
    allergies: Entries | None,
    medications: Entries | None,
    interactions: "Sequence[Interaction] | None",
    drugs: DrugNames,
    no_known_allergies: bool = False,
    not_checked: Sequence[str] = (),
    none_listed: Mapping[str, str] | None = None,
) -> list[Finding]:
    """Find what allergies and medicines say against an order. Doses are `rules.dosing`, problems `rules.conditions`.

    Args:
        medication: as ordered.
        allergies: `[{"substance", "reaction", "severity", "active"}]` of the chart; None if it could not be read.
        medications: `[{"name", "active"}]` of the chart; None if it could not be read.
        interactions: of the ordered drug with the active ones; None if they could not be looked up.
        no_known_allergies: the chart says so, which differs from an empty list.
        not_checked: active medications that the source of interactions does not know.
        none_listed: active medications without a listed interaction: where that was looked up, and as of when.
    """
    findings = []
    if not drugs.find(medication):  # without class, ingredients and interactions
        near = drugs.suggest(medication)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        text = f"{medication} is not a known drug name, so its class and ingredients could not be checked.{hint}"
        findings.append(Finding(MAJOR, text))
    if allergies is None:
        findings.append(Finding(UNCHECKED, "allergies (the patient's record could not be read)"))
    elif not _active(allergies) and not no_known_allergies:
        text = "allergies (none are recorded, and the record does not say that there are none)"
        findings.append(Finding(UNCHECKED, text))
    findings += check_order_allergies(medication, allergies or [], drugs)
    if medications is None:
        text = "interactions and duplicates (the active medications could not be read)"
        return [*findings, Finding(UNCHECKED, text)]
    if _active(medications) and interactions is None:
        text = f"interactions of {medication} with the active medications (the look-up failed)"
        findings.append(Finding(UNCHECKED, text))
    findings += _interactions(medication, interactions or [], drugs)
    if not_checked:
        findings.append(Finding(UNCHECKED, f"the interaction of {medication} with {', '.join(not_checked)}"))
    return [*findings, *_none_listed(medication, none_listed or {}), *_duplicates(medication, medications, drugs)]


def check_allergy_entry(
    substance: str, *, allergies: Entries | None, medications: Entries | None, drugs: DrugNames
) -> list[Finding]:
    """Find what to know before an allergy is recorded: it is there already, or the patient takes that drug now.

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


def check_order_allergies(medication: str, allergies: Entries, drugs: DrugNames | None = None) -> Iterator[Finding]:
    """Find the recorded allergies that concern a drug, by itself, its class or a class known to cross-react; and those
    that are neither a drug nor a class and could not be compared."""
    for entry in _active(allergies):
        said = str(entry.get("substance") or "")
        if why := allergy_conflict(medication, said, drugs):
            cautious = MAJOR if names(SEVERE, f"{entry.get('reaction')} {entry.get('severity')}") else MODERATE
            rank = cautious if why.startswith("caution") else CONTRAINDICATED
            yield Finding(rank, f"Allergy to {said}{_reaction(entry)}: {why}.")
        elif not is_comparable(said, drugs):
            yield Finding(UNCHECKED, f"the allergy to {said} (no known drug or class)")


def _interactions(medication: str, interactions: "Sequence[Interaction]", drugs: DrugNames) -> Iterator[Finding]:
    ordered = ingredients(medication, drugs)
    for item in interactions:
        others = [name for name in item.drugs if not ordered & ingredients(name, drugs)]
        if len(others) < len(item.drugs):
            detail = " ".join(part.strip() for part in (item.mechanism, item.management) if part.strip())
            head = f"{item.severity.capitalize()} interaction with {(others or item.drugs[1:])[0]}"
            yield Finding(RANKS.get(item.severity.lower(), MAJOR), f"{head}: {detail or 'no details are given'}")


def _none_listed(medication: str, none_listed: Mapping[str, str]) -> Iterator[Finding]:
    """What was looked up and is not listed, with its source and date; it proves nothing beyond that."""
    for source in dict.fromkeys(none_listed.values()):
        others = ", ".join(name for name in none_listed if none_listed[name] == source)
        text = f"{medication[:1].upper()}{medication[1:]} with {others}: nothing is listed ({source}), "
        yield Finding(NOTE, f"{text}which does not prove that they do not interact.")


def _duplicates(medication: str, medications: Entries, drugs: DrugNames) -> Iterator[Finding]:
    ordered = ingredients(medication, drugs)
    raas = RAAS & classes_of(ordered)
    for entry in _active(medications):
        theirs = ingredients(entry["name"], drugs)
        active = f"{entry['name']} is active already"
        if same := ordered & theirs:
            yield Finding(MAJOR, f"Duplicate: {active} and contains {', '.join(sorted(same))}.")
        elif shared := duplicate_class(ordered, theirs):
            name, says = shared
            told = says.replace("{other}", entry["name"]).replace("{drug}", medication)
            text = f"{active}: {told}" if told else f"{active} and of the same class ({name})"
            yield Finding(MAJOR, f"Possible duplicate therapy: {text.rstrip('.')}.")
        elif raas and (RAAS & classes_of(theirs)) - raas:
            yield Finding(MAJOR, f"{active}: {DUAL_RAAS}.")  # lisinopril label, section 7


def _active(entries: Entries | None) -> list[Mapping[str, Any]]:
    return [entry for entry in entries or [] if entry.get("active", True)]


def _reaction(entry: Mapping[str, Any]) -> str:
    detail = ", ".join(str(entry[key]) for key in ("reaction", "severity") if entry.get(key))
    return f" ({detail})" if detail else ""
