"""A stand-in of the four public APIs on 127.0.0.1, with their shapes and their manners, for tests and offline demos.

    with start() as standin:
        Settings(sources="live", home=..., **standin.urls)

`python -m tests.standin` serves until interrupted and prints the variables to export.
"""

import difflib
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tests.standin.samples import ARTICLES, CLASSES, HOMONYMS, LABELS, NAMES, STUDIES

SERVICES = {"openfda_url": "/fda", "rxnav_url": "/rxnav", "europepmc_url": "/europepmc", "ctgov_url": "/ctgov"}
CTGOV_PARAMS = {"query.cond", "filter.overallStatus", "fields", "pageSize", "pageToken", "countTotal", "sort"}
CTGOV_STATUSES = {"RECRUITING", "NOT_YET_RECRUITING", "ENROLLING_BY_INVITATION", "ACTIVE_NOT_RECRUITING", "COMPLETED",
                  "SUSPENDED", "TERMINATED", "WITHDRAWN", "UNKNOWN"}  # fmt: skip


@dataclass
class Standin:
    """A running stand-in. `urls` are keyword arguments of Settings; `requests` what was asked, in order."""

    server: ThreadingHTTPServer
    thread: threading.Thread
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    @property
    def urls(self) -> dict[str, str]:
        root = f"http://127.0.0.1:{self.server.server_port}"
        return {name: root + path for name, path in SERVICES.items()}

    def asked(self, part: str) -> list[dict[str, str]]:
        """The parameters of every request whose path contains `part`."""
        return [params for path, params in self.requests if part in path]

    def stop(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def __enter__(self) -> "Standin":
        return self

    def __exit__(self, *_) -> None:
        self.stop()


def start(port: int = 0) -> Standin:
    """Serve in a thread of this process, on a port chosen by the system unless told otherwise."""
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    server.standin = Standin(server, thread)
    thread.start()
    return server.standin


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        url = urlsplit(self.path)
        params = {key: values[0] for key, values in parse_qs(url.query).items()}
        self.server.standin.requests.append((url.path, params))
        for prefix, answer in (("/fda/", fda), ("/rxnav/", rxnav), ("/europepmc/", europepmc), ("/ctgov/", ctgov)):
            if url.path.startswith(prefix):
                return self.send(*answer(url.path.removeprefix(prefix), params))
        return self.send(404, "Not Found")

    def send(self, status: int, body):
        """JSON, or text/plain for a string, as ClinicalTrials.gov and RxNav say their errors."""
        text = body if isinstance(body, str) else json.dumps(body)
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(body, str) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def fda(path: str, params: dict) -> tuple[int, dict]:
    search = params.get("search", "")
    if path != "drug/label.json":
        return 404, {"error": {"code": "NOT_FOUND", "message": "No matches found!"}}
    if search.count('"') % 2:
        return 500, {"error": {"code": "SERVER_ERROR", "message": "Check your request and try again"}}
    wanted = re.findall(r'openfda\.(\w+):"([^"]*)"', search)
    found = [item for item in LABELS if any(phrase_in(text, item["openfda"].get(part, [])) for part, text in wanted)]
    if "_exists_:boxed_warning" in search:
        found = [item for item in found if "boxed_warning" in item]
    found = sorted(found, key=lambda item: item["effective_time"], reverse="desc" in params.get("sort", ""))
    if not found:
        return 404, {"error": {"code": "NOT_FOUND", "message": "No matches found!"}}
    limit = int(params.get("limit", "1"))
    meta = {"last_updated": "2026-01-31", "results": {"skip": 0, "limit": limit, "total": len(found)}}
    return 200, {"meta": meta, "results": found[:limit]}


def phrase_in(phrase: str, values: list[str]) -> bool:
    """Whole words in order, as an analysed field matches them."""
    return any(f" {phrase.lower()} " in f" {value.lower()} " for value in values)


def rxnav(path: str, params: dict) -> tuple[int, dict | str]:
    ids = {name: f"standin-{index}" for index, name in enumerate(NAMES)}
    names = {rxcui: name for name, rxcui in ids.items()}
    if path == "rxcui.json":
        asked = params["name"].lower()
        found = [ids[name] for name in NAMES if name.lower() == asked] + [ids[n] for n in HOMONYMS.get(asked, [])]
        return 200, {"idGroup": {"rxnormId": found} if found else {}}
    if match := re.fullmatch(r"rxcui/([\w-]+)/(related|properties)\.json", path):
        return concept(names.get(match[1]), match[2], ids)
    if path == "spellingsuggestions.json":
        near = difflib.get_close_matches(params["name"].lower(), [name.lower() for name in NAMES], 5, 0.75)
        return 200, {"suggestionGroup": {"name": None, "suggestionList": {"suggestion": near} if near else None}}
    if path == "approximateTerm.json":
        near = difflib.get_close_matches(params["term"].lower(), list(NAMES), 3, 0.6)
        rows = [{"rxcui": ids[name], "score": "9.1", "rank": "1", "name": name, "source": source}
                for name in near for source in ("RXNORM", "VANDF")]  # fmt: skip
        rows += [{"rxcui": ids[name], "score": "9.1", "rank": "1", "source": "NDDF"} for name in near]
        return 200, {"approximateGroup": {"inputTerm": None, "candidate": rows} if rows else {"inputTerm": None}}
    if path == "rxclass/class/byRxcui.json":
        rows = [{"rxclassMinConceptItem": {"classId": "0", "className": name, "classType": kind}}
                for name, kind in CLASSES.get(names.get(params["rxcui"], ""), [])]  # fmt: skip
        return 200, {"rxclassDrugInfoList": {"rxclassDrugInfo": rows}} if rows else {}
    return 404, "Not found"


def concept(name: str | None, what: str, ids: dict[str, str]) -> tuple[int, dict]:
    if name is None:
        return 200, {}
    kind, ingredients = NAMES[name]
    if what == "properties":
        return 200, {"properties": {"rxcui": ids[name], "name": name, "synonym": "", "tty": kind}}
    if kind == "IN":  # an ingredient has no related ingredient
        return 200, {"relatedGroup": {"rxcui": None, "conceptGroup": [{"tty": "IN"}]}}
    rows = [{"rxcui": ids[item], "name": item, "synonym": "", "tty": "IN"} for item in ingredients]
    return 200, {"relatedGroup": {"rxcui": None, "conceptGroup": [{"tty": "IN", "conceptProperties": rows}]}}


def europepmc(path: str, params: dict) -> tuple[int, dict | str]:
    query = params.get("query", "")
    if path != "search" or params.get("format") != "json":
        return 200, "<errorBean><errCode>404</errCode></errorBean>"
    asked = re.findall(r"\w+", query.split(" AND SRC:MED")[0].lower())
    found = [item for item in ARTICLES if all(word in json.dumps(item).lower() for word in asked)]
    page = found[: int(params.get("pageSize", "25"))]
    request = {"queryString": query, "resultType": params.get("resultType", "lite")}
    return 200, {"version": "6.9", "hitCount": len(found), "request": request, "resultList": {"result": page}}


def ctgov(path: str, params: dict) -> tuple[int, dict | str]:
    unknown = set(params) - CTGOV_PARAMS
    if path != "studies" or unknown:
        return (400, f"`{unknown.pop()}` is unknown parameter") if unknown else (404, "Not Found")
    statuses = set(filter(None, params.get("filter.overallStatus", "").split("|")))
    if statuses - CTGOV_STATUSES:
        return 400, "Invalid value in parameter `overallStatus`"
    condition = params.get("query.cond", "")
    if re.search(r"[\[\]]", condition):
        return 400, "Error parsing query in Conditions or disease"
    found = [item["protocolSection"] for item in STUDIES]
    found = [item for item in found if all(word in json.dumps(item).lower() for word in condition.lower().split())]
    found = [item for item in found if not statuses or item["statusModule"]["overallStatus"] in statuses]
    begin, size = int(params.get("pageToken", "0")), int(params.get("pageSize", "10"))
    page = {"studies": [{"protocolSection": item} for item in found[begin : begin + size]]}
    return 200, page | ({"nextPageToken": str(begin + size)} if begin + size < len(found) else {})
