"""Draw a trial search, for notebook 21. Needs the notebooks extra."""

from collections.abc import Sequence
from typing import Any

from docgemma.prescreen.concepts import relations
from docgemma.prescreen.records import Search

ORIGINS = {  # by how a term belongs to the patient; the others are of the concept graph
    "feedback": ("seen",), "expert": ("expert",), "note": ("is", "criteria", "comorbidity", "finding", "medicine"),
}  # fmt: skip


def origin(search: Search) -> str:
    """Where a search's term came from: note, feedback (trials found before), expert, or else the concept graph."""
    reason = search["why"].partition(": ")[2]
    begins = {name: tuple(relations()[one]["said"] for one in kinds) for name, kinds in ORIGINS.items()}
    return next((name for name, said in begins.items() if reason.startswith(said)), "concept graph")


def draw_search(searches: Sequence[Search], diagnosis: str) -> Any:
    """The search as a tree: patient, where terms came from, each search with its number and its new trials."""
    import matplotlib.pyplot as plt

    made = [(number, search) for number, search in enumerate(searches, 1) if search["tool"] == "search_trials"]
    made.sort(key=lambda pair: (origin(pair[1]), pair[0]))
    figure, axes = plt.subplots(figsize=(9, 1 + 0.27 * len(made)))
    places = {name: [y for y, (_, one) in enumerate(made) if origin(one) == name] for name in map(origin, searches)}
    for name, ys in places.items():
        middle = sum(ys) / max(1, len(ys))
        axes.plot([0.4, 1], [len(made) / 2, middle], color="#999", zorder=0)
        axes.text(1, middle, f"{name}: {len(ys)}", ha="center", va="center", bbox={"facecolor": "#e3f2fd"})
        for y in ys:
            axes.plot([1, 2], [middle, y], color="#bbb", zorder=0)
    for y, (number, search) in enumerate(made):
        term = next(str(value) for field, value in search["args"].items() if field != "page_size")
        found = len(search["new"])
        axes.text(2.02, y, f"{number}. {term}: {found} new", va="center", color="black" if found else "#777")
    axes.text(0.2, len(made) / 2, diagnosis, ha="center", va="center", bbox={"facecolor": "#fff3e0"})
    axes.set(xlim=(-0.2, 3.2), ylim=(len(made), -1))
    axes.axis("off")
    plt.close(figure)
    return figure
