"""Find what of a request the answer does not serve, and say it with the reason: nothing is dropped in silence. Pure."""

from collections.abc import Iterator

from docgemma.reading.drugs import said_for
from docgemma.reading.labels import TOPICS, WRITES
from docgemma.reading.terms import everyday, said_in
from docgemma.rules import known
from docgemma.rules.chart_answer import vaccines_asked
from docgemma.rules.chart_rest import rest_told
from docgemma.rules.dose_rows import route_of
from docgemma.rules.refusal import cannot_do
from docgemma.rules.unheard import halts
from docgemma.rules.unmatched import unmatched_clauses
from docgemma.state import AgentState, Request
from docgemma.text.drugs import DOSE_NEXT, WORD
from docgemma.text.frequency import times_per_day
from docgemma.text.said import clauses
from docgemma.text.words import listed, names, plain

NO_SUCH_DRUG = "not recognised as a drug"
NOT_CHECKED = "{}, so it was not checked: write its full name"
UNSEEN = "no image is attached"
NO_VACCINE_CHECK = "not worked out here for any vaccine, live ones too"
NO_STUDY = "no study of this name is in the collection"
OTHER_STUDY = "the article of this name says nothing of {}: it may be another study, and yours not in the collection"
NOT_COMPARED = "who could be in a published study is not compared with a chart here"
NOT_ANSWERED = "Not answered: {ask} ({reason})."
JUDGED = "this needs a clinician's judgement; what the record holds is above"
UNMATCHED = "Not answered as such, since no entry has these words (look above for it): {}."
BEYOND = (
    "outside what this assistant does: it cannot call, book, refer, order tests, send or print; it can look up, check, "
    "and prepare a note that asks for it"
)
WORDS = {
    "labs": "laboratory results", "meds": "medications", "alg": "allergies", "prob": "problems", "vit": "vital signs",
    "notes": "notes", "imm": "immunizations", "soc": "social history", "demo": "patient details", "seen": "last visit",
    "chart": "chart", "gk": "general question", "oos": "other request", "img": "image",
    "cohort": "list of patients",
}  # fmt: skip
NO_WORDS = "no entry of the chart has these words"


def unserved(state: AgentState, request: Request, told: str, defined: bool) -> tuple[list[dict[str, str]], list[str]]:
    """{"ask", "reason"} of each part of the request that is not served, and how the answer says it; `told` is the
    answer so far, `defined` whether a definition that was asked for is told."""
    folded = plain(told)
    missing = unanswered(state, request, defined, folded)
    left = [item for item in missing if item["reason"] not in (UNSEEN, BEYOND if cannot_do(request) else UNSEEN)]
    lines = [NOT_ANSWERED.format(**item) for item in left]
    parts = _unmatched(state, request, "\n".join([folded, *lines]))
    lines += [UNMATCHED.format("; ".join(parts))] if parts else []
    return [*missing, *({"ask": part, "reason": NO_WORDS} for part in parts)], lines


def unanswered(state: AgentState, request: Request, defined: bool, told: str) -> list[dict[str, str]]:
    """Each ask that nothing of this turn serves, and each name that is no known drug, with the reason."""
    read = {item["tool_name"] for item in state.get("tool_results") or []}
    judged = "may" in request["asks"] and bool(known.drugs(state))  # "cefalexin for it then?": whether it suits
    chart, searched = "get_patient_chart" in read, "search_patient" in read
    reasons = {
        "gk": "general medical knowledge is not in the offline sources" if read and not (defined or judged) else "",
        "oos": BEYOND if read else "",
        "cohort": "one chart at a time" if read else "",
        "img": UNSEEN if "analyze_medical_image" not in read else "",
    }
    if chart and not known.charts(state):
        reasons |= dict.fromkeys(TOPICS, "the chart could not be read")
    elif not chart and not searched:
        reasons |= dict.fromkeys(TOPICS, "no patient is known here")
    found = [{"ask": WORDS[ask], "reason": reasons[ask]} for ask in request["asks"] if reasons.get(ask)]
    parts = clauses(request["said"]) if known.charts(state) and not {*WRITES, "change"} & set(request["asks"]) else []
    asked = [(part, kind) for part in parts for kind in said_in(part, "judgements")]
    checked = judged or "gk" in request["asks"]
    left = [
        part for part, kind in asked if (kind.get("whole") or not checked) and not names(kind.get("told", []), told)
    ]
    stops = halts(request, asked=True) if known.charts(state) and "change" not in request["asks"] else []
    left += [part for part in stops if not any(part in other or other in part for other in left)]
    found += [{"ask": f"“{part}”", "reason": JUDGED} for part in left]
    words = {*plain(request["said"]).split()}
    if known.charts(state) and words & listed("request_words", "may_have") and vaccines_asked(request):
        found.append({"ask": "whether the vaccine suits", "reason": NO_VACCINE_CHECK})
    articles = "".join(item["formatted_result"] for item in known.made(state, "search_medical_literature"))
    missed = [name for name in request.get("studies", []) if plain(name) not in plain(articles)]
    found += [{"ask": name, "reason": NO_STUDY} for name in missed if articles]
    about = [] if known.charts(state) else [drug for drug in request["drugs"] if drug["how"] in ("named", "short")]
    said = [word for drug in about for word in (drug["said"], drug["name"], drug.get("generic", ""))]
    if articles and about and not (missed or any(word and plain(word) in plain(articles) for word in said)):
        other = OTHER_STUDY.format(about[0]["said"])  # one acronym, two studies
        found += [{"ask": name, "reason": other} for name in request.get("studies", [])]
    # which criteria of registered trials a chart speaks to is told
    untold = articles or (known.made(state, "find_clinical_trials") and not known.charts(state))
    if untold and words & listed("request_words", "eligible"):
        found.append({"ask": "whether it applies", "reason": NOT_COMPARED})
    unknown = [drug["said"] for drug in request["drugs"] if drug["how"] == "unknown"]
    unknown = [said for said in unknown if not said_in(said, "immunizations")]  # the brand of a vaccine
    unknown = [said for said in unknown if f" {plain(said)} " not in f" {told} "]
    unknown += _unlinked_drugs(request)
    readings = {said: said_for("ambiguous").get(plain(said), {}).get("readings") for said in unknown}
    why = {said: f"may mean {' or '.join(names)}" if names else NO_SUCH_DRUG for said, names in readings.items()}
    return [*found, *({"ask": said, "reason": NOT_CHECKED.format(reason)} for said, reason in why.items())]


def _unlinked_drugs(request: Request) -> Iterator[str]:
    """Abbreviations of a drug check that name no known drug: "QZX 50 mg", "ZZT with warfarin", "XYZ for Smith?"; what
    may mean several drugs in small letters too, "aza and allopurinol"."""
    text, linked = f"{request['said']} ", [plain(drug["said"]) for drug in request["drugs"]]
    others = [*(patient["said"] for patient in request["patients"]), *request["unclear"], *request["conditions"]]
    terms = listed("drug_words", "procedures") | listed("drug_words", "forms") | listed("request_words", "no_drugs")
    terms |= {*everyday(), *said_for("conditions"), *said_for("groups")} - {*said_for("ambiguous")}
    terms |= {*plain(" ".join([*linked, *others])).split()}
    for word in WORD.finditer(text) if {"may", "ddi", "safe"} & set(request["asks"]) and not text.isupper() else ():
        said, written = plain(word.group()), word.group()
        capitals = written.isalpha() and written.isupper() and 1 < len(said) < 6 and not route_of(said)
        if said in terms or not (capitals or said in said_for("ambiguous")) or times_per_day(said) is not None:
            continue
        before, behind = f" {plain(text[: word.start()])}", f"{plain(text[word.end() :])} "
        links = [(f" {drug} {by}", f"{by} {drug} ") for drug in linked for by in listed("request_words", "joining")]
        joined = any(before.endswith(left) or behind.startswith(right) for left, right in links)
        given = before.split(" ")[-1] in listed("request_words", "beginning") or behind.startswith(("for ", "with "))
        if joined or (capitals and given) or DOSE_NEXT.match(text, word.end()):
            yield written


def _unmatched(state: AgentState, request: Request, told: str) -> list[str]:
    """Parts of the message of which nothing stands in the answer, where one whole chart is told."""
    whole = len(known.charts(state)) == 1 and rest_told(request) and not set(request["asks"]) & set(WRITES)
    return [f"“{clause}”" for clause in unmatched_clauses(request, told)] if whole else []
