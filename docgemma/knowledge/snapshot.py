"""The offline snapshot: one SQLite file with FTS5, opened read-only. `build.py` makes it.

Tables: `meta(key, value)`, `drug(name, data, source, as_of)` (NULL: those of the kind), `drug_name(alias, name)`,
`interaction(a, b, data)` with a < b, `article` and `trial` (id, data) with their full-text twins; `data` is the JSON of
the record's dataclass. From bulk files only: `label_text(drug, number, data)`, labels that are read for other drugs,
and `fact_basis`, the sentence of a label that supports a shipped fact (`basis.py`).
"""

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from docgemma.errors import ErrorType, StoreError, ToolError
from docgemma.knowledge.base import Answer, Article, DrugLabel, Interaction, Trial, basis_text
from docgemma.knowledge.search import match_expression, statuses
from docgemma.knowledge.tables import VERSION
from docgemma.text.drugs import DrugNames
from docgemma.text.words import listed

T = TypeVar("T")
STRENGTH = re.compile(r"\s+\d[\d.,]*\s*(?:mg|mcg|µg|g|ml|units?|iu|%|meq)\b.*$")
REBUILD = "Rebuild it: docgemma snapshot build."

INTERACTION = """
SELECT interaction.data, set_id, version, effective, section, quote FROM interaction
LEFT JOIN fact_basis ON kind = 'interaction' AND fact_key = a || ' + ' || b WHERE a = ? AND b = ?
"""


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
        answer = self._answer("drugs", [DrugLabel(**json.loads(data)) for data, _, _ in rows])
        return next(
            (replace(answer, source=source, as_of=as_of or None) for _, source, as_of in rows if source), answer
        )

    def interactions(self, drug_names: list[str]) -> Answer[Interaction]:
        drugs = list(dict.fromkeys(self._known(name) for name in drug_names))
        found = []
        for pair in combinations(drugs, 2):
            found += [_interaction(*row) for row in self._rows(INTERACTION, *sorted(pair))]
        not_covered = tuple(name for name in drugs if name not in self._covered)
        return self._with_labels(drugs, replace(self._answer("interactions", found), not_covered=not_covered))

    @cached_property
    def _covered(self) -> frozenset[str]:
        """Drugs of which an interaction is recorded or a label is here; read once, since a pair asks for it twice."""
        named = "SELECT a FROM interaction UNION SELECT b FROM interaction UNION SELECT drug FROM label_text"
        return frozenset(name for (name,) in self._rows(named))

    def literature(self, query: str, limit: int = 5) -> Answer[Article]:
        sql = """SELECT article.data FROM article_text JOIN article ON article.rowid = article_text.rowid
                 WHERE article_text MATCH ? ORDER BY bm25(article_text, 4.0, 1.0, 3.0), article.id LIMIT ?"""
        expression = match_expression(query)
        rows = self._rows(sql, expression, limit) if expression else []
        return self._answer("literature", [Article(**json.loads(data)) for (data,) in rows])

    def trials(self, condition: str, status: str | None = None, limit: int = 5) -> Answer[Trial]:
        wanted = statuses(status)
        only = f"AND trial.status IN ({', '.join('?' * len(wanted))})" if wanted else ""
        sql = f"""SELECT trial.data FROM trial_text JOIN trial ON trial.rowid = trial_text.rowid
                  WHERE trial_text MATCH ? {only}
                  ORDER BY bm25(trial_text, 4.0, 6.0, 2.0, 1.0, 3.0), trial.id LIMIT ?"""
        expression = match_expression(condition)
        rows = self._rows(sql, expression, *wanted, limit) if expression else []
        return self._answer("trials", [Trial(**json.loads(data)) for (data,) in rows])

    def generic_name(self, drug_name: str) -> str | None:
        name = plain_name(drug_name)
        return self._listed(name) or (self.names.generic(name) if self.names else None)

    def info(self) -> dict[str, Any]:
        """What is inside; `docgemma snapshot info` prints it.

        Returns:
            `path`, `content` (hash of what it was made from), `built` (ISO time), and `kinds`, for each `count`,
            `source`, `as_of` (ISO date or None), `age_days` (None if unknown), `demonstration` (how many records are
            invented), `files` (at most 50, [{"file", "bytes", "records", "as_of"}]) and `file_count`; for drugs also
            `bulk_labels` (how many have a label from the files) and `boxed_warnings` (how many disagree with the
            shipped records), and for interactions `with_basis` (how many a sentence of a label supports).
        """
        tables = {"drugs": "drug", "interactions": "interaction", "literature": "article", "trials": "trial"}
        kinds: dict[str, dict[str, Any]] = {}
        for kind, table in tables.items():
            stated = {key: self.meta.get(f"{kind}.{key}") for key in ("source", "as_of", "files", "file_count")}
            kinds[kind] = {
                "count": self._count(table),
                "source": stated["source"] or "",
                "as_of": stated["as_of"] or None,
                "age_days": age_days(stated["as_of"]),
                # invented records come only with the package, and their ids say so
                "demonstration": self._count(f"{table} WHERE id LIKE 'DEMO-%'") if table in ("article", "trial") else 0,
                "files": json.loads(stated["files"] or "[]"),
                "file_count": int(stated["file_count"] or 0),
            }
        kinds["drugs"]["bulk_labels"] = self._count("label_text WHERE number = 0")
        kinds["drugs"]["boxed_warnings"] = int(self.meta.get("drugs.boxed_warnings", "0"))
        kinds["interactions"]["with_basis"] = self._count("fact_basis WHERE kind = 'interaction'")
        about = {key: self.meta.get(key, "") for key in ("content", "built")}
        return {"path": str(self.path), **about, "kinds": kinds}

    def _count(self, table: str) -> int:
        return int(self._rows(f"SELECT count(*) FROM {table}")[0][0])

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
            for item in (*self._own_names.suggest(name), *self.names.suggest(name)):
                if listed := self._listed(item):
                    near.setdefault(listed, item)
            if near:
                raise ToolError(
                    ErrorType.AMBIGUOUS_DRUG_NAME, "near a name", entity=drug_name, suggestions=list(near.values())[:3]
                )
        raise ToolError(ErrorType.DRUG_NOT_IN_DATABASE, "no such drug", entity=drug_name)

    def _listed(self, name: str) -> str | None:
        generics = map(self.names.generic, dict.fromkeys([name, without_form(name)])) if self.names else ()
        for candidate in (name, *generics):
            rows = self._rows("SELECT name FROM drug_name WHERE alias = ?", candidate) if candidate else []
            if rows:
                return str(rows[0][0])
        return None

    @cached_property
    def _own_names(self) -> DrugNames:
        """Names that labels brought and the dictionary need not know."""
        return DrugNames(dict(self._rows("SELECT alias, name FROM drug_name ORDER BY alias")))

    def _with_labels(self, drugs: list[str], answer: Answer[Interaction]) -> Answer[Interaction]:
        """What the drugs' labels say of the pairs that are not listed; they are read now, as the live path reads them.

        All pairs beforehand would be millions of readings, and the snapshot has labels only from bulk files.
        """
        if not self._rows("SELECT 1 FROM label_text LIMIT 1"):
            return answer
        from docgemma.knowledge.bulk_labels import said_by_labels

        labels: Answer[DrugLabel] = self._answer("drugs", [])
        found = said_by_labels(self._rows, drugs, skip={frozenset(item.drugs) for item in answer.records})
        as_of = min(filter(None, (answer.as_of, labels.as_of)), default=None)
        return replace(answer, records=answer.records + found, source=f"{answer.source}, {labels.source}", as_of=as_of)

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


def without_form(name: str) -> str:
    """A lower-case name without the form at its end: "tiotropium inhaler" is tiotropium."""
    words = name.split()
    while len(words) > 1 and words[-1] in listed("drug_words", "forms"):
        words.pop()
    return " ".join(words)


def _interaction(text: str, *basis: Any) -> Interaction:
    data = json.loads(text)
    data["drugs"] = tuple(data["drugs"])
    return Interaction(**data | ({"basis": basis_text(*basis)} if basis[0] is not None else {}))
