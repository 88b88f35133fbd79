"""Documents of the RCM agent as tests write them: pages of text, each with its headed sections."""

from docgemma.rcm.records import Claim, Document, Page, Section


def page(text: str, number: int = 1, sections: list[tuple[str, str]] | None = None) -> Page:
    """A page; `sections` are (title, first words of its text), the whole page is "Note" without any."""
    starts = [(title, text.index(begins)) for title, begins in sections or [("Note", text[:1])]]
    ends = [start for _, start in starts[1:]] + [len(text)]
    headed = [Section(title=title, start=start, end=end) for (title, start), end in zip(starts, ends, strict=True)]
    return Page(number=number, text=text, sections=headed, failed="")


def document(*texts: str, name: str = "note.pdf") -> Document:
    return Document(name=name, digest="", pages=[page(text, number) for number, text in enumerate(texts, 1)])


def claim(said: str, quote: str, **changed: object) -> Claim:
    made = {"claim": said, "quote": quote, "document": "note.pdf", "page": 1, "section": "Note", "verified": False}
    return {**made, "kind": "document", **changed}  # type: ignore[typeddict-item]
