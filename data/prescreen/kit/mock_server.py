"""A local server that speaks as ClinicalTrials.gov v2 does, over a file of records: for benchmarks without a network.

A record is a study as the API gives it (`protocolSection`, `derivedSection`), one JSON object a line, gzip'd or not.
What the API knows and this server does not (geography, sort, aggregations) is refused, never ignored.
"""

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from docgemma.errors import ConfigError
from docgemma.paths import kit

query = kit("prescreen", "mock_query")
AREAS, ENUMS, PIECES, Indexed, QueryError = query.AREAS, query.ENUMS, query.PIECES, query.Indexed, query.QueryError
parse, values = query.parse, query.values
BASE = "/api/v2"
PAGE_SIZE, LARGEST_PAGE = 10, 1000
TOKEN = "from-"  # of a page, before its offset
FILTERS = ("filter.overallStatus", "filter.ids", "filter.advanced")
SHAPE = ("fields", "pageSize", "pageToken", "countTotal", "format")
REFUSED = (
    "query.patient",
    "query.spons",
    "filter.geo",
    "filter.synonyms",
    "aggFilters",
    "sort",
    "geoDecay",
    "markupFormat",
)
NAMES = {"query.cond": "Conditions or disease", "query.intr": "Intervention / treatment", "query.term": "Other terms"}


class Trials:
    """The records, and what the API answers about them."""

    def __init__(self, studies: list[dict[str, Any]]):
        self.studies = [Indexed(study) for study in studies]
        self.by_id = {values(study, PIECES["NCTId"])[0]: study for study in studies}

    def page(self, asked: dict[str, str]) -> dict[str, Any]:
        """One page of /studies.

        Raises:
            QueryError: as the API refuses with HTTP 400.
        """
        for name in asked:
            if name in REFUSED:
                raise QueryError(f"`{name}` is not emulated by this server")
            if name not in (*AREAS, *FILTERS, *SHAPE):
                raise QueryError(f"`{name}` is unknown parameter")
        size, start = min(_number(asked, "pageSize", PAGE_SIZE), LARGEST_PAGE), _number(asked, "pageToken", 0)
        fields = _fields(asked.get("fields", ""))
        found = self._matching(asked)
        answer: dict[str, Any] = {"studies": [_projected(study, fields) for study in found[start : start + size]]}
        if start + size < len(found):
            answer["nextPageToken"] = f"{TOKEN}{start + size}"
        if asked.get("countTotal") == "true" and not start:
            answer["totalCount"] = len(found)
        return answer

    def _matching(self, asked: dict[str, str]) -> list[dict[str, Any]]:
        """Studies that match every parameter, the best first."""
        tests = [(parse(asked[name], NAMES.get(name, name)), area) for name, area in AREAS.items() if asked.get(name)]
        if advanced := asked.get("filter.advanced"):
            tests.append((parse(advanced, "advanced filter"), AREAS["query.term"]))
        statuses = _listed(asked.get("filter.overallStatus", ""))
        for status in statuses:
            if status not in ENUMS["OverallStatus"]:
                raise QueryError(f"Invalid value in parameter `overallStatus`: `{status}`")
        ids = _listed(asked.get("filter.ids", ""))
        found = []
        for study in self.studies:
            trial = values(study.raw, PIECES["NCTId"])[0]
            if statuses and not set(values(study.raw, PIECES["OverallStatus"])) & set(statuses):
                continue
            if ids and trial not in ids:
                continue
            scores = [score(study, area) for score, area in tests]
            if all(scores):
                found.append((-sum(scores), trial, study.raw))
        return [raw for _, _, raw in sorted(found, key=lambda item: item[:2])]


class Answering(ThreadingHTTPServer):
    daemon_threads = True
    trials: Trials


class Handler(BaseHTTPRequestHandler):
    server: Answering

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        path = url.path.removeprefix(BASE).strip("/").split("/")
        asked = {name: given[-1].strip() for name, given in parse_qs(url.query).items()}
        try:
            if path == ["studies"]:
                self._send(200, self.server.trials.page(asked))
            elif path[0] == "studies" and len(path) == 2:
                self._study(unquote(path[1]), asked)
            elif path == ["version"]:
                self._send(200, {"apiVersion": "2.0.5", "dataTimestamp": "2026-01-01T00:00:00"})
            else:
                self._send(404, "Not found")
        except (QueryError, RecursionError) as error:
            self._send(400, str(error))

    def _study(self, trial: str, asked: dict[str, str]) -> None:
        for name in asked:
            if name not in ("fields", "format"):
                raise QueryError(f"`{name}` is unknown parameter")
        study = self.server.trials.by_id.get(trial)
        if study is None:
            return self._send(404, f"NCT number {trial} not found")
        self._send(200, _projected(study, _fields(asked.get("fields", ""))))

    def _send(self, status: int, body: dict[str, Any] | str) -> None:
        kind = "text/plain" if isinstance(body, str) else "application/json"
        raw = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: Any) -> None:
        """Queries may hold a patient's words: none is logged."""


def open_server(records: Path, port: int = 0) -> Answering:
    """A server on 127.0.0.1 that is bound and not yet answering; `port` 0 takes a free one.

    Raises:
        ConfigError: the records cannot be read, or the port is taken.
    """
    try:
        opened = gzip.open if records.suffix == ".gz" else open
        with opened(records, "rt", encoding="utf-8") as lines:
            trials = Trials([json.loads(line) for line in lines if line.strip()])
    except (OSError, EOFError, ValueError, IndexError) as error:
        why = "a line is no study of the API" if isinstance(error, ValueError | IndexError) else "it cannot be opened"
        raise ConfigError(f"{records} cannot be served: {why}.", hint="Give a file of studies, one a line.") from error
    try:
        server = Answering(("127.0.0.1", port), Handler)
    except (OSError, OverflowError) as error:
        raise ConfigError(f"Port {port} cannot be used.", hint="Choose another --port; 0 takes a free one.") from error
    server.trials = trials
    return server


def address(server: Answering) -> str:
    return f"http://127.0.0.1:{server.server_port}{BASE}"


@contextmanager
def serving(records: Path) -> Iterator[str]:
    """The address of a server that answers in a thread until the block ends."""
    server = open_server(records)
    thread = threading.Thread(target=server.serve_forever, name="docgemma-mock-server", daemon=True)
    thread.start()
    try:
        yield address(server)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.replace("|", ",").split(",") if part.strip()]


def _number(asked: dict[str, str], name: str, default: int) -> int:
    text = asked.get(name, "").removeprefix(TOKEN)
    if text and not (text.isdecimal() and len(text) < 10):
        raise QueryError(f"Parameter `{name}` has incorrect format")
    return int(text or default)


def _fields(text: str) -> list[str]:
    """Dotted paths of the wanted pieces; [] where everything is wanted."""
    paths = []
    for name in _listed(text):
        path = PIECES.get(name, name)
        if not any(known == path or known.startswith(f"{path}.") for known in PIECES.values()):
            raise QueryError(f"Parameter 'fields' contains invalid field name: '{name}'")
        paths.append(path)
    return paths


def _projected(raw: dict[str, Any], fields: list[str]) -> dict[str, Any]:
    """The study with the wanted fields only; a field without a value is absent."""
    return _cut(raw, fields) or {"protocolSection": {}} if fields else raw


def _cut(raw: Any, fields: list[str]) -> Any:
    if isinstance(raw, list):
        return [cut for item in raw if (cut := _cut(item, fields))]
    if not isinstance(raw, dict):
        return raw
    out = {}
    for name, value in raw.items():
        below = [rest for first, _, rest in (field.partition(".") for field in fields) if first == name]
        if below and (kept := value if "" in below else _cut(value, below)) not in ({}, []):
            out[name] = kept
    return out
