"""A record store whose last charts stand in for it while it cannot be reached, and that says so."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from docgemma.ehr.base import Chart, RecordStore, Resource
from docgemma.ehr.sqlite import SqliteStore
from docgemma.errors import StoreError
from docgemma.paths import private_file

T = TypeVar("T")
KEPT = "urn:docgemma:kept"  # extension that says when a chart was read


class KeptStore:
    """Reads of a record store. Charts are kept in a private SQLite file and read from there in an outage.

    Attributes:
        fault: of the last call that the store did not answer; None while it answers.
        as_of: when the chart that was read last had been kept, ISO; "" of a live one.
    """

    def __init__(self, live: RecordStore, path: Path):
        self.live, self.kept, self.name = live, SqliteStore(private_file(path)), live.name
        self.fault: StoreError | None = None
        self.as_of = ""

    def chart(self, patient_id: str) -> Chart | None:
        """The chart, or the last one that was read.

        Raises:
            StoreError: the store cannot be reached, and this chart was never read.
        """
        chart = self._asked(lambda store: store.chart(patient_id))
        if self.fault is None:
            self.as_of = ""
            if chart:
                self._keep(chart)
            return chart
        if chart is None:
            raise self.fault
        told = chart.record.get("extension", [])
        self.as_of = next((item["valueDateTime"] for item in told if item.get("url") == KEPT), "")
        return chart

    def __getattr__(self, name: str) -> Any:
        """The other look-ups of a record store (patient, born, named, ...), from where they can be answered."""
        return lambda *args, **options: self._asked(lambda store: getattr(store, name)(*args, **options))

    def close(self) -> None:
        """Close the kept charts; the store itself belongs to whoever opened it."""
        self.kept.close()

    def _asked(self, ask: Callable[[RecordStore], T]) -> T:
        if self.fault is None:  # an outage lasts a turn: each call would wait for its own time limit
            try:
                return ask(self.live)
            except StoreError as error:
                self.fault = error
        return ask(self.kept)

    def _keep(self, chart: Chart) -> None:
        """In place of what was kept of this patient: what was removed from the record is removed here too."""
        lists = [some for some in vars(chart).values() if isinstance(some, list)]
        now = {"url": KEPT, "valueDateTime": datetime.now(UTC).isoformat(timespec="seconds")}
        others = [item for item in chart.record.get("extension", []) if item.get("url") != KEPT]
        patient = {**chart.record, "extension": [*others, now]}
        resources: list[Resource] = [patient, *(item for some in lists for item in some)]
        with self.kept.writing():
            entries = "DELETE FROM resource WHERE patient_id = ? AND type != 'Patient'"
            self.kept.execute(entries, (chart.patient.id,))
        self.kept.save(resources)
