"""The offline snapshot: one SQLite file with FTS5, opened read-only. `build.py` makes it."""

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from docgemma.errors import ErrorType, StoreError, ToolError
from docgemma.knowledge.base import Answer, Article, DrugLabel, Interaction, LabelSection, Trial
from docgemma.knowledge.build import VERSION, row_of
from docgemma.knowledge.drug_names import without_end
from docgemma.knowledge.drug_rules import fact_key
from docgemma.knowledge.label_interactions import Drug, drug_of, interaction
from docgemma.knowledge.literature import studies_in
from docgemma.knowledge.search import NEEDED, Concept, concepts, expression, statuses, telling, weight
from docgemma.text.drugs import DrugNames, ingredients_in_order
from docgemma.text.quoted import NOT_VERIFIED
from docgemma.text.words import clinical, listed

T = TypeVar("T")
STRENGTH = re.compile(r"\s+\d[\d.,]*\s*(?:mg|mcg|µg|g|ml|units?|iu|%|meq)\b.*$")
CANDIDATES = 200  # of a search, that are compared with all that was asked
WHOLE = 0.95  # of what was asked about
NEAR = 0.8  # of the best record's share: others that have less are left out
WIDER = 0.6  # of a way to say it
WITH_LABEL = "sections IS NOT NULL"  # drugs of bulk files
DEMONSTRATION = "{} WHERE id LIKE 'DEMO-%'"  # invented records come only with the package, and their ids say so
BUILT = "snapshot.sqlite"  # in the data home, where one was built
REBUILD = "Rebuild it: docgemma snapshot build."


class Snapshot:
    """`Knowledge` from one file; safe to share between threads (a connection a call).

    Args:
        path: the file.
        names: the drug dictionary, for brand names that the snapshot does not list and for "did you mean".

    Raises:
        StoreError: missing, corrupt, or of another version.
    """

    def __init__(self, path: Path, names: DrugNames | None = None):
        self.path, self.names = path, names
        if not path.is_file():
            raise StoreError("The knowledge snapshot is missing.", hint=REBUILD)
        self.meta = dict(self._rows("SELECT key, value FROM meta"))
        if self.meta.get("version") != str(VERSION):
            raise StoreError("The knowledge snapshot was made by another version.", hint=REBUILD)

    def label(self, drug_name: str) -> Answer[DrugLabel]:
        rows = self._rows("SELECT data, source, as_of FROM drug WHERE name = ?", self._known(drug_name))
        for data, source, as_of in rows:
            return Answer([DrugLabel(**json.loads(data))], source, as_of or None)
        return self._answer("drugs", [])

    def interactions(self, drug_names: list[str]) -> Answer[Interaction]:
        """The recorded pairs; of the others what the labels of the bulk files say, read now as the live path does."""
        drugs = list(dict.fromkeys(self._known(name) for name in drug_names))
        read, found = self._read_drugs(drugs), []
        for a, b in combinations(drugs, 2):
            rows = self._rows("SELECT data FROM interaction WHERE a = ? AND b = ?", *sorted((a, b)))
            basis = self.quotes.get(fact_key({"drugs": sorted((a, b))}), NOT_VERIFIED)
            for item in (json.loads(data) for (data,) in rows):
                found.append(Interaction(**item | {"drugs": tuple(item["drugs"]), "basis": basis}))
            if not rows and read and (said := interaction(read[a], read[b])):
                found.append(said)
        answer: Answer[Interaction] = self._answer("interactions", found)
        if read:
            as_of = min(filter(None, (answer.as_of, self.meta.get("drugs.as_of"))), default=None)
            answer = replace(answer, source=f"{answer.source}, {self.meta['drugs.source']}", as_of=as_of)
        return replace(answer, not_covered=tuple(name for name in drugs if name not in self._covered))

    @cached_property
    def quotes(self) -> dict[str, str]:
        """Read once: a check of an order asks for every rule of the drug."""
        return dict(self._rows("SELECT fact, said FROM basis"))

    def _read_drugs(self, names: list[str]) -> dict[str, Drug]:
        """Drugs with the label sections that are read for others; {} where the snapshot has no such labels."""
        if not self._label_count:
            return {}
        drugs = {name: Drug(name, (name,)) for name in names}
        for name in names:
            for data, sections in self._rows("SELECT data, sections FROM drug WHERE name = ?", name):
                read = {field: LabelSection(*parts) for field, parts in json.loads(sections or "{}").items()}
                drugs[name] = drug_of(name, DrugLabel(**json.loads(data)), read)
        return drugs

    @cached_property
    def _covered(self) -> frozenset[str]:
        """Drugs of which an interaction is recorded or a label is here; read once, since a pair asks for it twice."""
        named = "SELECT a FROM interaction UNION SELECT b FROM interaction UNION SELECT name FROM drug WHERE "
        return frozenset(name for (name,) in self._rows(named + WITH_LABEL))

    @cached_property
    def _label_count(self) -> int:
        return self._count(f"drug WHERE {WITH_LABEL}")

    def literature(self, query: str, limit: int = 5) -> Answer[Article]:
        # "REVISE" names a study
        named = [article for part in query.split(",") for ids in studies_in(part).values() for article in ids]
        found, partial = self._search("article", " ".join(named) or query, (), max(limit, len(named)))
        return self._searched("literature", "article", [Article(**data) for data in found], partial)

    def trials(self, condition: str, status: str | None = None, limit: int = 5) -> Answer[Trial]:
        found, partial = self._search("trial", condition, statuses(status), limit)
        return self._searched("trials", "trial", [Trial(**data) for data in found], partial)

    def _searched(self, kind: str, table: str, records: list[T], partial: bool) -> Answer[T]:
        answer, invented = self._answer(kind, records), self._invented[table]
        return replace(answer, size=self._count(table), invented=invented, partial=partial)

    @cached_property
    def _invented(self) -> dict[str, int]:
        """How many records are for demonstration; counted once, the file does not change."""
        return {table: self._count(DEMONSTRATION.format(table)) for table in ("article", "trial")}

    def _search(self, table: str, text: str, wanted: tuple[str, ...], limit: int) -> tuple[list[dict[str, Any]], bool]:
        """The records that have most of what was asked about, and whether none has all of it. Words of a title and of
        a trial's conditions weigh more than those of its text. One that is named by its id is told, of any status."""
        ids = [row_of(way) for word in text.split() for way in (word, word.strip(".,;:()?!").upper())]
        if named_by_id := self._rows(f"SELECT data FROM {table} WHERE rowid IN ({', '.join('?' * len(ids))})", *ids):
            return [json.loads(data) for (data,) in named_by_id[:limit]], False
        size, having = self._count(table), f"{table} WHERE {table} MATCH ?"
        held = {item: self._count(having, expression(item.ways)) for item in concepts(text, self.names)}
        weights = {item: weight(item, held[item], size) for item in held}
        asked = {item: share / sum(weights.values()) for item, share in weights.items()}
        if not asked:
            return [], False
        only = f"AND status IN ({', '.join('?' * len(wanted))})" if wanted else ""
        sql = f"""SELECT rowid, data FROM {table} WHERE {table} MATCH ? {only}
                  ORDER BY bm25({table}, 0.0, 0.0, 0.0, 4.0, 6.0, 2.0, 1.0, 3.0), id LIMIT {CANDIDATES}"""
        ways = [way for item in telling(asked) for way in (*item.ways, *item.wider)]
        rows = dict(self._rows(sql, expression(ways), *wanted))
        shares, named = dict.fromkeys(rows, 0.0), set[int]()
        for item, share in asked.items():
            for row, met in self._met(table, item, rows).items():
                shares[row] += share * met
                named |= {row} if met == 1 and (item.clinical or not any(other.clinical for other in asked)) else set()
        best = max((shares[row] for row in named), default=0.0)
        fitting = [row for row in rows if row in named and shares[row] >= max(NEEDED, best * NEAR)]
        titled = Counter(
            row for item in asked for row, met in self._met(table, item, rows, "title : ").items() if met == 1
        )
        fitting.sort(key=lambda row: (-round(shares[row], 1), -titled[row]))
        partial = bool(fitting) and best < WHOLE
        return [json.loads(rows[row]) for row in fitting[:limit]], partial

    def _met(self, table: str, item: Concept, rows: Iterable[int], within: str = "") -> dict[int, float]:
        """Of these rows, those that have it: 1.0, or less where they have only what it is a kind of."""
        sql = f"SELECT rowid FROM {table} WHERE {table} MATCH ? AND rowid IN ({', '.join(map(str, rows))})"
        said = [(ways, met) for ways, met in ((item.wider, WIDER), (item.ways, 1.0)) if ways]
        return {row: met for ways, met in said for (row,) in self._rows(sql, f"{within}({expression(ways)})")}

    def generic_name(self, drug_name: str) -> str | None:
        name = plain_name(drug_name)
        return self._listed(name) or (self.names.generic(name) if self.names else None)

    def info(self) -> dict[str, Any]:
        """What is inside; `docgemma snapshot info` prints it.

        Returns:
            `path`, `shipped` (False: it was built from files), `built` (ISO time), and `kinds`, for each `count`,
            `source`, `as_of` (ISO date or None) and `age_days` (None if unknown); for literature and trials
            `demonstration` (how many are invented), for drugs `bulk_labels` (how many have a label from the files) and
            `boxed_warnings` (how many disagree with the shipped records), for interactions `with_basis` (how many a
            sentence of a label states), for drugs the same of `conditions` and `doses`.
        """
        tables = {"drugs": "drug", "interactions": "interaction", "literature": "article", "trials": "trial"}
        kinds: dict[str, dict[str, Any]] = {}
        for kind, table in tables.items():
            as_of = self.meta.get(f"{kind}.as_of") or None
            origin = {"source": self.meta.get(f"{kind}.source", ""), "as_of": as_of, "age_days": age_days(as_of)}
            kinds[kind] = {"count": self._count(table), **origin}
        for kind in ("literature", "trials"):
            kinds[kind]["demonstration"] = self._invented[tables[kind]]
        kinds["drugs"]["bulk_labels"] = self._label_count
        kinds["drugs"]["boxed_warnings"] = int(self.meta.get("drugs.boxed_warnings", "0"))
        stated = {kind: self._count(f"basis WHERE kind = '{kind}'") for kind in ("interactions", "conditions", "doses")}
        kinds["interactions"]["with_basis"] = stated.pop("interactions")
        kinds["drugs"] |= stated
        about = {"path": str(self.path), "shipped": self.path.name != BUILT, "built": self.meta.get("built", "")}
        return {**about, "kinds": kinds}

    def _count(self, table: str, *values: Any) -> int:
        return int(self._rows(f"SELECT count(*) FROM {table}", *values)[0][0])

    def close(self) -> None:
        """Nothing stays open between calls."""

    def _known(self, drug_name: str) -> str:
        """The name under which the snapshot lists a drug.

        Raises:
            ToolError: `ambiguous_drug_name` for what is nearly a listed name, else `drug_not_in_database`.
        """
        name = plain_name(drug_name)
        if found := self._listed(name):
            return found
        if self.names and name not in self.names:  # a real drug that is not listed is not another drug misspelt
            near: dict[str, str] = {}  # one spelling of each drug
            short = clinical("drug_abbreviations")["ambiguous"]
            meant = [reading for entry in short if name in entry["said"] for reading in entry["readings"]]
            for item in (*meant, *self._own_names.suggest(name), *self.names.suggest(name)):
                if listed := self._listed(item):
                    near.setdefault(listed, item)
            if near:
                raise ToolError(
                    ErrorType.AMBIGUOUS_DRUG_NAME, "near a name", entity=drug_name, suggestions=list(near.values())[:3]
                )
        raise ToolError(ErrorType.DRUG_NOT_IN_DATABASE, "no such drug", entity=drug_name)

    def _listed(self, name: str) -> str | None:
        short = without_end(name, listed("drug_words", "forms"))  # "tiotropium inhaler" is tiotropium
        generics = map(self.names.generic, dict.fromkeys([name, short])) if self.names else ()
        parts = ingredients_in_order(name, self.names)  # "ethinyl estradiol-levonorgestrel", as charts write it
        for candidate in (name, *generics, *([" and ".join(parts)] if len(parts) > 1 else [])):
            rows = self._rows("SELECT name FROM drug_name WHERE alias = ?", candidate) if candidate else []
            if rows:
                return str(rows[0][0])
        return None

    @cached_property
    def _own_names(self) -> DrugNames:
        """Names that labels brought and the dictionary need not know."""
        return DrugNames(dict(self._rows("SELECT alias, name FROM drug_name ORDER BY alias")))

    def _answer(self, kind: str, records: list[T]) -> Answer[T]:
        source, as_of = self.meta.get(f"{kind}.source", "offline snapshot"), self.meta.get(f"{kind}.as_of")
        return Answer(records, source, as_of or None)

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        try:
            uri = f"file:{quote(str(self.path.absolute()))}?mode=ro"
            with closing(sqlite3.connect(uri, uri=True)) as connection:
                return connection.execute(sql, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise StoreError("The knowledge snapshot is corrupt or cannot be read.", hint=REBUILD) from error


def age_days(as_of: str | None) -> int | None:
    """Days since an ISO date; None if it is not known."""
    try:
        return (datetime.now(UTC).date() - date.fromisoformat(as_of or "")).days
    except ValueError:
        return None


def plain_name(drug_name: str) -> str:
    """Lower case, single spaces, without a strength at its end: "Metformin 500 mg" is metformin."""
    return STRENGTH.sub("", " ".join(drug_name.lower().split()))
