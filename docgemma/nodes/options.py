"""Check each drug of a group, or for a complaint, against a chart: "what antiemetic can he have?". It advises none."""

from datetime import date
from typing import Any

from docgemma.nodes.context import Context
from docgemma.nodes.write_findings import order_findings
from docgemma.reading.drugs import said_for
from docgemma.reading.terms import said_in
from docgemma.rules import known
from docgemma.rules.chart_entries import days_since
from docgemma.rules.lead import OPTIONS, VERDICTS
from docgemma.rules.order_check import MAJOR, MODERATE, Finding
from docgemma.state import AgentState
from docgemma.text.drugs import ingredients
from docgemma.text.words import clinical, plain
from docgemma.tools.records import active_ingredients

WORDS = {rank: verdict.casefold() for rank, verdict in VERDICTS.items()}
NONE = "no finding (which does not prove that it suits)"
DECISION = "Others were not checked; which one to give is a clinician's decision."
FEW, TRIED = 8, 16
REASONS = 4  # of one drug
LATELY = 60  # days


def options_checked(state: AgentState, chart: dict[str, Any], context: Context) -> list[str]:
    """How each drug stands for the patient, those without a finding first, and why; [] where none are asked for."""
    name, drugs = _asked(state, active_ingredients(chart, context.drugs), context)
    patient = chart["patient"]["id"]
    found: dict[str, list[str]] = {word: [] for word in (NONE, *reversed(WORDS.values()))}
    reasons = []
    for drug in drugs[:TRIED]:
        args = {"patient_id": patient, "medication_name": drug, "dosage": "", "frequency": "", "notes": ""}
        args["told"] = known.told(known.request(state))
        judged = [item for item in order_findings(args, chart, context) if item.rank in WORDS]
        if not judged and (given := _given(drug, chart, context)):
            judged = [Finding(MODERATE, given)]
        worst = min((item.rank for item in judged), default=MODERATE + 1)
        found[WORDS.get(worst, NONE)].append(drug)
        grave = sorted((item for item in judged if item.rank <= max(worst, MAJOR)), key=lambda item: item.rank)
        reasons += [f"{drug.capitalize()}: {item.text}{item.label}" for item in grave[:REASONS]]
    told = "; ".join(f"{word}: {', '.join(names)}" for word, names in found.items() if names)
    return [f"{OPTIONS}{name}: {told}. {DECISION}", *reasons] if drugs else []


def _given(drug: str, chart: dict[str, Any], context: Context) -> str:
    """That a drug was given lately and ended, "fosfomycin 3 g single dose on 2026-11-11": it may have failed."""
    mine, today = ingredients(drug, context.drugs), date.today()
    past = (
        item for item in chart["medications"] if not item["active"] and ingredients(item["name"], context.drugs) & mine
    )
    dated = ((item, str(item.get("started") or "")[:10]) for item in past)
    lately = [item for item, day in dated if len(day) == 10 and days_since(day, today) <= LATELY]
    told = [f"{item['name']} {item['dosage'] or ''}".strip() for item in lately[:1]]
    return f"it was given lately ({told[0]}, since {lately[0]['started'][:10]}): it may have failed." if told else ""


def _asked(state: AgentState, taken: frozenset[str], context: Context) -> tuple[str, list[str]]:
    """The group or complaint that options are asked for, and its drugs; ("", []) where none are, or a drug is named
    that is not `taken`: "which ppi, he's on plavix"."""
    request, history = known.request(state), state.get("history") or []
    known_drugs = [drug for drug in request["drugs"] if drug["how"] not in ("group", "unknown")]
    before = [drug["generic"] for drug in known_drugs if plain(drug["said"]) not in plain(request["said"])]
    others = [drug["name"] for drug in known_drugs if drug["generic"] not in before]
    named, text = any(not ingredients(name, context.drugs) <= taken for name in others), request["said"]
    for patient in (patient for patient in request["patients"] if patient["said"]):
        text = text.replace(patient["said"], "he")  # "which painkillers can Volkov have"
    if named or not said_in(text, "options"):
        return "", []
    said = f" {plain(request['said'])} "
    groups = [group for phrase, group in said_for("groups").items() if f" {phrase} " in said]
    texts = [request["said"], *(turn["user"] for turn in history[-1:] if not groups)]  # "what else can she have?"
    uses = next((uses for text in texts if (uses := said_in(text, "uses"))), [])
    if not (uses or groups):  # "ibuprofen ok?", "so what can i give": what else there is of the kind
        alike = [use for use in clinical("drug_groups")["uses"] if set(before) & set(use["drugs"])]
        return (alike[0]["of"], alike[0]["drugs"]) if alike else ("", [])
    for use in uses:
        if not groups or any(set(use["drugs"]) & set(group["drugs"]) for group in groups):
            return f"{use['of']} for {use['name']}", use["drugs"]
    usual = {name for use in clinical("drug_groups")["uses"] for name in use["drugs"]}  # of a long group
    drugs = groups[0]["drugs"] if groups else []
    some = [name for name in drugs if name in usual] if len(drugs) > FEW else []
    return (groups[0]["name"], some or drugs) if groups else ("", [])
