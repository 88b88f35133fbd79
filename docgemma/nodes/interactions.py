"""Look up interactions of an ordered drug with the active medications and those told, and among what is taken."""

from collections.abc import Sequence, Set
from itertools import product
from typing import Any

from docgemma.errors import DocGemmaError, ToolError
from docgemma.knowledge.base import Answer, DrugLabel, Interaction
from docgemma.nodes.context import Context
from docgemma.rules import known
from docgemma.rules.drug_classes import classes_said
from docgemma.rules.order_check import GOES_ON, IS_ACTIVE, MAJOR, MODERATE, UNNAMED, Checked, Finding, check_order
from docgemma.rules.patient_state import WRITTEN
from docgemma.text.drugs import ingredients
from docgemma.text.told import told_allergies, told_behind
from docgemma.tools.drugs import between, interactions_of_known
from docgemma.tools.records import active_ingredients

GRAVE = ("contraindicated", "major")
MAX_MEDICINES = 20
WITH_IT = "ordered in the same message"


def check_interactions(drug: str, medications: list[dict[str, Any]], context: Context) -> Checked:
    """Look up the drug with each active medication: one unknown drug hides no other pair. An outage ends it: what was
    not asked is not "none listed"."""
    listed: list[Interaction] = []
    checked = Checked(found=listed)
    for name in dict.fromkeys(item["name"] for item in medications if item.get("active", True)):
        if ingredients(name, context.drugs) <= ingredients(drug, context.drugs):
            continue  # the same drug is a duplicate, not an interaction
        try:
            found, source = _pair(drug, name, context)
        except DocGemmaError:
            return Checked(found=None)
        listed += [item for item in found if item not in listed]
        if not found and source is None:
            checked.unknown.append(name)
        elif not found:
            checked.none_listed[name] = str(source)
    return checked


def check_told(
    drug: str, told: str, chart: dict[str, Any], context: Context, others: Sequence[str] = ()
) -> list[Finding]:
    """What allergies and medicines that the message tells, `others` that it orders too, and that the chart does not
    hold, say against an order."""
    drugs, held = context.drugs, ingredients(drug, context.drugs) | active_ingredients(chart, context.drugs)
    taken, ordered = (
        [{"name": name} for name in named if not ingredients(name, drugs) & held]
        for named in (told_medicines(told, context), dict.fromkeys(others))
    )
    allergies = {
        substance: {"substance": substance, "reaction": word, "severity": WRITTEN}
        for word, span in told_allergies(told)
        for substance in [*(item.text for item in drugs.find(span)), *classes_said(span, drugs)][:1]
    }
    beside = _grave(drug, [], ordered, (WITH_IT, " is ordered too"), context)
    return [*_grave(drug, [*allergies.values()], taken, (WRITTEN, " is told"), context), *beside]


def told_medicines(told: str, context: Context) -> list[str]:
    """The drugs that a message tells to be taken or begun."""
    spans = [*told_behind(told, "using"), *told_behind(told, "begun")]
    return list(dict.fromkeys(item.text for span in spans for item in context.drugs.find(span)))


def told_interactions(told: str, chart: dict[str, Any], known_of: Set[str], context: Context) -> list[Finding]:
    """Grave interactions of a medicine that is told, and is none of those known of, with what is taken: "has started
    fluconazole" of somebody on warfarin."""
    found = []
    for name in (name for name in told_medicines(told, context) if not ingredients(name, context.drugs) & known_of):
        for item in check_interactions(name, chart["medications"], context).found or []:
            if item.severity.lower() in GRAVE:
                text = f"{item.severity.capitalize()} interaction of {' with '.join(item.drugs)} ({name}: {WRITTEN}): "
                found.append(Finding(MAJOR, f"{text}{item.mechanism} {item.management}".strip(), basis=item.basis))
    return found


def _grave(
    drug: str, allergies: list[dict[str, str]], taken: list[dict[str, str]], how: tuple[str, str], context: Context
) -> list[Finding]:
    """What allergies and medicines outside of the chart say against an order, with how they are known: in no record,
    nothing is active and nothing goes on."""
    stated, (why, is_known) = {"allergies": allergies, "medications": taken, "no_known_allergies": True}, how
    pairs, label = check_interactions(drug, taken, context), label_of(drug, context)
    marked, found = f" ({', '.join(item['name'] for item in taken)}: {why}.)", []
    for item in check_order(drug, stated, pairs, context.drugs, label):
        text = item.text.replace(IS_ACTIVE, is_known).replace(f" {GOES_ON}", "")
        if item.rank <= MODERATE and UNNAMED not in text:
            found.append(item._replace(text=text if WRITTEN in text else text + marked))
    return found


def standing_interactions(chart: dict[str, Any], context: Context) -> list[str]:
    """One line for each contraindicated or major pair of active medicines; none where nothing could be looked up."""
    active = known.unique(item["name"] for item in chart["medications"] if item["active"])[:MAX_MEDICINES]
    taken = [ingredients(name, context.drugs) for name in active]
    names = sorted(frozenset().union(*taken))
    try:
        listed = interactions_of_known(names, context.knowledge)[0].records if len(names) > 1 else []
    except DocGemmaError:
        return []
    return [
        f"Taken together already: {item.severity.lower()} interaction of {item.drugs[0]} with {item.drugs[1]}. "
        f"{item.mechanism} {item.management}".strip()
        for item in between(listed, taken, context.drugs)
        if item.severity.lower() in GRAVE
    ]


def _pair(drug: str, other: str, context: Context) -> tuple[list[Interaction], str | None]:
    """What is listed of two medications, and the source; None where it does not know all of both.

    A source may list a combination as a whole, by its ingredients, or both, so that all are asked for; either way of
    knowing both drugs completely will do.
    """
    found: list[Interaction] = []
    source = None
    for mine, theirs in product(_ways(drug, context), _ways(other, context)):
        answers = [_ask(a, b, context) for a, b in product(mine, theirs) if a != b]
        found += [item for answer in answers if answer for item in answer.records if item not in found]
        if source is None and answers and all(answer and not answer.not_covered for answer in answers):
            source = next(
                f"{item.source}, {f'as of {item.as_of}' if item.as_of else 'date unknown'}" for item in answers if item
            )
    return found, source


def _ways(medication: str, context: Context) -> list[list[str]]:
    """The names to ask for: its ingredients, and a combination also as a whole."""
    parts = sorted(ingredients(medication, context.drugs))
    return [parts] if len(parts) == 1 else [[medication], parts]


def _ask(a: str, b: str, context: Context) -> Answer[Interaction] | None:
    """The source's answer, or None where it does not know one of the two. Raises DocGemmaError in an outage."""
    try:
        return context.knowledge.interactions([a, b])
    except ToolError as error:
        if error.retryable:
            raise
        return None


def label_of(medicine: str, context: Context) -> DrugLabel | None:
    """The label, "ibuprofen susp" by its ingredient too; None if none can be read."""
    for name in dict.fromkeys([medicine, *(item.text for item in context.drugs.find(medicine))]):
        try:
            records = context.knowledge.label(name).records
        except DocGemmaError:
            continue
        if records:
            return records[0]
    return None
