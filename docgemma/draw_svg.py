"""A `Picture` as SVG: one column of steps, skips in lanes on the right, loops in lanes on the left."""

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from docgemma.trace import LABELS

if TYPE_CHECKING:
    from docgemma.draw import Edge, Picture

BOX_W, BOX_H, PILL_W, PILL_H, GAP = 344, 62, 200, 34, 38
LEFT_WORDS, RIGHT_WORDS, LANE = 124, 178, 20  # room for an edge's words, beside the boxes; between two lanes
TOP, MARGIN, PORT = 96, 24, 21
STYLE = """\
text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif}
.title{font-size:19px;font-weight:600;fill:#1a2327}.key{font-size:13px;fill:#37474f}
.label{font-size:16px;font-weight:600;fill:#fff}.says{font-size:12.5px;fill:#fff}
.words{font-size:12.5px;fill:#37474f}.edge{fill:none;stroke:#607d8b;stroke-width:1.6}"""


def render(picture: "Picture", title: str) -> str:
    return "\n".join(_Page(picture, title).lines()) + "\n"


class _Page:
    def __init__(self, picture: "Picture", title: str):
        from docgemma.draw import COLOURS, KINDS, SAYS

        self.picture, self.title, self.colours, self.key, self.says = picture, title, COLOURS, KINDS, SAYS
        down = [edge.lane for edge in picture.edges if edge.lane and self._goes_down(edge)]
        up = [edge.lane for edge in picture.edges if edge.lane and not self._goes_down(edge)]
        self.left = MARGIN + LEFT_WORDS + LANE * max(up, default=0)  # of the boxes
        self.width = self.left + BOX_W + RIGHT_WORDS + LANE * max(down, default=0) + MARGIN
        self.middle = self.left + BOX_W / 2
        self.tops: dict[str, float] = {}
        y = TOP
        for name in picture.rows:
            self.tops[name] = y
            y += self._height(name) + GAP
        self.height = y - GAP + MARGIN

    def lines(self) -> Iterator[str]:
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'width="{self.width:g}" height="{self.height:g}" role="img" aria-label="{escape(self.title)}">'
        )
        yield f"<title>{escape(self.title)}</title><style>{STYLE}</style>"
        yield (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0 8 4 0 8z" fill="#607d8b"/></marker></defs>'
        )
        yield f'<rect width="{self.width:g}" height="{self.height:g}" rx="10" fill="#fff"/>'
        yield f'<text class="title" x="{MARGIN}" y="38">{escape(self.title)}</text>'
        yield from self._key()
        for edge in self.picture.edges:
            yield from self._straight(edge) if not edge.lane else self._lane(edge)
        for name in self.picture.rows:
            yield from self._node(name)
        yield "</svg>"

    def _key(self) -> Iterator[str]:
        x = MARGIN
        for kind, words in self.key.items():
            yield f'<rect x="{x}" y="56" width="14" height="14" rx="3" fill="{self.colours[kind]}"/>'
            yield f'<text class="key" x="{x + 20}" y="68">{escape(words)}</text>'
            x += 44 + round(len(words) * 6.6)

    def _node(self, name: str) -> Iterator[str]:
        top, kind, says = self.tops[name], self.picture.kinds[name], self.says.get(name, "")
        wide, high = (PILL_W, PILL_H) if kind == "end" else (BOX_W, BOX_H)
        radius = high / 2 if kind == "end" else 8
        yield (
            f'<rect x="{self.middle - wide / 2:g}" y="{top:g}" width="{wide}" height="{high}" rx="{radius:g}" '
            f'fill="{self.colours[kind]}"/>'
        )
        if kind == "end":
            yield self._centred("says", top + 22, says or name)
        else:
            yield self._centred("label", top + 27, LABELS.get(name, name))
            yield self._centred("says", top + 47, says)

    def _straight(self, edge: "Edge") -> Iterator[str]:
        start, end = self.tops[edge.source] + self._height(edge.source), self.tops[edge.target]
        yield f'<path class="edge" marker-end="url(#tip)" d="M{self.middle:g} {start:g}V{end - 2:g}"/>'
        if edge.words:
            yield f'<text class="words" x="{self.middle + 10:g}" y="{start + 24:g}">{escape(edge.words)}</text>'

    def _lane(self, edge: "Edge") -> Iterator[str]:
        """Out of the side, along the lane, into the side; the words lie on the way out, where no lane runs."""
        down, start, end = self._goes_down(edge), self._port(edge, edge.source), self._port(edge, edge.target)
        side = self.left + BOX_W if down else self.left
        away = (RIGHT_WORDS if down else LEFT_WORDS) + LANE * (edge.lane - 1)
        lane, turn = side + away * (1 if down else -1), 6 if down else -6
        yield (
            f'<path class="edge" marker-end="url(#tip)" d="M{side:g} {start:g}H{lane - turn:g}'
            f"Q{lane:g} {start:g} {lane:g} {start + turn:g}V{end - turn:g}Q{lane:g} {end:g} {lane - turn:g} {end:g}"
            f'H{side + (2 if down else -2):g}"/>'
        )
        anchor = "start" if down else "end"
        x = side + (8 if down else -8)
        yield f'<text class="words" x="{x:g}" y="{start - 5:g}" text-anchor="{anchor}">{escape(edge.words)}</text>'

    def _port(self, edge: "Edge", name: str) -> float:
        """Where an edge meets a box's side: such that edges of one side cross as little as they can."""
        down = self._goes_down(edge)
        same = [other for other in self.picture.edges if other.lane and self._goes_down(other) == down]
        leaving = sorted((e for e in same if e.source == name), key=lambda e: -e.lane if down else e.lane)
        coming = sorted((e for e in same if e.target == name), key=lambda e: e.lane if down else -e.lane)
        ports = [*coming, *leaving] if down else [*leaving, *coming]
        middle = self.tops[name] + self._height(name) / 2
        return middle + (ports.index(edge) - (len(ports) - 1) / 2) * PORT

    def _centred(self, style: str, y: float, text: str) -> str:
        return f'<text class="{style}" x="{self.middle:g}" y="{y:g}" text-anchor="middle">{escape(text)}</text>'

    def _goes_down(self, edge: "Edge") -> bool:
        return self.picture.rows.index(edge.source) < self.picture.rows.index(edge.target)

    def _height(self, name: str) -> int:
        return PILL_H if self.picture.kinds[name] == "end" else BOX_H
