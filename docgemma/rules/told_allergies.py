"""Check drugs against the allergies that a message tells of somebody who is in no record: "30M pen allergic". Pure."""

from collections.abc import Iterator, Sequence

from docgemma.reading.drugs import said_for
from docgemma.rules.drug_classes import is_comparable
from docgemma.rules.lead import VERDICTS
from docgemma.rules.order_check import check_order_allergies
from docgemma.text.drugs import DrugNames
from docgemma.text.words import affirmed, listed, plain

NEAR = 4  # words before an allergy in which a relative, whose it is, may stand


def allergy_lines(said: str, names: Sequence[str], drugs: DrugNames) -> Iterator[str]:
    """What speaks against each drug, by what is told: "Contraindicated (cephalexin): Allergy to ...". Nothing where no
    allergy is told, or where the drug is what somebody is allergic to."""
    told = list(_told(said, drugs))
    for name in [name for name in names if plain(name) not in [plain(one["substance"]) for one in told]]:
        for finding in check_order_allergies(name, told, drugs):
            if finding.rank in VERDICTS:
                yield f"{VERDICTS[finding.rank]} ({name}): {finding.text.rstrip('.')} (the allergy as you wrote it)."


def _told(said: str, drugs: DrugNames) -> Iterator[dict[str, str]]:
    """The substances before or behind a word of allergy that is not denied: "sulfa allergy", "anaphylaxis to amox"."""
    words = plain(affirmed(said.replace("-", " "))).split()
    severe = " ".join(listed("request_words", "severe_allergies") & {*words})
    for at, word in enumerate(words):
        around = {*words[max(at - NEAR, 0) : at], *words[at + 1 : at + 2]}
        unsure = around & listed("request_words", "others", "no_more")
        if unsure or word not in listed("request_words", "allergy_words"):
            continue
        behind = words[at + 2 :] if words[at + 1 : at + 2] in (["to"], ["with"]) else words[at + 1 :]
        for near in (words[max(at - 1, 0) : at], words[max(at - 2, 0) : at], behind[:1], behind[:2]):
            name = " ".join(near)
            doubtful = said_for("ambiguous").get(name, {"readings": [name]})["readings"][0]  # "pen" is penicillin here
            known = str(said_for("abbreviations").get(name, {"name": doubtful})["name"])
            treated = {*name.split()} & listed("request_words", "treats_it", "treated_by")
            if name and is_comparable(known, drugs) and not treated:  # "adrenaline im anaphylaxis, dose?"
                yield {"substance": known, "reaction": severe, "severity": ""}
                break
