"""`docgemma rcm ledger`: check that nobody changed the evidence ledger, and show what stands in it."""

from typing import TYPE_CHECKING, Annotated, Optional

import typer

from docgemma.cli.shared import AsJson, print_json, say

if TYPE_CHECKING:
    from docgemma.rcm.ledger import Ledger

SHOWN = 10  # faults in the terminal
At = Annotated[
    Optional[str], typer.Option(help="Another ledger: a ledger.sqlite, or an address postgresql:// or mysql://.")
]

app = typer.Typer(help="The ledger of verified quotes.", no_args_is_help=True)


@app.command("verify")
def verify_ledger(
    expect: Annotated[str, typer.Option(help="A head noted earlier: its row must still stand in the chain.")] = "",
    at: At = None,
    as_json: AsJson = False,
) -> None:
    """Recompute the whole chain: exit status 0 where it is unbroken, 1 where a row was changed, removed or inserted."""
    rows, head, faults = _ledger(at).check(expect.strip().lower())
    told = [f"row {fault.row}: {fault.what}" if fault.row is not None else fault.what for fault in faults]
    if as_json:
        print_json({"ok": not faults, "rows": rows, "head": head, "faults": [fault._asdict() for fault in faults]})
    elif not faults:
        say(f"{rows} rows, chain unbroken, head {head}")
    else:
        more = [f"and {len(told) - SHOWN} more"] if len(told) > SHOWN else []
        for line in [f"{rows} rows, the chain is broken:", *told[:SHOWN], *more]:
            say(line, err=True)
    if faults:
        raise typer.Exit(1)


@app.command()
def show(
    session: Annotated[str, typer.Argument(help="The thread of `docgemma rcm ask`.")],
    at: At = None,
    as_json: AsJson = False,
) -> None:
    """Show the rows that one session wrote."""
    rows = _ledger(at).rows(session)
    if as_json:
        print_json({"session": session, "rows": rows})
        return
    for row in rows:
        place = row["source_document"] + (f", page {row['page_number']}" if row["page_number"] else "")
        say(f"#{row['id']} {row['created_at']} patient {row['patient_id']} {row['auditor_result']} "
            f"{row['confidence_score']:g} {row['policy_id']}")  # fmt: skip
        say(f'    "{row["verbatim_quote"]}" ({place})')
        say(f"    {row['row_hash']}")
    if not rows:
        say("No row is of this session.")


def _ledger(at: str | None) -> "Ledger":
    from pathlib import Path

    from docgemma.rcm.ledger import Ledger, open_ledger
    from docgemma.rcm.ledger_stores import SqliteStore
    from docgemma.settings import read_settings

    if at and "://" not in at:
        return Ledger(SqliteStore(Path(at), create=False), create=False)  # this very file, a copy for example
    return open_ledger(at or read_settings().db_location, create=False)
