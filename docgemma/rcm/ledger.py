"""The evidence ledger: each verified quote a row, chained by hashes, never changed and never removed.

What its check finds and what it cannot, and how to recompute a hash by hand: data/rcm/ledger/README.md.
"""

import hashlib
import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from docgemma.errors import StoreError, UsageError
from docgemma.paths import data_file
from docgemma.rcm.ledger_stores import HINT, MysqlStore, PostgresStore, SqliteStore, Store, fetch
from docgemma.rcm.records import LedgerRow

TABLE, SEAL = "rcm_evidence_ledger", "rcm_evidence_ledger_seal"
HASHED = (
    "id", "patient_id", "session_id", "verbatim_quote", "source_document", "page_number", "policy_id",
    "confidence_score", "auditor_result", "created_at", "write_key", "previous_hash",
)  # fmt: skip
COLUMNS = (*HASHED, "row_hash")
START = "0" * 64  # the hash before the first row
log = logging.getLogger(__name__)


class Fault(NamedTuple):
    """Something that no writer does. `row`: its id; None where it is about no one row."""

    row: Any
    what: str


class Report(NamedTuple):
    """What a look at the whole ledger found: how many rows, the hash of the last one, the faults."""

    rows: int
    head: str
    faults: list[Fault]


def open_ledger(location: str, create: bool = True) -> "Ledger":
    """The ledger that belongs to the database at `location`, a SQLite path or an address.

    Of a SQLite file it is `ledger.sqlite` in the same folder; at postgresql:// and mysql:// it is in that database.

    Raises:
        StoreError: it cannot be opened, or there is none and `create` is false.
    """
    if location.startswith("mysql://"):
        return Ledger(MysqlStore(location), create=False)  # OpenEMR's tables are its administrator's to make
    if location.startswith(("postgresql://", "postgres://")):
        return Ledger(PostgresStore(location), create)
    return Ledger(SqliteStore(Path(location).expanduser().with_name("ledger.sqlite"), create), create)


class Ledger:
    """A ledger in one database. Threads and processes may write at once: they take turns.

    Args:
        create: make the tables where they are missing; otherwise their absence is an error.

    Raises:
        StoreError, here and from every method: the database cannot be opened, read or written; nothing was written.
    """

    def __init__(self, store: Store, create: bool = True):
        self.store = store
        with store.session(store.snapshot) as connection:
            there = fetch(connection, store.present) not in ([], [(None,)])
        if not there and not create:
            raise StoreError(f"There is no ledger {store.where}.", hint="Its tables were not made yet.")
        if not there:
            with store.session(store.alone) as connection:
                for statement in data_file(*store.script).read_text("utf-8").split("\n\n"):
                    fetch(connection, statement)

    def write(self, row: Mapping[str, Any], key: str = "") -> int:
        """Append a row, the fields of `LedgerRow`; returns its id. The same row and key give the first one's id.

        Raises:
            UsageError: a value is missing, too long or out of range, or the key belongs to another row.
            StoreError: nothing was written; also where the end of the ledger was tampered with.
        """
        entry = _checked(row, key)
        with self.store.session(self.store.alone) as connection:
            if key and (known := self._select(connection, "write_key", key)):
                return _same(known[0], entry)
            number, head = self._end(connection)
            now = datetime.now(UTC).replace(tzinfo=None)
            entry |= {"id": number + 1, "previous_hash": head, "created_at": now}
            entry["row_hash"] = digest(entry)
            self._insert(connection, TABLE, {name: entry[name] for name in COLUMNS})
            self._insert(connection, SEAL, {name: entry[name] for name in ("id", "row_hash")})
        self.store.keep_head(entry["id"], entry["row_hash"])
        log.info("ledger row %d, head %s", entry["id"], entry["row_hash"])
        return int(entry["id"])

    def rows(self, session: str) -> list[dict[str, Any]]:
        """The rows of a session, oldest first, with all columns; `created_at` in UTC, `confidence_score` 0 to 100."""
        with self.store.session(self.store.snapshot) as connection:
            return [_shown(entry) for entry in self._select(connection, "session_id", session)]

    def verify(self, expect: str = "") -> list[Fault]:
        """Every changed, removed, inserted or reordered row; none where the chain is unbroken. See `check`."""
        return self.check(expect).faults

    def check(self, expect: str = "") -> Report:
        """Recompute the whole chain; compare it with the seals and with the heads kept outside of the database.

        Args:
            expect: the hash of a row, noted elsewhere: that row must stand in the chain.
        """
        heads = self.store.kept_heads()  # before the snapshot, so that each of them is in it
        count, head, due, faults = 0, START, 1, list[Fault]()
        expected = expect in ("", START)
        columns = ", ".join(f"l.{name}" for name in COLUMNS)
        query = f"SELECT {columns}, s.row_hash FROM {TABLE} l LEFT JOIN {SEAL} s ON s.id = l.id ORDER BY l.id"
        with self.store.session(self.store.snapshot) as connection:
            for *values, seal in self.store.stream(connection, query):
                entry = dict(zip(COLUMNS, values, strict=True))
                number, own = entry["id"], entry["row_hash"]
                wrong = {
                    f"stands where row {due} should: rows were removed, inserted or reordered": number != due,
                    "does not follow from the row before it": entry["previous_hash"] != head,
                    "was changed after it was written": digest(entry) != own,
                    "is not the row that was sealed": seal != own,
                    "is not the row whose head was kept": heads.pop(number, own) != own,
                }
                faults += [Fault(number, what) for what, found in wrong.items() if found]
                count, head, due = count + 1, own, (number if isinstance(number, int) else due) + 1
                expected = expected or own == expect
            query = f"SELECT id FROM {SEAL} WHERE id NOT IN (SELECT id FROM {TABLE} WHERE id IS NOT NULL)"
            gone = {number for (number,) in fetch(connection, query)}
        faults += [
            Fault(number, "was written and is gone") for number in sorted(gone | heads.keys(), key="{!s:>20}".format)
        ]
        if not expected:
            faults.append(Fault(None, "the expected hash is of none of the rows"))
        return Report(count, head, faults)

    def _end(self, connection: Any) -> tuple[int, str]:
        """Id and hash of the last row, which must be the last that was sealed."""
        query = "SELECT id, row_hash FROM {} ORDER BY id DESC LIMIT 1"
        last, sealed = (tuple((fetch(connection, query.format(name)) or [(0, START)])[0]) for name in (TABLE, SEAL))
        if last != sealed:
            raise StoreError(f"The end of the ledger {self.store.where} was changed; nothing is added.", hint=HINT)
        return int(last[0]), str(last[1])

    def _select(self, connection: Any, column: str, value: Any) -> list[dict[str, Any]]:
        query = f"SELECT {', '.join(COLUMNS)} FROM {TABLE} WHERE {column} = {self.store.mark} ORDER BY id"
        return [dict(zip(COLUMNS, found, strict=True)) for found in fetch(connection, query, [value])]

    def _insert(self, connection: Any, table: str, entry: dict[str, Any]) -> None:
        marks = ", ".join(self.store.mark for _ in entry)
        values = [self.store.stored(value) for value in entry.values()]
        fetch(connection, f"INSERT INTO {table} ({', '.join(entry)}) VALUES ({marks})", values)


def digest(entry: dict[str, Any]) -> str:
    """SHA-256 over every column of a row except its own hash: JSON with sorted keys, in ASCII, without spaces."""
    text = json.dumps({name: _plain(entry[name]) for name in HASHED}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _plain(value: Any) -> str | None:
    """A value as text that is the same whichever database it comes from: 94.50 is "94.5", a time has its Z."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds") + "Z"
    if isinstance(value, int | float | Decimal):
        return format(Decimal(str(value)).normalize(), "f")
    return value if value is None or isinstance(value, str) else repr(value)


def _checked(row: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The columns that the writer gives, as every database keeps them."""
    try:
        entry = LedgerRow.model_validate({**row, "write_key": key or None}).model_dump()
    except ValidationError as error:
        wrong = error.errors(include_input=False)[0]
        raise UsageError(f"The ledger's {wrong['loc'][0]} cannot be kept: {wrong['msg']}.") from None
    return entry | {"confidence_score": round(entry["confidence_score"], 2)}


def _same(known: dict[str, Any], entry: dict[str, Any]) -> int:
    """The id of the row that this key wrote before."""
    if any(_plain(known[name]) != _plain(value) for name, value in entry.items()):
        hint = "Make the key from what is written, for example from session, document, page and quote."
        raise UsageError(f"The key of ledger row {known['id']} was given again for another row.", hint=hint)
    return int(known["id"])


def _shown(entry: dict[str, Any]) -> dict[str, Any]:
    return entry | {"created_at": _plain(entry["created_at"]), "confidence_score": float(entry["confidence_score"])}
