"""Twenty clinicians at once, each with a token and a patient of their own, against a real server over REST.

    python benchmarks/load_users.py                       # two minutes; writes data/results/load_users.json
    python benchmarks/load_users.py --users 5 --seconds 30 --out /tmp/load.json

Everything that comes back (answers, events, lists of conversations, errors) is searched for the name and the id of
every patient but the caller's own. Seconds are of whole turns, waiting for a free slot included.
"""

import argparse
import json
import os
import platform
import re
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[1]
OUT = ROOT / "data" / "results" / "load_users.json"
QUESTIONS = (
    "Show the chart of {id}",
    "What are the current medications?",
    "Does the patient have any allergies?",
    "Prescribe lisinopril 10 mg once daily for {id}",  # waits, and is rejected
)


class Server:
    """`docgemma serve` in a process of its own, on an empty data home."""

    def __init__(self, folder: Path, tokens: dict[str, str]):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.url, self.log = f"http://127.0.0.1:{port}", folder / "log.txt"
        kept = {key: value for key, value in os.environ.items() if not key.startswith("DOCGEMMA_")}
        env = kept | {
            "DOCGEMMA_HOME": str(folder / "home"), "DOCGEMMA_MODEL": "edge", "DOCGEMMA_SOURCES": "offline",
            "DOCGEMMA_API_TOKENS": " ".join(f"{name}:write:{secret}" for name, secret in tokens.items()),
            "DOCGEMMA_API_RATE": "1000",
        }  # fmt: skip
        with self.log.open("w") as log:
            command = [sys.executable, "-m", "docgemma", "serve", "--port", str(port)]
            self.process = subprocess.Popen(command, env=env, cwd=ROOT, stdout=log, stderr=log)
        self._wait()

    def _wait(self) -> None:
        for _ in range(600):
            try:
                httpx.get(f"{self.url}/health", timeout=5)
                return
            except httpx.HTTPError:
                assert self.process.poll() is None, self.log.read_text()
                time.sleep(0.2)
        raise SystemExit("The server did not start.")

    def rss_mb(self) -> float:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


class User(threading.Thread):
    """Asks about one patient until the time is up, now and then in the wrong way, and reads what comes back."""

    def __init__(self, number: int, url: str, secret: str, patients: list[dict[str, str]], end: threading.Event):
        super().__init__(daemon=True)
        self.own = patients[number]
        self.foreign = [
            word for patient in patients if patient is not self.own for word in (patient["id"], patient["name"])
            if word.lower() not in (self.own["id"].lower(), self.own["name"].lower())
        ]  # fmt: skip
        self.client = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {secret}"}, timeout=310)
        self.end, self.number = end, number
        self.seconds: list[float] = []
        self.statuses: Counter[str] = Counter()
        self.problems: list[str] = []
        self.crossed: list[str] = []
        self.about_own = self.waited = 0
        self.thread: str | None = None

    def run(self) -> None:
        turn = self.number  # not everybody does the same at the same time
        while not self.end.is_set():
            if turn % len(QUESTIONS) == 0:
                self.thread = None
            self.ask(QUESTIONS[turn % len(QUESTIONS)].format(**self.own), stream=turn % 2 == 1)
            turn += 1
            if not self.end.is_set() and turn % 3 == 0:
                self.others(turn)

    def ask(self, question: str, stream: bool) -> None:
        asked = {"question": question} | ({"thread": self.thread} if self.thread else {"patient": self.own["id"]})
        report = self.turn("/agent/query", asked, stream)
        if report and report["status"] == "needs_approval":
            self.waited += 1
            decision = {"thread": report["thread"], "decision": "reject", "seen": report["pending_write"]}
            report = self.turn("/agent/resume", decision, stream)
        self.thread = report["thread"] if report else None

    def turn(self, path: str, body: dict[str, Any], stream: bool) -> dict[str, Any] | None:
        start = time.perf_counter()
        accept = "text/event-stream" if stream else "application/json"
        answer = self.call("POST", path, 200, json=body, headers={"Accept": accept})
        if answer is None or answer.status_code != 200:
            return None
        text = answer.text.rsplit("event: report\ndata: ", 1)[-1] if stream else answer.text
        try:
            report = json.loads(text)
        except json.JSONDecodeError:
            late = '"status": 504' in text
            self.problems.append(f"{path}, as a stream: {504 if late else 'it ended without a report'}")
            return None
        self.seconds.append(time.perf_counter() - start)
        self.about_own += self.own["id"] in text or self.own["name"] in text
        return report

    def others(self, turn: int) -> None:
        """What is not a turn: the list, and three ways to be refused."""
        listed = self.call("GET", "/agent/threads", 200)
        if listed is not None:
            wrong = [item for item in listed.json()["threads"] if not item["thread"].startswith(f"api.u{self.number}.")]
            self.crossed += ["somebody else's conversation was listed"] * len(wrong)
        somebody = f"api.u{(self.number + 1) % 20}.{'0' * 24}"
        self.call("POST", "/agent/resume", 404, json={"thread": somebody})
        self.call("POST", "/agent/query", 404, json={"question": "Who is it?", "patient": f"nobody-{turn}"})
        self.call("POST", "/agent/query", 422, content=b"{", headers={"Content-Type": "application/json"})

    def call(self, method: str, path: str, expected: int, **how: Any) -> httpx.Response | None:
        try:
            answer = self.client.request(method, path, **how)
        except httpx.HTTPError as error:
            self.problems.append(f"{method} {path}: {type(error).__name__}")
            return None
        self.statuses[str(answer.status_code)] += 1
        if answer.status_code != expected:
            self.problems.append(f"{method} {path}: {answer.status_code} instead of {expected}")
        text = answer.text.lower()
        # whole words; an id of digits alone also stands in counts and seconds, so that the name must do for it
        words = [word for word in self.foreign if not word.isdigit()]
        self.crossed += [f"{path} named {word}" for word in words if re.search(rf"\b{re.escape(word.lower())}\b", text)]
        return answer


def patients() -> list[dict[str, str]]:
    """All synthetic patients, those with a name of their own first."""
    from docgemma.ehr.open import open_store
    from docgemma.settings import Settings

    with tempfile.TemporaryDirectory() as home:
        store = open_store(Settings(home=Path(home)))
        from docgemma.ehr.open import seed_resources

        ids = [item["id"] for item in seed_resources() if item["resourceType"] == "Patient"]
        found = [{"id": match.id, "name": match.name} for match in map(store.patient, ids) if match]
        store.close()
    names = Counter(patient["name"] for patient in found)
    return sorted(found, key=lambda patient: names[patient["name"]] > 1)


def run(users: int, seconds: float) -> dict[str, Any]:
    known = patients()
    secret = {f"u{number}": secrets.token_urlsafe(24) for number in range(users)}
    end = threading.Event()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder), secret)
        try:
            people = [User(number, server.url, secret[f"u{number}"], known, end) for number in range(users)]
            people[0].ask(QUESTIONS[0].format(**people[0].own), stream=False)  # the first turn loads what is lazy
            people[0].seconds.clear()
            rss = [server.rss_mb()]
            for person in people:
                person.start()
            for _ in range(4):
                time.sleep(seconds / 4)
                rss.append(server.rss_mb())
            end.set()
            for person in people:
                person.join()
            rss.append(server.rss_mb())
            said = server.log.read_text(encoding="utf-8")
        finally:
            server.process.terminate()
            server.process.wait(60)
    return summary(people, rss, seconds, said, known)


def summary(
    people: list[User], rss: list[float], seconds: float, said: str, known: list[dict[str, str]]
) -> dict[str, Any]:
    turns = sorted(second for person in people for second in person.seconds)
    statuses = sum((person.statuses for person in people), Counter())
    named = [
        patient["id"]
        for patient in known
        if patient["name"] in said or (patient["id"] in said and not patient["id"].isdigit())
    ]
    return {
        "users": len(people), "seconds": seconds, "model": "edge", "date": datetime.now(UTC).date().isoformat(),
        "machine": {"cores": os.cpu_count(), "system": platform.system(), "load_average": os.getloadavg()[0]},
        "requests": sum(statuses.values()), "statuses": dict(sorted(statuses.items())),
        "turns": len(turns), "turns_about_own_patient": sum(person.about_own for person in people),
        "entries_that_waited": sum(person.waited for person in people),
        "fewest_turns_of_a_user": min(len(person.seconds) for person in people),
        "most_turns_of_a_user": max(len(person.seconds) for person in people),
        "errors": sum(len(person.problems) for person in people),
        "error_kinds": dict(Counter(line for person in people for line in person.problems)),
        "crosstalk": sum(len(person.crossed) for person in people),
        "crosstalk_kinds": dict(Counter(line for person in people for line in person.crossed)),
        "patients_named_in_the_log": named,
        "median_s": round(statistics.median(turns), 2),
        "p95_s": round(statistics.quantiles(turns, n=20, method="inclusive")[-1], 2),
        "rss_mb": {
            name: round(value)
            for name, value in zip(("start", "25 %", "50 %", "75 %", "100 %", "end"), rss, strict=True)
        },
    }  # fmt: skip


def table(result: dict[str, Any]) -> str:
    rss = ", ".join(f"{name} {value}" for name, value in result["rss_mb"].items())
    rows = [
        ("users, seconds", f"{result['users']}, {result['seconds']:g}"),
        ("requests, of them turns", f"{result['requests']}, {result['turns']}"),
        ("errors", result["errors"]),
        ("answers with another's patient", result["crosstalk"]),
        ("turns a user: fewest, most", f"{result['fewest_turns_of_a_user']}, {result['most_turns_of_a_user']}"),
        ("seconds a turn: median, 95th percentile", f"{result['median_s']}, {result['p95_s']}"),
        ("server's memory, MB", rss),
    ]
    return "\n".join(["| | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    result = run(options.users, options.seconds)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    if options.out.is_file():  # an earlier program's run, kept to compare with
        result |= {key: value for key, value in json.loads(options.out.read_text()).items() if key == "before"}
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(table(result))
    if result["errors"] or result["crosstalk"]:
        raise SystemExit(f"{result['error_kinds']} {result['crosstalk_kinds']}")


if __name__ == "__main__":
    main()
