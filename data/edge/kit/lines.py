"""The reader's training lines: `asks/polarity | text with {mark:span} [ @Patient] [ || message before]`, one a line.

`data/edge/README.md` lists the codes. A line of directives, `#unlabelled m r`, says which marks, or asks, the lines
below it leave out, so that their absence teaches nothing.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docgemma.reading.labels import ASKS, CHANNELS, POLARITY

MARKS = {
    "n": "name", "i": "id", "d": "drug", "ds": "drug", "di": "drug", "rx": "rx.drug", "q": "rx.dose", "r": "rx.route",
    "f": "rx.freq", "x": "rx.notes", "s": "alg.subst", "e": "alg.react", "v": "severity", "c": "condition",
    "st": "status", "l": "query", "t": "note.text", "k": "note.kind", "m": "measure", "nct": "id",
}  # fmt: skip
Row = dict[str, Any]


def rows(folder: Path) -> Iterator[Row]:
    """Every line of every file: `text, before, patient, asks {ask: 0 | 1}, polarity, spans [(channel, start, end)],
    unknown {channel}`. An ask that is not labelled there is absent."""
    for path in sorted(folder.glob("*.txt")):
        unlabelled: set[str] = set()
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("#unlabelled"):
                unlabelled = set(line.split()[1:])
            elif line.strip() and not line.startswith("#"):
                yield parse(line, unlabelled) | {"file": path.stem}


def parse(line: str, unlabelled: set[str] = frozenset()) -> Row:
    """One line.

    Raises:
        ValueError: an unknown code or mark, or braces that do not close.
    """
    head, _, body = line.partition(" | ")
    codes, _, mark = head.strip().partition("/")
    asked = {code for code in codes.split("+") if code}
    if (strange := asked - set(ASKS) - {"rec"}) or mark not in ("", "?", "x"):
        raise ValueError(f"unknown ask {strange or mark}: {line}")
    body, _, before = body.partition(" || ")
    marked, _, patient = body.partition(" @")
    text, spans = unmark(marked)
    topics_unknown = "rec" in asked  # the chart is read; which part is not labelled
    hidden = unlabelled | (
        {"labs", "meds", "alg", "prob", "vit", "notes", "imm", "chart", "soc", "demo", "seen"}
        if topics_unknown
        else set()
    )
    return {
        "text": text, "before": before.strip(), "patient": patient.strip(),
        "asks": {ask: int(ask in asked) for ask in ASKS if ask in asked or ask not in hidden},
        "rec": int(topics_unknown),
        "polarity": {"": "ordered", "?": "asked", "x": "refused"}[mark],
        "spans": spans, "unknown": {MARKS[item] for item in unlabelled if item in MARKS},
    }  # fmt: skip


def unmark(marked: str) -> tuple[str, list[tuple[str, int, int]]]:
    """`{n:Bo Li}, {d:x}` as plain text and [(channel, start, end)]; marks may nest."""
    plain: list[str] = []
    opened: list[tuple[str, int]] = []
    spans: list[tuple[str, int, int]] = []
    at = 0
    while at < len(marked):
        head = re.match(r"\{([a-z,]+):", marked[at:])
        if head:
            opened.append((head[1], len(plain)))
            at += head.end()
        elif marked[at] == "}" and opened:
            names, start = opened.pop()
            spans += [(MARKS[name], start, len(plain)) for name in names.split(",")]
            at += 1
        else:
            plain.append(marked[at])
            at += 1
    if opened:
        raise ValueError(f"a mark does not close: {marked}")
    text = "".join(plain)
    assert set(channel for channel, _, _ in spans) <= set(CHANNELS) and POLARITY
    return text, list(dict.fromkeys(spans))
