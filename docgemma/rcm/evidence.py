"""What a turn has read: pages kept in private files beside the conversation, interactions as a document, the gate."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TypedDict, cast

from docgemma.ehr.base import Chart
from docgemma.errors import ErrorType, ToolError
from docgemma.forget import image_folder
from docgemma.knowledge.base import Knowledge
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.nodes.context import Context
from docgemma.nodes.write_findings import order_findings
from docgemma.paths import private_file, private_folder
from docgemma.rcm.assertion import hits
from docgemma.rcm.chart import as_document
from docgemma.rcm.contradictions import ALLERGY, claim_of
from docgemma.rcm.criteria import candidates
from docgemma.rcm.records import Claim, Document, Intent, Page, Policy
from docgemma.rcm.sentences import lists, sentences_of
from docgemma.rules.order_check import Finding
from docgemma.settings import Settings
from docgemma.text.characters import visible
from docgemma.text.drugs import ingredients
from docgemma.text.words import names, plain
from docgemma.tools.drugs import between, interactions_of_known
from docgemma.tools.records import chart_data

REQUESTED = 8  # passages that say what is requested
PASSAGE = 400  # characters of one
MOST = 20  # active medicines that are compared
NEAREST = 6  # sentences that answer a general question
ICD = re.compile(r"(?<![\w.])[A-Z]\d\w\.[^\W_]{1,4}(?!\w)")  # a diagnosis code, "M17.11"
SECTIONS: dict[str, list[str]] = {  # titles of what an intent asks for
    "MEDICATIONS": ["medication", "medicine", "current drug"], "ALLERGIES": ["allerg"],
    "SAFETY_CHECK": ["medication", "medicine", "allerg"],
}  # fmt: skip


class Reading(TypedDict):
    """A file that is being read: `next` is the number of the page that comes, 0 when all are read."""

    path: str
    name: str
    digest: str
    pages: int
    next: int


class Shelf:
    """The documents of one conversation, in a private folder that is forgotten with it."""

    def __init__(self, settings: Settings, thread: str):
        self.folder = private_folder(image_folder(settings, thread) / "documents")
        self.open: dict[str, Iterator[Page]] = {}

    def begin(self, path: Path) -> Reading:
        """A file to be read; one that the conversation has read before is read already.

        Raises:
            UsageError: it is no readable PDF.
        """
        from docgemma.rcm.pdf import count_pages

        count = count_pages(path)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        done = (self.folder / f"{digest}.json").exists()
        name = " ".join(visible(path.name).split())  # it is printed beside each quote: one line, nothing that steers
        return Reading(path=str(path.resolve()), name=name, digest=digest, pages=count, next=0 if done else 1)

    def read(self, file: Reading) -> Page:
        """Read the next page and keep it; with the last one the document is put together."""
        from docgemma.rcm.pdf import document_of, pages_of

        pages = self.open.setdefault(file["digest"], pages_of(Path(file["path"]), file["next"]))
        page = next(pages)
        private_file(self.folder / f"{file['digest']}.{page['number']:05}").write_text(json.dumps(page), "utf-8")
        if page["number"] >= file["pages"]:
            kept = sorted(self.folder.glob(f"{file['digest']}.[0-9]*"))
            read = [json.loads(one.read_text("utf-8")) for one in kept]
            document = document_of(Path(file["path"]), read, file["name"])
            private_file(self.folder / f"{file['digest']}.json").write_text(json.dumps(document), encoding="utf-8")
        return page

    def documents(self, digests: Sequence[str]) -> list[Document]:
        """The documents that were read whole."""
        paths = [self.folder / f"{digest}.json" for digest in digests]
        return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]


def interactions(drugs: Sequence[str], knowledge: Knowledge) -> tuple[Document, list[str], list[str]]:
    """The interactions among some medicines as a document, a page each, the gravest first; the grave; what is open.

    Raises:
        ToolError: an outage of the source.
    """
    names = load_drug_names()
    taken = [ingredients(drug, names) for drug in drugs[:MOST]]
    parts = sorted(frozenset().union(*taken))
    nothing = Document(name="Drug interactions", digest="", pages=[])
    if len(parts) < 2:
        return nothing, [], []
    try:
        answer, unknown = interactions_of_known(parts, knowledge)
    except ToolError as error:
        if error.error_type is not ErrorType.DRUG_NOT_IN_DATABASE:
            raise
        return nothing, [], [f"The source does not know: {', '.join(parts)}."]
    found = between(answer.records, taken, names)
    texts = [
        f"{' with '.join(one.drugs)}: {one.severity} interaction. {one.mechanism} {one.management}" for one in found
    ]
    name = f"{answer.source}, as of {answer.as_of or 'an unknown date'}"
    document = as_document(name, [("Drug interactions", text) for text in texts])
    stops = [text for text, one in zip(texts, found, strict=True) if one.severity in ("contraindicated", "major")]
    unknown = [*unknown, *answer.not_covered]
    return document, stops, [f"Not covered: {', '.join(unknown)}."] if unknown else []


def from_documents(intent: Intent, question: str, documents: Sequence[Document]) -> list[Claim]:
    """What the documents say to a question: their sections of medicines or allergies, or the nearest sentences.

    A policy's criteria are judged elsewhere (`rcm.criteria`).
    """
    said = sentences_of(documents)
    if intent in SECTIONS:
        chosen = [one for one in said if names(SECTIONS[intent], one.section) and one.text != one.section]
        if intent == "MEDICATIONS":  # of "medications and allergies" the ones alone
            chosen = [one for one in chosen if not hits(ALLERGY, one.words)]
    else:
        chosen = candidates(question, said)[:NEAREST] if intent == "GENERAL_CLINICAL" else []
    return [claim_of(one, one.text) for one in chosen]


def requested_in(documents: Sequence[Document], headed_only: bool = False) -> list[str]:
    """What the documents request, in their words: sections headed so, then sentences that say so."""
    pages = [page for document in documents for page in document["pages"]]
    headed = [
        " ".join(page["text"][part["start"] : part["end"]].split())[:PASSAGE]
        for page in pages for part in page["sections"] if names(lists("questions")["requests"]["headed"], part["title"])
    ]  # fmt: skip
    if headed_only:
        return headed
    lines = [one.text for one in sentences_of(documents) if names(lists("questions")["requests"]["said"], one.text)]
    return [*headed, *lines][:REQUESTED]


def gate(drug: str, chart: Chart | None, knowledge: Knowledge, settings: Settings) -> list[Finding]:
    """What speaks against giving a drug, by the safety gate of orders; dose and frequency are not judged here.

    That the patient takes it already is no finding: authorizations are asked for what goes on.
    """
    around = SimpleNamespace(knowledge=knowledge, drugs=load_drug_names(), settings=settings)
    args = {"medication_name": drug, "dosage": "", "frequency": "", "notes": ""}
    data = chart_data(chart) if chart else None
    if data:
        mine = ingredients(drug, load_drug_names())
        others = [one for one in data["medications"] if not ingredients(one["name"], load_drug_names()) <= mine]
        data = {**data, "medications": others}
    return order_findings(args, data, cast(Context, around))


def lacking(policy: Policy, documents: Sequence[Document], procedure: str) -> list[str]:
    """What the request's letter lacks of what the payer is known to demand: filled where the policy says it."""
    text = "\n".join(page["text"] for document in documents for page in document["pages"])
    words = set(plain(text).upper().replace("-", " ").split())
    asked = [one for one in policy["procedures"] if names([one["name"], *one["also"]], procedure)]
    codes = [str(code) for one in asked or policy["procedures"] for code in one["codes"]]
    there = {
        "billing code": bool(words & {code.upper() for code in codes}),
        "diagnosis code": bool(ICD.search(text)),
        "requested duration": names(["duration", "number of sessions", "units requested", "requested units"], text),
        "follow-up plan": names(["follow-up", "follow up", "postoperative plan"], text),
    }
    filled = {"billing code": f": {', '.join(codes)} by the policy; please confirm" if codes else ""}
    return [f"{need}{filled.get(need) or ': must be given'}" for need in policy["request_needs"] if not there[need]]
