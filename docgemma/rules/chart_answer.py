"""What a chart says to what was asked of it, the asked-for first. Pure.

Every sentence is composed from the chart's own entries. Which entries are meant is decided by the synonyms of
`data/clinical`, by names of drugs, and by the words of the entries themselves.
"""

from collections.abc import Iterable, Sequence
from datetime import date

from docgemma.reading.drugs import said_for
from docgemma.reading.labels import TOPICS
from docgemma.reading.terms import measure_named, measures_in, parts_of, said_in, topics_in
from docgemma.rules.chart_entries import (
    NOTES_SHOWN,
    SECTIONS,
    Chart,
    Entry,
    Line,
    followed,
    levels,
    lines_of,
    notes_naming,
    section,
    to_weigh,
)
from docgemma.rules.derived import derived, in_other_unit
from docgemma.rules.order_check import UNCHECKED, check_order_allergies
from docgemma.state import Request
from docgemma.text.drugs import DrugNames, ingredients
from docgemma.text.words import clinical, listed, names, plain

FEW = 3
ABSENT = "Not among the results: "
UNLISTED = "is not among the recorded medications."
SHORT = frozenset(["alg", "meds", "prob", "imm", "soc"])  # sections that are given whole, whatever was asked of them
RESULTS = frozenset({"labs", "vit"})
WHOLE = {"labs": "labs", "vitals": "vit"}  # topic of `data/clinical/topics.yaml` -> ask
# topics of which a part may be asked for -> what the part is called where none is recorded
KINDS = {
    "imm": "No {} immunization is recorded.", "soc": "No {} status is recorded.", "notes": "No {} note is recorded.",
    "meds": "No active medication is listed as: {}.",
}  # fmt: skip
ACTIVE_OF = "Active {} ({}): {}."  # a group of medicines, how many, and each
NOT_WORKED_OUT = "A score is not worked out here: {}{}."
NO_PROBLEM = "No problem is listed as: {}."


def chart_lines(request: Request, chart: Chart, drugs: DrugNames, today: date | None = None) -> list[str]:
    """The answer from one chart, a sentence a line, the asked-for first."""
    asks = [ask for ask in request["asks"] if ask in TOPICS]
    lines: list[str] = []
    served: set[str] = set()
    written = {order["drug"] for order in request["orders"]}  # what is ordered is not asked for
    named = [drug for drug in request["drugs"] if drug["how"] != "food" and drug["name"] not in written]
    if "change" in request["asks"] and named:
        asks = [ask for ask in asks if ask not in ("meds", "alg")]
        mentioned = [line for drug in named for line in of_drugs([drug["name"]], chart, drugs, "alg", "meds")]
        lines += [*(line.text for line in mentioned), *_before_change(mentioned, chart)]
        named = []
    measured = [*_measures(request), *(drug["said"] for drug in named if asks)]
    if not measured and "meds" in asks:  # "why is he not on opioids"
        measured = [kind["name"] for kind in said_in(request["said"], "medications")]
    for measure in dict.fromkeys(measured):
        found, topics = _measure(measure, asks, chart, drugs)
        lines += found
        served |= topics
    if RESULTS & set(asks) and (results := measures_in(request["said"], sure=True)):
        lines += _measured(results, chart)
        served |= RESULTS
    vaccines = [] if request["notes"] else vaccines_asked(request)
    lines += [line for kind in vaccines for line in _kind("imm", kind, chart)]
    whole = {WHOLE[topic] for topic in topics_in(request["said"]) if topic in WHOLE}  # "bloods incl dig level"
    for ask in asks:
        if ask in {*SHORT, *whole} or ask not in {*served, *(["chart"] if lines else [])}:
            lines += section(ask, chart, today or date.today())
    shown = [line for line in lines_of(chart, *sorted(RESULTS)) if line.text in lines]
    lines += filter(None, (in_other_unit(line, request["said"]) for line in shown))
    if listed("request_words", "trending") & set(plain(request["said"]).split()):
        single = [line.name for line in shown if not line.item.get("earlier")]
        lines += [f"No earlier value is recorded: {', '.join(single)}."] if single else []
    lines += _said_elsewhere(request, chart)
    lines += [] if RESULTS & served else _followed(request["said"], chart)
    lines += [] if request["orders"] or request["notes"] else _beyond(request, chart, drugs)
    return _absent_once(list(dict.fromkeys(lines)))


def vaccines_asked(request: Request) -> list[Entry]:
    """The vaccines that are named, where vaccines are asked for."""
    asked = "imm" in request["asks"] or "immunizations" in topics_in(request["said"])
    return said_in(request["said"], "immunizations") if asked else []


def _beyond(request: Request, chart: Chart, drugs: DrugNames) -> list[str]:
    """What answers a question beyond a value ("her goal?", "next one due?"): a note, a section, or that none does."""
    lines: list[str] = []
    named = [*request["measures"], *(drug["name"] for drug in request["drugs"])]
    taken = [line.name for line in of_drugs(named, chart, drugs, "meds")]
    for kind in [*said_in(request["said"], "beyond"), *said_in(request["said"], "judgements")]:
        for ask in (ask for ask in kind.get("sections", []) if ask not in request["asks"]):
            lines += section(ask, chart, date.today())
        notes = notes_naming(chart, kind.get("match", []))
        none = kind.get("none", "")
        for name in taken if "{}" in none else [""] if none else []:
            lines += [text for text in notes if not name or names([plain(name)], text)][:1] or [none.format(name)]
    return lines


def _measures(request: Request) -> list[str]:
    reaction = request["details"].get("reaction", "") if "prob" in request["asks"] else ""  # "when was her angioedema"
    said = [*request["measures"], *([reaction] if reaction else [])]
    return [measure for measure in said if plain(measure) not in listed("questions", "no_measure")]


def _before_change(mentioned: Sequence[Line], chart: Chart) -> list[str]:
    """What to weigh before these medicines are stopped or changed: what each is for, the results that bear on it."""
    taken = [line.item for line in lines_of(chart, "meds") if line in mentioned and line.item.get("reason")]
    told = [f"{item['name']} is recorded for {item['reason']}" for item in taken if item["active"]]
    weighed = to_weigh(chart, [item["reason"] for item in taken]) if taken else []
    lines = [f"Before a change: {'; '.join(told)}. The prescriber weighs that."] if told else []
    return [*lines, *(line.text for line in lines_of(chart, "labs") if line.item in weighed)]


def _absent_once(lines: list[str]) -> list[str]:
    """The lines with everything that is not among the results in one of them, the last."""
    absent = [line.removeprefix(ABSENT).removesuffix(".") for line in lines if line.startswith(ABSENT)]
    named = dict.fromkeys(name for told in absent for name in told.split(", "))
    others = [line for line in lines if not line.startswith(ABSENT)]
    return [*others, *([f"{ABSENT}{', '.join(named)}."] if named else [])]


def _followed(said: str, chart: Chart) -> list[str]:
    """The results by which a problem is followed that the patient has and the question names: "gout, at target?"."""
    active = [line.name for line in lines_of(chart, "prob") if line.item["active"]]
    wanted = followed([said]) & followed(active)
    return [line.text for line in lines_of(chart, "labs", "vit") if measure_named(line.name) in wanted]


def _said_elsewhere(request: Request, chart: Chart) -> list[str]:
    """Problems and notes that have a telling word of the request: "falls", "left leg"."""
    words = _telling(" ".join(request["telling"]))
    words += [plain(drug["name"]) for drug in request["drugs"] if drug["how"] in ("named", "short", "near")]
    return [line.text for line in lines_of(chart, "prob", "notes") if names(words, _words_of(line))][:FEW]


def _measure(measure: str, asks: Sequence[str], chart: Chart, drugs: DrugNames) -> tuple[list[str], set[str]]:
    """What the chart says of one measure, drug, vaccine, problem or the like, and the asks that are served by it."""
    named = measures_in(measure)
    if not named and (spelt := said_for("conditions").get(plain(measure))):  # "PE"
        measure = spelt["name"]
    if not named and (vaccine := _kinds(measure, ["imm"], chart)):  # "menveo" is no allergen
        return vaccine
    if named and "meds" in asks and (group := _kinds(measure, ["meds"], chart)):  # "bp meds" is no blood pressure
        return group
    recorded = {measure_named(line.name) for line in lines_of(chart, "labs", "vit")}
    if not recorded & set(named):
        if drugs.find(measure) and not (RESULTS & set(asks) and named):
            return _taken(measure, asks, chart, drugs)
        if kinds := _kinds(measure, [ask for ask in asks if ask in KINDS], chart):
            return kinds
    if named:
        return _measured(named, chart), set(RESULTS)
    if ("alg" in asks or not asks) and (conflict := _conflict(measure, chart, drugs)):
        return conflict, {"alg"}
    said = _anywhere(measure, chart)
    if any(line.ask == "prob" for line in said):
        return [line.text for line in said], {"prob"}
    if "prob" in asks and (problem := _problem(measure, chart)):
        return problem, {"prob"}
    return _kinds(measure, KINDS, chart) or ([line.text for line in said], set())


def _kinds(measure: str, asks: Iterable[str], chart: Chart) -> tuple[list[str], set[str]] | None:
    """Parts of a topic that a measure names: the flu jab, smoking, the cardiology letter, the anticoagulants."""
    for ask in asks:
        if kinds := said_in(measure, SECTIONS[ask][0]):
            return [line for kind in kinds for line in _kind(ask, kind, chart)], {ask}
    return None


def _kind(ask: str, kind: Entry, chart: Chart) -> list[str]:
    """The entries of one part of a topic; for notes the others too, for what contradicts it may stand there."""
    match, none = kind["match"], [KINDS[ask].format(kind["name"])]
    fits = [line for line in lines_of(chart, ask) if names(match, line.name if ask == "notes" else line.text)]
    written = [line for line in lines_of(chart, "notes") if names(match, line.item["text"])]
    if ask == "meds":
        allergies = [line for line in lines_of(chart, "alg") if names(match, line.name)]
        active = [line.short.rstrip(".") for line in fits if line.item["active"]]
        said = [*match, kind["name"].removesuffix("s")]
        told = [line for line in lines_of(chart, "notes") if names(said, line.item["text"])]
        counted = [ACTIVE_OF.format(kind["name"], len(active), "; ".join(active))] if active else none
        return [*counted, *(line.text for line in [*fits, *allergies, *told[:2]])]
    if ask == "notes":
        if kind.get("report"):
            heads = [(line, f"{line.name}. {line.item['text'].partition('. ')[0]}") for line in lines_of(chart, ask)]
            fits = [line for line, head in heads if names(match, head) and not names(["order"], line.name)]
            none = [f"No report of it is recorded: {kind['name']}."]
        others = [line for line in lines_of(chart, "notes") if line not in fits]
        return [*([] if fits else none), *(line.text for line in [*fits, *others][:NOTES_SHOWN])]
    return [line.text for line in [*fits, *written[:2]] or _anywhere(kind["name"], chart)] or none


def _problem(measure: str, chart: Chart) -> list[str]:
    """Entries that speak of a problem that is asked for ("afib?"): problems, medicines for it, notes; else that none
    is listed."""
    asked = [entry for entry in clinical("problems")["problems"] if names(entry["chart"], measure)]
    known = [fragment for entry in asked for fragment in entry["chart"]]
    told = [line.text for line in lines_of(chart, "prob") if names(known, line.name)]
    told += [line.text for line in lines_of(chart, "meds") if names(known, str(line.item.get("reason") or ""))]
    told += notes_naming(chart, known)
    told += [line.text for line in _anywhere(measure, chart, "alg")]  # "when was her angioedema"
    return told or [NO_PROBLEM.format(entry["name"]) for entry in asked[:1]]


def _measured(wanted: Sequence[str], chart: Chart) -> list[str]:
    """The results of these measures, and in one line those of which none is recorded."""
    results = [(measure_named(line.name), line.text) for line in lines_of(chart, "labs", "vit", "soc")]
    lines = [text for name in wanted for measure, text in results if measure == name]
    missing = [name for name in wanted if name not in {measure for measure, _ in results}]
    written = {name: _anywhere(name, chart, "notes") for name in missing}  # "QTc 438 ms" of a note
    told = [line.text for found in written.values() for line in found]
    worked_out = {name: derived(name, chart, date.today()) for name in missing}
    told += filter(None, worked_out.values())
    missing = [name for name in missing if not written[name] and not worked_out[name]]
    for score in missing:  # a score is not worked out; what of it is recorded is shown
        lines += [text for measure, text in results if measure in parts_of(score)]
        lacking = [part for part in parts_of(score) if part not in {measure for measure, _ in results}]
        without = f"; not recorded of it: {', '.join(lacking)}" if lacking else ""
        lines += [NOT_WORKED_OUT.format(score, without)] if parts_of(score) else []
    levels_of = [name for name in missing if name.endswith(" level")]
    if len(levels_of) > FEW:  # "his trough?" is not one of a dozen drugs
        missing = [*(name for name in missing if name not in levels_of), "drug levels"]
    return [*lines, *told, *([f"{ABSENT}{', '.join(missing)}."] if missing else [])]


def _taken(measure: str, asks: Sequence[str], chart: Chart, drugs: DrugNames) -> tuple[list[str], set[str]]:
    """A medicine that is asked for by name: taken, taken before, or not recorded; an allergy to it."""
    if "alg" in asks:
        return _conflict(measure, chart, drugs) or [f"No allergy to {measure} is recorded."], {"alg"}
    mine = [line.text for line in of_drugs([measure], chart, drugs, "meds", "alg")]
    if RESULTS & set(asks):  # "her last lithium"
        asked = ingredients(measure, drugs)
        mine = [line.text for line in levels(chart) if asked & ingredients(line.name.split()[0], drugs)] + mine
    none = f"{measure[:1].upper()}{measure[1:]} {UNLISTED}"
    return mine or [none], {"meds"} if mine else set()


def of_drugs(named: Iterable[str], chart: Chart, drugs: DrugNames, *asks: str) -> list[Line]:
    """The entries of these topics that are of one of these drugs, by brand or generic name, or of a more specific one:
    "insulin" is asked for, insulin NPH is taken."""
    asked = [set(part.split()) for name in named for part in ingredients(name, drugs)]
    theirs = ((line, [set(part.split()) for part in ingredients(line.name, drugs)]) for line in lines_of(chart, *asks))
    return [line for line, parts in theirs if any(mine <= other for mine in asked for other in parts)]


def _conflict(measure: str, chart: Chart, drugs: DrugNames) -> list[str]:
    """The allergy that a drug or class meets: "sulfa" is sulfamethoxazole's."""
    itself = [line.text for line in lines_of(chart, "alg") if plain(line.name) == plain(measure)]
    found = check_order_allergies(measure, chart["allergies"], drugs)
    return itself or [finding.text for finding in found if finding.rank != UNCHECKED][:1]


def _anywhere(measure: str, chart: Chart, *asks: str) -> list[Line]:
    """Entries, of these topics or of any, that have every telling word of a measure."""
    words = _telling(measure)
    listed = lines_of(chart, *(asks or ("soc", "labs", "vit", "prob", "meds", "alg", "notes"))) if words else []
    return [line for line in listed if all(names([word], _words_of(line)) for word in words)][:4]


def _words_of(line: Line) -> str:
    """What is searched for a word: of a note all of its text, of a problem its name, of others the sentence."""
    return str(line.item["text"]) if line.ask == "notes" else line.name if line.ask == "prob" else line.text


def _telling(text: str) -> list[str]:
    """The words of a text that say what is meant."""
    stop = listed("request_words", "stop") | listed("request_words", "persons") | listed("request_words", "chart")
    return [word for word in plain(text).split() if len(word) > 2 and word not in stop]
