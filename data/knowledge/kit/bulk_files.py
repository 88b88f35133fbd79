"""Read the records of public bulk files of any size: .zip, .gz or plain; JSON or PubMed's XML."""

import gzip
import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, ParseError

import ijson

from docgemma.errors import UsageError
from docgemma.knowledge.label_text import plain
from docgemma.knowledge.snapshot import age_days

SUFFIXES = (".zip", ".json", ".xml", ".gz")
SMALL = 4 << 20  # a document of fewer bytes is read whole
# what a file that is cut short, not what its name says, or not readable raises
CUT_SHORT = (EOFError, zlib.error, zipfile.BadZipFile, ijson.JSONError, json.JSONDecodeError, ParseError)
UNREADABLE = (*CUT_SHORT, OSError, UnicodeError, RecursionError, NotImplementedError, RuntimeError)
AT = {"drugs": "results", "trials": "studies", "literature": "resultList.result"}  # where JSON has its records


@dataclass
class BulkFile:
    """One bulk file and what came of it. Dates are ISO, "" where none is known.

    `stated`: the oldest that it gives its data; `newest`: of its records; `notes`: what is left out, by reason.
    """

    kind: str
    path: Path
    records: int = 0
    stated: str = ""
    newest: str = ""
    notes: dict[str, dict[str, Any]] = field(default_factory=dict)

    def note(self, reason: str, where: str) -> None:
        """Count something that is not in the snapshot, with the place where it was seen first."""
        found = {"file": self.path.name, "reason": reason, "count": 0, "first": where}
        self.notes.setdefault(reason, found)["count"] += 1

    def dated(self, stated: Any = "", newest: Any = "") -> None:
        """Take the dates of the file or of a record; what is no date, or in the future, tells nothing."""
        self.stated = min(filter(None, (self.stated, _day(stated))), default="")
        self.newest = max(self.newest, _day(newest))

    def read(self) -> Iterator[tuple[str, Any]]:
        """Each record with its place, "a.json, record 2"; what cannot be read further is noted as a problem."""
        try:
            with self.path.open("rb") as file:
                magic = file.read(2)
            if magic != b"PK":
                opened: Any = gzip.open if magic == b"\x1f\x8b" else open
                with opened(self.path, "rb") as stream:
                    yield from self._document(self.path.name, stream)
                return
            with zipfile.ZipFile(self.path) as archive:
                for member in archive.infolist():
                    if _usable(Path(member.filename)):
                        with archive.open(member) as stream:
                            yield from self._document(member.filename, stream)
        except UNREADABLE as error:
            self._broken(error, self.path.name)

    def _document(self, name: str, stream: IO[bytes]) -> Iterator[tuple[str, Any]]:
        """One file, or one member of an archive; a broken one does not keep the next from being read."""
        count = 0
        try:
            for count, record in enumerate(self._records(stream), 1):
                yield f"{name}, record {count}", record
        except UNREADABLE as error:
            self._broken(error, f"{name}, after record {count}")

    def _records(self, stream: IO[bytes]) -> Iterator[Any]:
        head, at = stream.read(SMALL), AT[self.kind]
        first = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        if first == b"<":
            stream.seek(0)
            yield from pubmed_records(stream)
        elif len(head) < SMALL:
            whole = json.loads(head)
            self.dated(stated=_inside(whole, "meta.last_updated"))
            found = _inside(whole, at)
            records = found if isinstance(found, list) else whole
            yield from records if isinstance(records, list) else [records]
        else:
            with suppress(ijson.JSONError):
                self.dated(stated=next(ijson.items(io.BytesIO(head), "meta.last_updated"), ""))
            stream.seek(0)
            yield from ijson.items(stream, "item" if first == b"[" else f"{at}.item", use_float=True)

    def _broken(self, error: Exception, where: str) -> None:
        what = "cut short or damaged; download it again" if isinstance(error, CUT_SHORT) else type(error).__name__
        self.note(f"cannot be read to its end ({what})", where)


def bulk_files(given: Iterable[str | Path]) -> list[Path]:
    """The files themselves, folders opened, in a fixed order, none twice.

    Raises:
        UsageError: a path that is not there, or a folder without a file of a known kind.
    """
    found: dict[Path, None] = {}
    for path in map(Path, given):
        inside = sorted(item for item in path.rglob("*") if _usable(item)) if path.is_dir() else [path]
        if not path.exists() or not inside:
            what = "does not exist" if not path.exists() else f"holds no file that ends in {', '.join(SUFFIXES)}"
            raise UsageError(f"{path} {what}.", hint="Give the downloaded bulk files, or the folder they are in.")
        found |= {item.absolute(): None for item in inside}
    return list(found)


def _day(value: Any) -> str:
    """An ISO date that is not in the future, else ""."""
    age = age_days(str(value)[:10])
    return str(value)[:10] if age is not None and age >= 0 else ""


def _inside(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _usable(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and not path.name.startswith((".", "__MACOSX"))


def pubmed_records(stream: IO[bytes]) -> Iterator[dict[str, Any]]:
    """Articles of PubMed's XML in Europe PMC's shape, one element at a time so that memory stays flat."""
    events = ElementTree.iterparse(stream, events=("start", "end"))
    _, root = next(events)
    for event, element in events:
        if event == "end" and element.tag == "PubmedArticle":
            yield _record(element)
            root.clear()


def _record(element: Element) -> dict[str, Any]:
    def texts(path: str) -> list[str]:
        return [plain("".join(item.itertext())) for item in element.iterfind(f"MedlineCitation/{path}")]

    pmid = next(iter(texts("PMID")), None)
    parts = element.iterfind("MedlineCitation/Article/Abstract/AbstractText")
    labels = [f"{label.capitalize()}: " if (label := part.get("Label")) else "" for part in parts]
    authors = element.iterfind("MedlineCitation/Article/AuthorList/Author")
    names = (
        " ".join(author.findtext(key, "") for key in ("LastName", "Initials", "CollectiveName")) for author in authors
    )
    year = re.search(r"\b[12][0-9]{3}\b", " ".join(texts("Article/Journal/JournalIssue/PubDate/*")))
    return {
        "id": pmid,
        "pmid": pmid,
        "title": " ".join(texts("Article/ArticleTitle")),
        "authorString": f"{', '.join(name.strip() for name in names)}.",
        "journalTitle": " ".join(texts("Article/Journal/Title")),
        "pubYear": year and year[0],  # "1998 Dec-1999 Jan" is 1998
        "abstractText": " ".join(map("".join, zip(labels, texts("Article/Abstract/AbstractText"), strict=True))),
        "pubTypeList": {"pubType": texts("Article/PublicationTypeList/PublicationType")},
        "keywordList": {"keyword": texts("MeshHeadingList/MeshHeading/DescriptorName") + texts("KeywordList/Keyword")},
        "dateOfRevision": "-".join(part.zfill(2) for part in texts("DateRevised/*") or texts("DateCompleted/*")),
    }
