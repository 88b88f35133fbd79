"""Tell how often requests like this one were denied, why, and what to add: counted in the history, on DuckDB."""

from collections.abc import Mapping, Sequence
from typing import Any

from docgemma.errors import ConfigError, StoreError
from docgemma.experiments.statistics import wilson
from docgemma.paths import data_file
from docgemma.rcm.records import Risk
from docgemma.rcm.sentences import lists
from docgemma.text.words import phrases_in, plain

ENOUGH = 20  # comparable requests; of fewer no share is told
MEDIUM, HIGH = 0.20, 0.50  # share denied from which the risk is called so
OTHER = "another criterion"  # what is lacked and no list names
WORDS = "denials/words"  # how things are called, the reason that an element's lack gives, and what to add
DEMANDED = """
select distinct unnest(string_split(lacking, '; '))
from read_csv($file, header = true, all_varchar = true) where procedure = $procedure
"""
# Comparable: complete requests where this one lacks nothing, else those that lack at least the same.
COUNT = """
with history as (
    select coalesce(reason, '') as why, string_split(coalesce(lacking, ''), '; ') as lacked
    from read_csv($file, header = true, all_varchar = true)
    where procedure = $procedure and ($payer = '' or payer = $payer)
)
select why, count(*) as requests, count(*) filter (
    case when len($lacks::varchar[]) = 0 then lacked = [''] else list_has_all(lacked, $lacks::varchar[]) end
) as comparable
from history group by why order by comparable desc, why
"""


def analyze(payer: str, procedure: str, lacks: Sequence[str]) -> Risk:
    """Count what became of comparable requests: the payer's for the procedure; where those are few, any payer's.

    Args:
        payer: its name; case and blanks do not matter.
        procedure: any wording that names a procedure of the history.
        lacks: what the request lacks, named or described; [] where nothing.

    Returns:
        The share denied with its 95 % Wilson interval, and each reason's own: `share` of the comparable requests,
        `base` of all in the same scope, whatever they lacked. Where fewer than 20 lack all of `lacks`, those that lack
        the one thing for which most were denied; "unknown" where these are few too. `told` says what was compared.

    Raises:
        StoreError: the history cannot be read.
        ConfigError: it is not installed, or DuckDB is not.
    """
    asked_for = _named(procedure, lists(WORDS)["procedures"])
    if not asked_for:
        return _unknown(0, f"The history of denials knows no request for {procedure or 'what is not named'}.")
    demanded = {row[0] for row in _ask(DEMANDED, {"procedure": asked_for})}
    called = {name: item["also"] for name, item in lists(WORDS)["elements"].items() if name in demanded}
    found = {said: _named(said, called) for said in lacks}
    same = sorted({name or OTHER for name in found.values()})
    strange = "; ".join(said.rstrip(".") for said, name in found.items() if name in ("", OTHER))
    unread = f' Counted as "{OTHER}": {strange}.' if strange else ""
    own = next((name for name in lists(WORDS)["payers"] if plain(name) == plain(payer)), "")
    beside = f" Of {own} alone there are too few." if own else f" {payer or 'The payer'} is not in the history."
    risks = [_counted(own, asked_for, same, unread)] if own else []
    risks += [_counted("", asked_for, same, beside + unread)]
    least = " Too few lacked all that this one lacks: its risk is at least this."
    alone = [_counted("", asked_for, [name], least + unread) for name in same if len(same) > 1]
    alone.sort(key=lambda risk: risk["share"] or 0, reverse=True)
    return next((risk for risk in risks + alone if risk["n"] >= ENOUGH), risks[-1])


def _counted(payer: str, procedure: str, lacks: Sequence[str], beside: str) -> Risk:
    """The risk among one payer's requests that lack at least this, any payer's where it is ""."""
    rows = _ask(COUNT, {"payer": payer, "procedure": procedure, "lacks": lacks})
    n, everything = sum(row[2] for row in rows), sum(row[1] for row in rows)
    like = f"{n} requests for {procedure} to {payer or 'all payers'} that lacked {' and '.join(lacks) or 'nothing'}"
    if n < ENOUGH:
        return _unknown(n, f"There are only {like}, in {lists(WORDS)['history']}.{beside}")
    add = {item["reason"]: item["add"] for item in lists(WORDS)["elements"].values()} | lists(WORDS)["others"]
    reasons = [
        {"reason": why, **_share(count, n), "n": n, "base": round(requests / everything, 3), "add": add.get(why, "")}
        for why, requests, count in rows if why and count
    ]  # fmt: skip
    whole = _share(sum(count for why, _, count in rows if why), n)
    level: Any = "high" if whole["share"] >= HIGH else "medium" if whole["share"] >= MEDIUM else "low"
    told = f"Compared with {like}, in {lists(WORDS)['history']}.{beside}"
    return Risk(
        level=level, share=whole["share"], low=whole["low"], high=whole["high"], n=n, reasons=reasons, told=told
    )


def _share(count: int, n: int) -> dict[str, float]:
    low, high = wilson(count, n)
    return {"share": round(count / n, 3), "low": round(low, 3), "high": round(high, 3)}


def _unknown(n: int, told: str) -> Risk:
    return Risk(level="unknown", share=None, low=None, high=None, n=n, reasons=[], told=told)


def _named(text: str, called: Mapping[str, Sequence[str]]) -> str:
    """The first thing that a text names by any of its names; "" where there is none."""
    phrases = [(plain(phrase), name) for name, also in called.items() for phrase in (name, *also)]
    named, _ = phrases_in(plain(text), sorted(phrases, key=lambda item: -len(item[0])))
    return named[0] if named else ""


def _ask(sql: str, given: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """One query with parameters over the history's file."""
    try:
        import duckdb
    except ImportError as error:
        raise ConfigError("DuckDB is not installed.", hint='Run: pip install "docgemma[rcm]"') from error
    file = data_file("rcm", "denials", "denials.csv")
    try:
        with duckdb.connect(config={"threads": 1}) as database:
            return database.execute(sql, {"file": str(file), **given}).fetchall()
    except duckdb.Error as error:
        raise StoreError("The history of denials cannot be read.", hint=f"Check {file.name}.") from error
