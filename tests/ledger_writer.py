"""A process that writes rows into a ledger and may kill itself at a chosen statement: python -m tests.ledger_writer.

Arguments: location, session, how many rows, and at which statement of its own to die (0: at none; -1: after the first
commit, before the head is kept beside the file).
"""

import os
import signal
import sys
from typing import Any

from docgemma.rcm import ledger


def row(number: int, session: str = "s") -> Any:
    quote = f"Żółty 100% – “bilateral\nknee pain” for {number} months; \U0001f9b5 "
    return {
        "patient_id": "p-1", "session_id": session, "verbatim_quote": quote, "source_document": "note.pdf",
        "page_number": number % 5 + 1, "policy_id": "NHP-ORTH-001", "confidence_score": 90 + number / 7,
        "auditor_result": "PASS",
    }  # fmt: skip


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(location: str, session: str, count: int, death: int) -> None:
    book, calls, real = ledger.open_ledger(location), 0, ledger.fetch

    def fetch(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == death:
            die()
        return real(*given)

    ledger.fetch = fetch
    if death < 0:
        book.store.keep_head = die
    for number in range(count):
        print(book.write(row(number, session), f"{session}-{number}"), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
