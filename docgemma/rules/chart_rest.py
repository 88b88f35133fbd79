"""Tell in a few lines what a chart holds beside the answer, so that nothing of it is left out without a word. Pure."""

from datetime import date

from docgemma.rules.chart_entries import NOTES_SHOWN, SECTIONS, UNREMARKABLE, Chart, Line, brief, lines_of, section
from docgemma.state import Request
from docgemma.text.words import plain

ALSO = "Also in the chart"
MOST = 8  # entries of a list; what is longer says how many more
# heading of each list, in the order in which it is read
HEADS = {
    "alg": "Allergies", "prob": "Problems", "meds": "Medicines", "labs": "Results", "vit": "Vital signs",
    "soc": "Social history", "imm": "Immunizations", "notes": "Notes",
}  # fmt: skip
NO_REST = frozenset({"demo", "find", "seen"})  # asks that a word or two answer


def rest_of_chart(request: Request, chart: Chart, told: str) -> list[str]:
    """A line for each list of the chart with the entries that are not told yet, what is out of range first; at the end
    the lists that have no entry at all. `told` is the answer so far."""
    if not rest_told(request):
        return []
    said, lines, empty = f" {plain(told)} ", [], []
    for ask, head in HEADS.items():
        key, _, none, _ = SECTIONS[ask]
        left = [line for line in lines_of(chart, ask) if f" {_key(line)} " not in said]
        left.sort(key=lambda line: ask == "labs" and line.item["flag"] in UNREMARKABLE)
        most = NOTES_SHOWN if ask == "notes" else MOST
        more = f"; and {len(left) - most} more" if len(left) > most else ""
        lines += [f"{head}: {'; '.join(_brief(line) for line in left[:most])}{more}."] if left else []
        if not chart[key] and plain(none.partition(",")[0]) not in said:
            lines += section(ask, chart, date.today()) if ask == "alg" else []
            empty += [head.casefold()] if ask != "alg" else []
    return [*lines, *([f"Nothing is recorded under: {', '.join(empty)}."] if empty else [])]


def rest_told(request: Request) -> bool:
    """Whether more is asked than who a patient is or when they were last seen."""
    return not request["asks"] or not set(request["asks"]) <= NO_REST


def _key(line: Line) -> str:
    """The words by which an entry is recognised in the answer."""
    item = line.item
    if line.ask in ("labs", "vit", "soc"):
        return plain(f"{item['name']} {item['value']}")
    return plain(f"{item['substance']} {item['reaction']}" if line.ask == "alg" else line.short)


def _brief(line: Line) -> str:
    """An entry in a few words: its value, dose or date, and that it is past."""
    item = line.item
    if line.ask in ("labs", "vit", "soc"):
        return ", ".join(filter(None, [brief(item), item["flag"] if item["flag"] not in UNREMARKABLE else ""]))
    told = f"{item['name']} {item['dosage']}".strip() if line.ask == "meds" else line.short.rstrip(".")
    return told if item.get("active", True) else f"{told} (no longer active)"
