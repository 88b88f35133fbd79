"""The two drug tools: label safety, and interactions of every pair."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any

from docgemma.errors import ErrorType, ToolError
from docgemma.knowledge.base import Answer, Interaction, Knowledge
from docgemma.knowledge.drug_rules import conditions_of, doses_of, product_of
from docgemma.schemas import DrugInteractionArgs, DrugSafetyArgs
from docgemma.text.drugs import DrugNames, ingredients
from docgemma.tools.base import Tool, ToolContext, ToolOutput, bound, clip, fallback_line, joined, sentence

# gravest first; a curated source uses the single words, a label its own
GRAVITY = (
    ("contraindicated",),
    ("major", "severe", "do not", "must not", "should not", "never", "avoid", "not recommended"),
    ("moderate", "reduce", "lower", "decrease", "limit", "adjust", "dos", "severity not stated"),
    ("minor", "monitor", "caution", "increase", "risk"),
)
PAIRS = 7  # on a line that says that none are listed: it is never cut
LABEL_FACTS = (
    "brand_names", "drug_classes", "boxed_warning", "contraindications", "warnings", "interactions", "max_daily_dose",
    "reference", "effective", "basis",
)  # fmt: skip
NONE_LISTED = "none listed in this source, which does not prove that there is none."


def check_drug_safety(args: DrugSafetyArgs, context: ToolContext) -> ToolOutput:
    """Safety sections of one drug's label.

    Data (`DRUG_SAFETY.data`): `drug` (generic name), `asked` (as the clinician wrote it), `has_boxed_warning` (False:
    known absent), `max_daily_dose` ("" where the label states none), `effective` (ISO date of the label), `basis` (the
    label that was read, or "not verified").

    Raises:
        ToolError: `drug_not_in_database`, `ambiguous_drug_name` (with `suggestions`), or an outage.
    """
    answer = context.knowledge.label(args.drug_name)
    if not answer.records:
        raise ToolError(ErrorType.DRUG_NOT_IN_DATABASE, "no label", entity=args.drug_name)
    label = answer.records[0]
    data = {"drug": label.name, "asked": args.drug_name} | {name: getattr(label, name) for name in LABEL_FACTS}
    data |= {"has_boxed_warning": bool(label.boxed_warning), "fell_back": answer.fell_back}
    data["dose_rows"] = doses_of(product_of(label.name.split(" and ")))
    data["condition_rows"] = conditions_of(product_of(label.name.split(" and ")))
    return ToolOutput(data, answer.source, answer.as_of, links=_links([(label.name, label.reference)]))


def format_safety(data: dict[str, Any]) -> str:
    drug = _title(data["drug"])
    if box := data["boxed_warning"]:
        head, colon, rest = box.partition(":")  # a label's own box begins with its heading
        text = rest if colon and head.lower() in ("warning", "warnings", "boxed warning", "boxed warnings") else box
        first = f"{drug} has an FDA boxed warning: {clip(sentence(text), 480)}"
    else:
        first = f"{drug} has no boxed warning ({data['basis']})."
    dose, names, kind = data["max_daily_dose"], joined(data["brand_names"][:4]), joined(data["drug_classes"][:3])
    return bound(
        [
            first,
            *(f"{drug} contraindication: {sentence(clip(item, 200))}" for item in data["contraindications"][:6]),
            *(f"{drug} warning: {sentence(clip(item, 200))}" for item in data["warnings"][:6]),
            f"{drug} maximum adult daily dose: {sentence(dose)}" if dose else "",
            f"{drug} interactions: {sentence(clip(data['interactions'], 300))}" if data["interactions"] else "",
            f"{drug} is sold as {names}." if names else "",
            f"{drug} drug class: {kind}." if kind else "",
        ],
        closing=[fallback_line(data)],
    )


def check_drug_interactions(args: DrugInteractionArgs, context: ToolContext) -> ToolOutput:
    """Interactions of every pair among two to six drugs, the worst first.

    Data (`DRUG_INTERACTIONS.data`): `drugs` (generic names, in the order asked), `none_listed` (pairs without an entry
    in this source; never means safe), `not_checked` (drugs that this source does not know), `not_covered` (drugs that
    it knows and holds no interaction of). `empty` is True where no pair has an entry and every drug is known.

    Raises:
        ToolError: `missing_required_args` for fewer than two different drugs, `drug_not_in_database` where fewer
            than two are known, `ambiguous_drug_name`, or an outage.
    """
    asked = list(dict.fromkeys(" ".join(name.split()) for name in args.drug_names))
    answer, not_checked = interactions_of_known(asked, context.knowledge)
    drugs = list(dict.fromkeys(_generic(name, context) for name in asked if name not in not_checked))
    if len(drugs) < 2:
        raise ToolError(ErrorType.MISSING_REQUIRED_ARGS, "fewer than two drugs", missing_fields=["drug_names"])
    found = sorted(answer.records, key=lambda item: gravity(item.severity))
    data = {
        "drugs": drugs,
        "asked": args.drug_names,
        "interactions": [{**asdict(item), "drugs": list(item.drugs)} for item in found],
        "none_listed": _none_listed([name for name in drugs if name not in answer.not_covered], found, context),
        "not_checked": not_checked,
        "not_covered": list(answer.not_covered),
        "fell_back": answer.fell_back,
    }
    empty = not (found or not_checked or answer.not_covered)
    links = _links([(" + ".join(item.drugs), item.reference) for item in found])
    return ToolOutput(data, answer.source, answer.as_of, empty, links)


def interactions_of_known(names: list[str], knowledge: Knowledge) -> tuple[Answer[Interaction], list[str]]:
    """The interactions of these drugs, and the names that the source does not know: one must not hide the others.

    Raises:
        ToolError: fewer than two are known, one is ambiguous, or an outage.
    """
    names, unknown = list(names), list[str]()
    while True:
        try:
            return knowledge.interactions(names), unknown
        except ToolError as error:
            name = error.details.get("entity")
            if error.error_type is not ErrorType.DRUG_NOT_IN_DATABASE or name not in names or len(names) < 3:
                raise
            names.remove(name)
            unknown.append(name)


def between(
    records: Iterable[Interaction], taken: Sequence[frozenset[str]], drugs: DrugNames | None
) -> list[Interaction]:
    """Of each two medicines, by their ingredients, the gravest interaction: a combination has none with itself."""
    found: dict[tuple[frozenset[str], ...], Interaction] = {}
    for item in sorted(records, key=lambda item: gravity(item.severity)):
        one, other = (ingredients(name, drugs) for name in item.drugs[:2])
        for pair in combinations(taken, 2):
            if any(one & mine and other & theirs for mine, theirs in (pair, pair[::-1])):
                found.setdefault(pair, item)
    return list(dict.fromkeys(found.values()))


def _none_listed(drugs: list[str], found: list[Interaction], context: ToolContext) -> list[list[str]]:
    """Pairs without an entry. Where the source names a drug in a way that cannot be matched, none is claimed."""
    listed = {frozenset(_generic(name, context) for name in item.drugs) for item in found}
    if not frozenset().union(*listed) <= set(drugs):
        return []
    return [list(pair) for pair in combinations(drugs, 2) if frozenset(pair) not in listed]


def format_interactions(data: dict[str, Any]) -> str:
    lines, left = [], 1150
    for index, item in enumerate(data["interactions"], 1):
        reserve = 95 * (len(data["interactions"]) - index)  # every pair keeps its severity; the worst keep their reason
        lines.append(clip(_pair_line(item), max(95, min(420, left - reserve))))
        left -= len(lines[-1])
    unknown = [f"{_title(name)} was not found in this source; its interactions were not checked."
               for name in data["not_checked"]]  # fmt: skip
    unknown += [f"{_title(name)} is not covered: this source holds no interaction of it, so nothing was compared."
                for name in data["not_covered"]]  # fmt: skip
    pairs = [f"{a} with {b}" for a, b in data["none_listed"]]
    groups = pairs if len(pairs) <= 2 else ["; ".join(pairs[at : at + PAIRS]) for at in range(0, len(pairs), PAIRS)]
    none = [f"{_title(group)}: {NONE_LISTED}" for group in groups]
    return bound([*lines, *unknown, *none], closing=[fallback_line(data)])


def _pair_line(item: dict[str, Any]) -> str:
    severity, curated = item["severity"], [words[0] for words in GRAVITY]
    grade = f"{severity} interaction." if severity.lower() in curated else f"label wording: {severity}."
    parts = (grade, sentence(item["mechanism"]), sentence(item["management"]))
    return f"{_title(item['drugs'][0])} with {item['drugs'][1]}: {' '.join(part for part in parts if part)}"


def gravity(severity: str) -> int:
    """0 is the gravest; what says nothing known ranks with moderate."""
    text = severity.lower()
    return next((rank for rank, words in enumerate(GRAVITY) if any(word in text for word in words)), 2)


def _generic(name: str, context: ToolContext) -> str:
    """The generic name where the source knows it now, else the name itself: for comparing, not for deciding."""
    try:
        return context.knowledge.generic_name(name) or name.strip().lower()
    except ToolError:  # a name service that is down or in doubt must not undo an answer that is there
        return name.strip().lower()


def _title(name: str) -> str:
    return name[:1].upper() + name[1:]


def _links(items: list[tuple[str, str]]) -> list[dict[str, str]]:
    """References as sources: the text before a URL is the title."""
    links = []
    for name, reference in items:
        title, mark, url = reference.partition("https://")
        links.append({"title": title.strip(" ,;:") or name, "url": mark + url, "id": name})
    return links


DRUG_SAFETY = Tool(
    name="check_drug_safety",
    label="Drug Safety Report",
    signature="(drug_name: str)",
    description=(
        "Look up FDA boxed warnings, contraindications, and major safety alerts for a specific drug. Use when a "
        "clinician asks about drug safety, warnings, or whether a drug is safe for a particular patient."
    ),
    args=DrugSafetyArgs,
    example="Does amiodarone have any boxed warnings?",
    run=check_drug_safety,
    format=format_safety,
    no_answer="The drug label service did not respond. Nothing was checked.",
    needs="drug",
    outside=True,
    data={
        "drug": str, "asked": str, "brand_names": [str], "drug_classes": [str], "boxed_warning": str,
        "has_boxed_warning": bool, "contraindications": [str], "warnings": [str], "interactions": str,
        "max_daily_dose": str, "dose_rows": [dict], "condition_rows": [dict], "reference": str, "effective": str | None,
        "basis": str, "fell_back": str | None,
    },
)  # fmt: skip

DRUG_INTERACTIONS = Tool(
    name="check_drug_interactions",
    label="Drug Interaction Check",
    signature="(drug_names: list[str])",
    description=(
        "Check for known interactions between two or more drugs. Returns severity, mechanism, and clinical "
        "significance. Use when a clinician asks about combining medications or potential drug-drug interactions."
    ),
    args=DrugInteractionArgs,
    example="Can I combine clarithromycin with simvastatin?",
    run=check_drug_interactions,
    format=format_interactions,
    no_answer="The drug interaction service did not respond. Nothing was checked.",
    needs="drugs",
    outside=True,
    data={
        "drugs": [str], "asked": [str], "interactions": [Interaction],
        "none_listed": [[str]], "not_checked": [str], "not_covered": [str], "fell_back": str | None,
    },
)  # fmt: skip
