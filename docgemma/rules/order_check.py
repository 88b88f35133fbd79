"""Check an order against the allergies and medicines of the record. It warns; a person decides. Pure.

A check that could not be made is itself a finding: a short list must never mean that nobody looked.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from docgemma.rules.drug_classes import (
    allergy_conflict,
    classes_of,
    classes_said,
    duplicate_class,
    is_comparable,
    names_class_of,
)
from docgemma.text.clauses import fillers
from docgemma.text.drugs import DrugNames, ingredients
from docgemma.text.numbers import quantities
from docgemma.text.quoted import NOT_VERIFIED
from docgemma.text.words import names, plain

if TYPE_CHECKING:  # plain data; rules import nothing that could do I/O
    from docgemma.knowledge.base import DrugLabel, Interaction

Chart = Mapping[str, Any]
Entries = Sequence[Mapping[str, Any]]
CONTRAINDICATED, MAJOR, MODERATE, NOTE, UNCHECKED = range(5)
RANKS = {"contraindicated": CONTRAINDICATED, "major": MAJOR, "moderate": MODERATE, "minor": NOTE}
RAAS = frozenset({"ACE inhibitors", "angiotensin receptor blockers"})
DUAL_RAAS = "an ACE inhibitor with an angiotensin receptor blocker raises the risk of hyperkalaemia and kidney injury"
RECORDED_ALLERGIES = "Recorded allergies:"
OF_CLASS = " itself nothing is stored"  # of a drug that is checked by members of its class
UNNAMED = " is not a known drug name"
NO_RULES = "no rules for"  # a drug of which nothing is stored
IS_ACTIVE = " is already active"
GOES_ON = "It stays active until its prescriber stops it in the record system: that cannot be done here."
UNVERIFIED = f"Interactions, conditions and doses that name no label are {NOT_VERIFIED}."
SEVERE = ("severe", "anaphyla", "angioedema", "bronchospasm", "airway", "stevens", "sjs", "necrolysis", "dress")


class Finding(NamedTuple):
    """One line for a clinician. Of UNCHECKED `text` names the check, the reason in brackets, without a full stop.

    `first`: the same with the reason first, where it can lead an answer so. `basis`: how the fact behind it was
    obtained, `NOT_VERIFIED` or the label that states it; "" where it rests on the record alone.
    """

    rank: int
    text: str
    first: str = ""
    basis: str = ""

    @property
    def label(self) -> str:
        """The label that states the fact, in brackets; "" where none was read."""
        return f" ({self.basis})" if self.basis not in ("", NOT_VERIFIED) else ""


def shown(findings: Iterable[Finding]) -> list[str]:
    """The lines of a card: the gravest first, and on the last one everything that could not be checked."""
    ordered = sorted(dict.fromkeys(findings), key=lambda finding: finding.rank)
    unchecked = "; ".join(finding.text for finding in ordered if finding.rank == UNCHECKED)
    lines = [finding.text + finding.label for finding in ordered if finding.rank != UNCHECKED]
    lines += [UNVERIFIED] if any(finding.basis == NOT_VERIFIED for finding in ordered) else []
    return [*lines, f"Could not be checked: {unchecked}."] if unchecked else lines


@dataclass
class Checked:
    """What the source of interactions says of an ordered drug and each active medication.

    Attributes:
        found: the pairs that interact; None where the source could not be reached or read.
        unknown: active medications of which the source does not know or cover a part, or the ordered drug itself.
        none_listed: active medications every pair of which was looked up and is not listed; where and as of when.
    """

    found: "list[Interaction] | None" = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    none_listed: dict[str, str] = field(default_factory=dict)


def check_order(
    medication: str, chart: Chart | None, pairs: Checked, drugs: DrugNames, label: "DrugLabel | None" = None
) -> list[Finding]:
    """Find what allergies and medicines say against an order. Doses: `dose_check`; problems: `conditions`."""
    findings = []
    if not drugs.find(medication) and medication not in drugs:  # without class, ingredients and interactions
        near = drugs.suggest(medication)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        text = f"{medication}{UNNAMED}, so its class and ingredients could not be checked.{hint}"
        findings.append(Finding(MAJOR, text))
    if chart is None:
        findings.append(Finding(UNCHECKED, "allergies (the patient's record could not be read)"))
        text = "interactions and duplicates (the active medications could not be read)"
        return [*findings, Finding(UNCHECKED, text)]
    if not _active(chart["allergies"]) and not chart["no_known_allergies"]:
        text = "allergies (none are recorded, and the record does not say that there are none)"
        findings.append(Finding(UNCHECKED, text))
    findings += check_order_allergies(medication, chart["allergies"], drugs, label)
    if _active(chart["medications"]) and pairs.found is None:
        text = f"interactions of {medication} with the active medications (the look-up failed)"
        findings.append(Finding(UNCHECKED, text))
    if pairs.unknown:
        findings.append(Finding(UNCHECKED, f"the interaction of {medication} with {', '.join(pairs.unknown)}"))
    told = " ".join(finding.text for finding in findings)
    others = [f"{item['substance']}{_reaction(item)}" for item in _active(chart["allergies"])]
    others = [other for other in others if f"llergy to {other}" not in told]
    findings += [Finding(NOTE, f"{RECORDED_ALLERGIES} {'; '.join(others)}.")] if others else []
    taken = chart["medications"]
    return [*findings, *_interactions(medication, pairs, drugs, taken), *_duplicates(medication, taken, drugs)]


def check_allergy_entry(substance: str, chart: Chart | None, drugs: DrugNames) -> list[Finding]:
    """Find what to know before an allergy is recorded: it is there already, or the patient takes that drug now."""
    if chart is None:
        unread = ("a duplicate entry (the recorded allergies could not be read)",
                  "a conflict with the active medications (they could not be read)")  # fmt: skip
        return [Finding(UNCHECKED, text) for text in unread]
    findings, same = [], _allergies_to(substance, chart, drugs)
    for text in (f"An allergy to {entry['substance']} is already recorded{_reaction(entry)}." for entry in same):
        findings.append(Finding(MODERATE, text))
    for entry in _active(chart["medications"]):
        if why := allergy_conflict(entry["name"], substance, drugs):
            text = f"The patient takes {entry['name']} at present: Allergy to {substance}: {why}."
            findings.append(Finding(MAJOR, text))
    others = [f"{entry['substance']}{_reaction(entry)}" for entry in _active(chart["allergies"]) if entry not in same]
    return [*findings, Finding(NOTE, f"{RECORDED_ALLERGIES} {'; '.join(others) or 'no other'}.")]


def recorded_already(args: Mapping[str, Any], chart: Chart, drugs: DrugNames) -> str:
    """The allergy of the record that says all of an entry, with reaction and severity; "" where the entry says more."""
    told = {*plain(_reaction(args)).split()} - fillers()
    same = _allergies_to(str(args.get("substance") or ""), chart, drugs)
    held = [f"{entry['substance']}{_reaction(entry)}" for entry in same if told <= {*plain(_reaction(entry)).split()}]
    return "".join(held[:1])


def _allergies_to(substance: str, chart: Chart, drugs: DrugNames) -> list[Mapping[str, Any]]:
    """The recorded allergies to a substance or to a drug of the class that it names: "sulfa" is sulfamethoxazole's."""
    mine, classes = ingredients(substance, drugs), {*classes_said(substance, drugs)}
    told = [(entry, ingredients(entry["substance"], drugs)) for entry in _active(chart["allergies"])]
    return [entry for entry, theirs in told if substance and (mine & theirs or classes & classes_of(theirs))]


def check_order_allergies(
    medication: str, allergies: Entries, drugs: DrugNames | None = None, label: "DrugLabel | None" = None
) -> Iterator[Finding]:
    """Find the recorded allergies that concern a drug, by itself, its class or a class known to cross-react, after a
    severe reaction as the drug's label says; and those that are neither a drug nor a class and could not be compared.
    """
    for entry in _active(allergies):
        said = str(entry.get("substance") or "")
        if why := allergy_conflict(medication, said, drugs):
            severe = names(SEVERE, f"{entry.get('reaction')} {entry.get('severity')}")
            cautious = why.startswith("caution")
            against = label.contraindications if label and severe and cautious else []
            stated = [text.rstrip(".") for text in against if names_class_of(said, text, drugs)]
            rank = CONTRAINDICATED if stated or not cautious else MAJOR if severe else MODERATE
            why = f"{why.partition(', ')[2]}; contraindicated by the label: {stated[0]}" if stated else why
            basis = label.basis if label and stated else ""
            yield Finding(rank, f"Allergy to {said}{_reaction(entry)}: {why}.", basis=basis)
        elif shared := classes_of(ingredients(medication, drugs)) & classes_of(ingredients(said, drugs)):
            text = f"{medication} is of the same class ({', '.join(sorted(shared))}); judge whether it concerns it too"
            yield Finding(MODERATE, f"Allergy to {said}{_reaction(entry)}: {text}.")
        elif not is_comparable(said, drugs):
            yield Finding(UNCHECKED, f"the allergy to {said} (no known drug or class)")


def _interactions(medication: str, pairs: Checked, drugs: DrugNames, taken: Entries) -> Iterator[Finding]:
    """The pairs that interact, with the dose of the record where the advice is a dose; and what is not listed, with
    source and date, which proves nothing beyond that."""
    ordered = ingredients(medication, drugs)
    for item in pairs.found or []:
        others = [name for name in item.drugs if not ordered & ingredients(name, drugs)]
        if len(others) < len(item.drugs):
            detail = " ".join(part.strip() for part in (item.mechanism, item.management) if part.strip())
            other = (others or item.drugs[1:])[0]
            text = f"{item.severity.capitalize()} interaction with {other}: {detail or 'no details are given'}"
            mine = [entry for entry in _active(taken) if ingredients(other, drugs) & ingredients(entry["name"], drugs)]
            if mine and "dosage" in mine[0] and any(amount.unit == "mg" for amount in quantities(item.management)):
                text += f" The record has {mine[0]['name']} {mine[0].get('dosage') or 'without a dose'}."
            yield Finding(RANKS.get(item.severity.lower(), MAJOR), text, basis=item.basis)
    for source in dict.fromkeys(pairs.none_listed.values()):
        others = [name for name, listed in pairs.none_listed.items() if listed == source]
        text = f"{medication[:1].upper()}{medication[1:]} with {', '.join(others)}: nothing is listed ({source}), "
        yield Finding(NOTE, f"{text}which does not prove that they do not interact.")


def _duplicates(medication: str, medications: Entries, drugs: DrugNames) -> Iterator[Finding]:
    ordered = ingredients(medication, drugs)
    raas = RAAS & classes_of(ordered)
    for entry in _active(medications):
        theirs = ingredients(entry["name"], drugs)
        active = f"{entry['name']}{IS_ACTIVE}"
        if same := ordered & theirs:
            dose = f" ({entry['dosage']})" if entry.get("dosage") else ""
            itself = plain(entry["name"]) == plain(medication)
            contains = "" if itself else f" and contains {', '.join(sorted(same))}"
            yield Finding(MAJOR, f"Duplicate: {active}{dose}{contains}. {GOES_ON}")
        elif shared := duplicate_class(ordered, theirs):
            name, says = shared
            told = says.replace("{other}", entry["name"]).replace("{drug}", medication)
            text = f"{active}: {told}" if told else f"{active} and of the same class ({name})"
            yield Finding(MAJOR, f"Possible duplicate therapy: {text.rstrip('.')}. {GOES_ON}")
        elif raas and (RAAS & classes_of(theirs)) - raas:
            yield Finding(MAJOR, f"{active}: {DUAL_RAAS}.")  # lisinopril label, section 7


def _active(entries: Entries) -> list[Mapping[str, Any]]:
    return [entry for entry in entries if entry.get("active", True)]


def _reaction(entry: Mapping[str, Any]) -> str:
    detail = ", ".join(str(entry[key]) for key in ("reaction", "severity") if entry.get(key))
    return f" ({detail})" if detail else ""
