"""What a person should know before a record entry is approved: the chart is read, and the rules judge."""

from datetime import date
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

from docgemma.errors import StoreError
from docgemma.knowledge.base import DrugLabel
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.knowledge.drug_rules import conditions_of, doses_of, product_of
from docgemma.nodes.context import Context
from docgemma.nodes.interactions import check_interactions, check_told, label_of, standing_interactions
from docgemma.nodes.taken_against import of_taken, with_basis
from docgemma.rules.chart_entries import results_to_weigh
from docgemma.rules.chart_notes import beside, not_taken, of_notes
from docgemma.rules.conditions import check_conditions
from docgemma.rules.dose_answer import maxima_for
from docgemma.rules.dose_check import WITHIN, check_dose, doses_of_parts, reduced_for
from docgemma.rules.dose_rows import Order, amount_in, one_dose, route_of, told_amount
from docgemma.rules.drug_classes import class_mates
from docgemma.rules.known import NOTHING, replaced
from docgemma.rules.order_check import (
    CONTRAINDICATED,
    MAJOR,
    MODERATE,
    NO_RULES,
    NOTE,
    OF_CLASS,
    UNCHECKED,
    Finding,
    check_allergy_entry,
    check_order,
    shown,
)
from docgemma.rules.override import override, override_text, ranked
from docgemma.rules.patient_state import UNKNOWN, PatientState, as_told, patient_state, with_told
from docgemma.rules.plan import NOT_SPECIFIED
from docgemma.rules.typed import no_allergies_line, typed_lines
from docgemma.text.courses import AS_WRITTEN
from docgemma.text.drugs import ingredients, ingredients_in_order
from docgemma.text.frequency import times_per_day
from docgemma.text.quoted import NOT_VERIFIED
from docgemma.text.said import parted
from docgemma.text.words import listed, names, plain
from docgemma.tools.base import ToolContext, clip
from docgemma.tools.records import active_ingredients, chart_data

NO_FREQUENCY = "No frequency is given: say how often, or once."
BOXED = "Boxed warning of"
RETRACTS = "The note takes back something that it says: edit it to what is meant, it is saved as it stands."
MATES = 3  # members of a class that have to agree
OWN = ("Allergy", "Duplicate", "Possible duplicate", "The dose")  # findings on the drug itself, by its class too
FAR = 5  # times another dose of the same drug
BOX = 600  # characters of a boxed warning
OFFERED = 3  # alternatives
TRIED = 8  # drugs that are judged to find them


def is_checked(args: dict[str, Any]) -> bool:
    """Whether a write is judged at all: an order or an allergy is, a note is not."""
    return "medication_name" in args or "substance" in args


def without_unsaid(args: dict[str, Any], context: Context) -> dict[str, Any]:
    """An order's arguments without a frequency that nobody said, so that it is asked for; where the patient takes the
    drug already, the card says what is taken and that nothing was said."""
    chart = chart_of(args, context) if args.get("frequency") == NOT_SPECIFIED else None
    mine = ingredients(str(args.get("medication_name")), context.drugs)
    if chart is None or (args.get("dosage") and mine & active_ingredients(chart, context.drugs)):
        return args
    return {name: value for name, value in args.items() if name != "frequency"}


def chart_of(args: dict[str, Any], context: Context) -> dict[str, Any] | None:
    """The patient's chart; None where it cannot be read: the rules then say that nothing could be checked."""
    try:
        stored = context.store.chart(args.get("patient_id") or "")
    except StoreError:
        return None
    return chart_data(stored) if stored else None


def findings_for(args: dict[str, Any], context: Context) -> list[str]:
    """The lines of `judge`, the worst first; what could not be checked is the last line."""
    return shown(judge(args, context))


def judge(args: dict[str, Any], context: Context) -> list[Finding]:
    """The safety findings for an order or an allergy; for a note those on what it stops or begins; a death first."""
    chart = chart_of(args, context)
    if not is_checked(args):
        judged = _of_note(args.get("note_text", ""), args, chart, context) if chart else []
    elif "medication_name" in args:
        judged = [*order_findings(args, chart, context), *_boxed(args, context), *_warnings(args, context)]
        if chart:
            patient = as_told(args.get("told") or "", patient_state(chart, date.today()))
            judged = [*_together(args, chart, patient, context), *of_taken(args, chart, patient, context), *judged]
    else:
        judged = check_allergy_entry(args["substance"], chart, context.drugs)
    died = Finding(CONTRAINDICATED if is_checked(args) else MAJOR, "This patient is recorded as deceased.")
    return [died, *judged] if chart and chart["deceased"] else judged


def _of_note(text: str, args: dict[str, Any], chart: dict[str, Any], context: Context) -> list[Finding]:
    """What is stopped and not taken; what is grave about a drug that is begun."""
    found = [Finding(MODERATE, RETRACTS)] if names(listed("request_words", "retracting"), text) else []
    denied = no_allergies_line(replaced(NOTHING, said=text), chart)
    found += [*(Finding(MAJOR, line) for line in denied), *not_taken(text, chart, context.drugs)]
    altered = beside(text, "altering", context.drugs)
    typed = typed_lines(replaced(NOTHING, said=text), {**chart, "vitals": []}, date.today()) if altered else []
    found += [Finding(MODERATE, line) for line in typed if "latest" in line]
    for drug in dict.fromkeys([*beside(text, "beginning", context.drugs), *altered]):
        clause = parted(text.partition(drug)[2]).partition("\n")[0] if drug in altered else ""
        dose = clause.strip().removeprefix("to ") if amount_in(clause) else ""
        order = {**args, "medication_name": drug, "dosage": dose, "frequency": dose}
        orders = [order, {**order, "told": ""}] if dose else [order]  # against the chart's results too
        grave = (item for one in orders for item in order_findings(one, chart, context) if item.rank <= MAJOR)
        found += [item._replace(text=f"{drug}: {item.text}") for item in grave if not item.text.startswith("Duplicate")]
    return found


def _boxed(args: dict[str, Any], context: Context) -> list[Finding]:
    """The boxed warning of the ordered drug, but where it is of another form: tablets of phenytoin have none."""
    parts, found = ("medication_name", "dosage", "frequency", "notes"), list[Finding]()
    order = " ".join(str(args.get(part) or "") for part in parts)
    for label in _labels(args, context):
        box = clip((label.boxed_warning or "").rstrip("."), BOX)
        form, route = (route_of(text) for text in (box.partition(":")[0], order))
        if box and ("no boxed warning" not in box or form == (route or "oral")):
            found.append(Finding(MODERATE, f"{BOXED} {label.name}: {box.rstrip('.')}.", basis=label.basis))
    return found


def _warnings(args: dict[str, Any], context: Context) -> list[Finding]:
    """The warnings of the ordered drug's label, on one line; first what the patient must not drink with it."""
    found = []
    for label in _labels(args, context):
        drinks = [text for text in label.contraindications if names(["alcohol"], text)]
        told = clip("; ".join(text.rstrip(".") for text in [*drinks, *label.warnings]), BOX)
        found += [Finding(NOTE, f"Label warnings of {label.name}: {told}.", basis=label.basis)] if told else []
    return found


def _labels(args: dict[str, Any], context: Context) -> list[DrugLabel]:
    """The label of the ordered drug; of a combination without one those of its ingredients."""
    drug = args["medication_name"]
    names = (label_of(name, context) for name in ingredients_in_order(drug, context.drugs))
    return [own] if (own := label_of(drug, context)) else [label for label in names if label]


def maxima(args: dict[str, Any], context: Context) -> list[Finding]:
    """The most of a drug for the patient, where a dose is still to be said: of a child by weight."""
    chart = chart_of(args, context)
    patient = as_told(args.get("told") or "", patient_state(chart, date.today()) if chart else UNKNOWN)
    parts = ingredients_in_order(args["medication_name"], context.drugs)
    told = maxima_for(doses_of(parts[0]), patient, "", child=False) if len(parts) == 1 and not args["dosage"] else []
    return [Finding(NOTE, f"{parts[0].capitalize()} at most, {line}.", basis=NOT_VERIFIED) for line in told]


def findings_outside(args: dict[str, Any], tools: ToolContext) -> list[str] | None:
    """The same check outside of a graph, for the MCP server; None where nothing is checked."""
    return findings_for(args, _outside(tools)) if is_checked(args) else None


def override_outside(args: dict[str, Any], tools: ToolContext) -> str:
    """What a write that is confirmed outside of a graph was confirmed despite; nobody is asked for a reason there."""
    return override_text(override(ranked(judge(args, _outside(tools)))))


def _outside(tools: ToolContext) -> Context:
    gate = SimpleNamespace(
        store=tools.store, knowledge=tools.knowledge, settings=tools.settings, drugs=load_drug_names()
    )
    return cast(Context, gate)


def alternatives(args: dict[str, Any], context: Context) -> list[str]:
    """Up to three drugs of the ordered one's class that raise neither a contraindicated nor a major finding.

    Each passes the same gate, without a dose: the dose is another drug's. One whose interactions could not be looked up
    is none.
    """
    if "medication_name" not in args:
        return []
    chart, found = chart_of(args, context), list[tuple[int, str]]()
    drug, bare = args["medication_name"], {**args, "dosage": "", "frequency": ""}
    known = [name for name in class_mates(ingredients(drug, context.drugs), alike=True) if chart and doses_of(name)]
    if all(finding.rank > MAJOR for finding in order_findings(bare, chart, context)):
        known = []  # the dose is what is wrong, not the drug
    for name in known[:TRIED]:
        judged = order_findings({**bare, "medication_name": name}, chart, context)
        texts = [finding.text for finding in judged if finding.rank == UNCHECKED]
        if all(finding.rank > MAJOR for finding in judged) and not any("interaction" in text for text in texts):
            found.append((sum(finding.rank == MODERATE for finding in judged), name))
    return [name for _, name in sorted(found, key=lambda item: item[0])][:OFFERED]


def order_findings(args: dict[str, Any], chart: dict[str, Any] | None, context: Context) -> list[Finding]:
    """What speaks against an order."""
    drug = args["medication_name"]
    pairs = check_interactions(drug, chart["medications"] if chart else [], context)
    told = "; ".join(filter(None, [args.get("told"), args.get("notes")]))  # "CrCl 28" counts before what is recorded
    patient = as_told(told, patient_state(chart, date.today())) if chart else UNKNOWN
    findings = check_order(drug, chart, pairs, context.drugs, label_of(drug, context))
    findings += _of_patient(args, patient, context)
    if args["frequency"] == NOT_SPECIFIED != args["dosage"]:  # an alternative has neither until they are filled in
        findings.append(Finding(MAJOR, NO_FREQUENCY))
    if chart:
        parts = ingredients(drug, context.drugs)
        findings += check_told(drug, told, chart, context, args.get("others") or ())
        findings += of_notes(parts, chart)
        findings += [Finding(NOTE, line) for line in standing_interactions(chart, context)[:2]]
        same = [item for item in chart["medications"] if parts & ingredients(item["name"], context.drugs)]
        findings += _unlike(args, [item for item in same if item["active"]], context)
        reasons = [str(args.get("notes") or ""), *(str(item.get("reason") or "") for item in same if item["active"])]
        findings += [Finding(NOTE, results_to_weigh(with_told(chart, patient), reasons))] if chart["labs"] else []
        findings += _of_class(args, chart, context) if any(NO_RULES in item.text for item in findings) else []
    never = any(finding.text.startswith("Contraindicated (") for finding in findings)  # no dose is within a maximum
    return [finding for finding in findings if not (never and WITHIN in finding.text)]


def _unlike(args: dict[str, Any], taken: list[dict[str, Any]], context: Context) -> list[Finding]:
    """That a dose is many times every recorded one of the same drug, "60 units" beside 6 units, or a small part of it,
    which may be a start."""
    dosage, parts = args["dosage"], ingredients(args["medication_name"], context.drugs)
    mine = one_dose(dosage, args["frequency"])
    same = [item for item in taken if ingredients(item["name"], context.drugs) == parts]
    amounts = [(mine, amount) for item in same if mine and (amount := amount_in(item["dosage"] or ""))]
    far = [
        (one[0], other[0])
        for one, other in amounts
        if one[1] == other[1] and max(one, other)[0] >= FAR * min(one, other)[0]
    ]
    if not same or len(far) < len(same):
        return []
    held = "; ".join(f"{item['name']} {item['dosage']}" for item in same)
    if all(one < other for one, other in far):
        return [Finding(NOTE, f"{dosage} is much less than the dose that is taken ({held}).")]
    return [Finding(MAJOR, f"{dosage} is far above the dose that is taken ({held}): check the amount and the unit.")]


def _of_patient(args: dict[str, Any], patient: PatientState, context: Context) -> list[Finding]:
    """Conditions and dose: of each ingredient, and of the product where it has rows of its own."""
    drug, dose, said = args["medication_name"], args["dosage"], args.get("notes") or ""
    if args["frequency"] == AS_WRITTEN:  # one dose and then another: each is held against the limits
        halves = ({**args, "dosage": half, "frequency": half} for half in dose.split(" then "))
        return list(dict.fromkeys(item for half in halves for item in _of_patient(half, patient, context)))
    behind = "".join(plain(args.get("told") or "").partition(plain(drug))[2].split()[:1])
    said += f" {behind}" if route_of(behind) else ""  # "fentanyl patch"
    order = f"{drug} {dose} {args['frequency']} {said}"
    parts = ingredients_in_order(drug, context.drugs)
    several = [product_of(parts)] if len(parts) > 1 else []
    names = [_stored(name, context) for name in (*several, *parts)]
    rows = [row for name in dict.fromkeys(names) for row in conditions_of(name) if not (several and row.get("alone"))]
    findings = check_conditions(drug, with_basis(rows, context), patient, route_of(order), order)
    if not rows:
        findings.append(Finding(UNCHECKED, f"problems, kidney function and age ({NO_RULES} {drug} are stored)"))
    limits = doses_of(names[0])
    if not dose:
        return [*findings, *reduced_for(Order(drug, "", "", order, None, None, patient), limits)]
    if several:
        own = limits if names[0].count(" and ") == len(parts) - 1 else []
        rows_of = {part: doses_of(name) for part, name in zip(parts, names[1:], strict=True)}
        doses = doses_of_parts(drug, dose, own, rows_of)
        if not doses:
            findings.append(Finding(UNCHECKED, f"the dose of {drug} (how much of each ingredient is not known)"))
    else:
        if not limits and (label := label_of(drug, context)):  # the label's maximum stands in where none are stored
            limits = [{"max_day": label.max_daily_dose, "of_label": True, "basis": {"max_day": label.basis}}]
        doses = [(drug, dose, limits)]
    for name, amount, held in doses:
        held = with_basis(held, context)
        findings += check_dose(name, amount, args["frequency"], rows=held, patient=patient, said=said)
    return findings


def _of_class(args: dict[str, Any], chart: dict[str, Any], context: Context) -> list[Finding]:
    """What speaks alike against members of its class, where of the drug itself nothing is stored: "ertapenem"."""
    drug = args["medication_name"]
    mates = [name for name in class_mates(ingredients(drug, context.drugs)) if conditions_of(name)][:MATES]
    orders = ({**args, "medication_name": mate, "dosage": "", "frequency": ""} for mate in mates)
    judged = ([item for item in order_findings(order, chart, context) if item.rank <= MODERATE] for order in orders)
    told = ([item for item in items if not item.text.startswith(OWN)] for items in judged)
    found = [{(item.first or item.text).partition(":")[0]: item for item in items} for items in told]
    shared = [item for about, item in (found[0] if found else {}).items() if all(about in other for other in found)]
    says = f"Of {drug}{OF_CLASS}; of {mates[0]}, of its class: " if mates else ""
    return [item._replace(rank=max(item.rank, MAJOR), text=says + item.text, first="") for item in shared]


def _together(args: dict[str, Any], chart: dict[str, Any], patient: PatientState, context: Context) -> list[Finding]:
    """Each ingredient of which an order and active medicines come to more than the maximum of a day."""
    drug, found = args["medication_name"], list[Finding]()
    active = ((item["name"], item["dosage"] or "") for item in chart["medications"] if item["active"])
    given = [(drug, args["dosage"], args["frequency"]), *((name, dose, dose) for name, dose in active)]
    for part in ingredients_in_order(drug, context.drugs):
        daily = []
        for name, dose, frequency in (one for one in given if part in ingredients(one[0], context.drugs)):
            parts = {one: doses_of(_stored(one, context)) for one in ingredients_in_order(name, context.drugs)}
            held = doses_of_parts("", dose, [], parts) if len(parts) > 1 else [(f"{part} in ", dose, [])]
            amount = amount_in("".join(text for label, text, _ in held if label == f"{part} in "))
            often = times_per_day(frequency)
            known = amount and often is not None and not 0 < often < 1
            daily.append((amount[0] * (often or 1), amount[1]) if amount and known else (Decimal(0), ""))
        units = {unit for _, unit in daily}
        if len(daily) > 1 and len(units) == 1 and "" not in units:
            total = told_amount((sum((value for value, _ in daily), Decimal(0)), units.pop()))
            rows = with_basis(doses_of(_stored(part, context)), context)
            judged = check_dose(
                part, total, "once daily", rows=rows, patient=patient, said=f"{drug} {args.get('notes')}"
            )
            others = " and ".join(
                f"{name} {dose}" for name, dose, _ in given[1:] if part in ingredients(name, context.drugs)
            )
            whole = f"{args['dosage']} {args['frequency']} and the active {others} come to {total} of {part}"
            above = (item for item in judged if f"once daily is {total} a day" in item.text and ", above" in item.text)
            found += [item._replace(text=item.text.replace(f"{total} once daily is {total}", whole)) for item in above]
    return found


def _stored(name: str, context: Context) -> str:
    """The name under which rules are stored: the dictionary's valproic acid is valproate there."""
    label = None if conditions_of(name) or doses_of(name) else label_of(name, context)
    return product_of(label.name.split(" and ")) if label else name
