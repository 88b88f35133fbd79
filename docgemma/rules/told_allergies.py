"""Check drugs against the allergies that a message tells of somebody who is in no record: "30M pen allergic". Pure."""

from collections.abc import Iterator, Sequence

from docgemma.reading.drugs import said_for
from docgemma.rules.drug_classes import is_comparable
from docgemma.rules.order_check import CONTRAINDICATED, MAJOR, MODERATE, check_order_allergies
from docgemma.text.drugs import DrugNames, ingredients
from docgemma.text.words import listed, plain

BESIDE = 3  # words between which a substance and "allergic" stand
VERDICTS = {CONTRAINDICATED: "Contraindicated", MAJOR: "Warning", MODERATE: "Caution"}
SEVERE = frozenset({"anaphylaxis", "anaphylactic"})


def allergy_lines(said: str, names: Sequence[str], drugs: DrugNames) -> Iterator[str]:
    """What speaks against each drug, by what is told: "Contraindicated (cephalexin): Allergy to ...". Nothing where no
    allergy is told, or where the drug is what somebody is allergic to."""
    told = list(_told(said, drugs))
    for name in names:
        for finding in check_order_allergies(name, told, drugs):
            substance = next((one["substance"] for one in told if str(one["substance"]) in finding.text), "")
            own = ingredients(name, drugs) & ingredients(str(substance), drugs)
            if finding.rank <= MODERATE and not own:
                yield f"{VERDICTS[finding.rank]} ({name}): {finding.text.rstrip('.')} (the allergy as you wrote it)."


def _told(said: str, drugs: DrugNames) -> Iterator[dict[str, object]]:
    """The substances before or behind a word of allergy that is not denied: "sulfa allergy", "anaphylaxis to amox"."""
    words = plain(said).split()
    for at, word in enumerate(words):
        if word not in listed("request_words", "allergy_words") or {*words[max(at - 2, 0) : at]} & DENIED:
            continue
        behind = words[at + 2 : at + 2 + BESIDE] if words[at + 1 : at + 2] in (["to"], ["with"]) else []
        for near in (behind[:1], behind[:2], words[max(at - 1, 0) : at], words[max(at - 2, 0) : at]):
            name = " ".join(near)
            doubtful = said_for("ambiguous").get(name, {"readings": [name]})["readings"][0]  # "pen" is penicillin here
            known = said_for("abbreviations").get(name, {"name": doubtful})["name"]
            if name and is_comparable(str(known), drugs):
                yield {"substance": known, "reaction": word if word in SEVERE else "", "severity": "", "active": True}
                break


DENIED = frozenset({"no", "nil", "not", "never", "denies", "without", "any"})
