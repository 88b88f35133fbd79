"""What a drug's label says to what was asked of it: the boxed warning first, each statement once. Pure."""

from typing import Any

from docgemma.reading.drugs import said_for
from docgemma.reading.terms import names, said_in
from docgemma.rules import known
from docgemma.rules.grounding import split
from docgemma.rules.layout import Fact, sentences
from docgemma.state import AgentState, Request, ToolResult
from docgemma.text.words import plain


def label_facts(item: ToolResult, request: Request, brief: bool) -> list[Fact]:
    """The label: its boxed warning, what was asked of it, then its contraindications, warnings and maximum dose."""
    data = item["result"]
    drug, most = data["drug"], data["max_daily_dose"]
    name = f"{drug[:1].upper()}{drug[1:]}"
    called = f"{name} (asked as {data['asked']})" if plain(data["asked"]) not in plain(drug) else name
    box = [Fact(text, f"{called} FDA boxed warning") for text, _ in split(f"{data['boxed_warning'].rstrip('.')}.")]
    box[0] = box[0]._replace(alone=f"{called} has an FDA boxed warning: {box[0].text}")
    if not data["has_boxed_warning"]:
        box = sentences([f"{called} has no boxed warning ({data['basis']})."])
    against = [Fact(f"{text.rstrip('.')}.", f"{name} contraindications") for text in data["contraindications"]]
    facts = against or sentences([f"{name}: no contraindications are listed in this source."])
    facts += [Fact(f"{text.rstrip('.')}.", f"{name} warnings") for text in data["warnings"]]
    more = [Fact(f"{most}.", f"{name} maximum adult daily dose")] if most else []
    more = more or sentences([f"No maximum daily dose of {drug} is in this source."])
    if data["interactions"]:
        more.append(Fact(f"{data['interactions'].rstrip('.')}.", f"{name} interactions"))
    told: list[Fact] = []
    for topic in [] if brief else topics_asked(request):
        found = [fact for fact in [*facts, *more] if names(topic["match"], fact.sentence)]
        absent = f"What is stored of the label of {drug} does not mention {topic['name']}."
        boxed = any(names(topic["match"], fact.sentence) for fact in box)
        told += found or ([] if boxed else sentences([absent]))
    fallback = [line for line in item["formatted_result"].splitlines() if line.startswith("The live service")]
    return [*box, *told, *facts, *([] if brief or told else more), *sentences(fallback)]


def topics_asked(request: Request) -> list[dict[str, Any]]:
    """What is asked of a label: entries of `data/clinical/label_topics.yaml`."""
    return said_in(" ; ".join([*request["measures"], request["said"]]), "label_topics")


def foods(state: AgentState, request: Request) -> list[str]:
    """Foods and habits that were named with a drug: listed as mattering for it, or not listed."""
    lines = []
    for food in (item for item in request["drugs"] if item["how"] == "food"):
        matters = {plain(name) for name in said_for("foods")[plain(food["name"])]["drugs"]}
        for drug in (item["result"]["drug"] for item in known.made(state, "check_drug_safety")):
            listed = plain(drug) in matters
            says = "is listed as affecting" if listed else "is not listed in this source as affecting"
            proof = "" if listed else ", which does not prove that it does not"
            lines.append(f"{food['said'].capitalize()} {says} {drug}{proof}; see the label's drug interactions.")
    return lines
