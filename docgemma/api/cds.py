"""CDS Hooks 2.0: the order check as cards at order-select and order-sign, and a chart's warnings at patient-view."""

import asyncio
import uuid
from typing import Any, cast

from fastapi import APIRouter

from docgemma.agent import Agent
from docgemma.api import docs
from docgemma.api.cds_data import Feedback, Hook, HookRequest, known, services
from docgemma.api.cds_orders import Draft, read_drafts, selected
from docgemma.api.models import Cards, Received, Services
from docgemma.api.problems import Problem
from docgemma.ehr.facts import NOT_ABNORMAL
from docgemma.nodes.context import Context
from docgemma.nodes.write_findings import order_findings
from docgemma.rules.chart_entries import UNDOCUMENTED
from docgemma.rules.order_check import CONTRAINDICATED, MAJOR, MODERATE, NOTE, UNCHECKED, Finding, shown
from docgemma.tools.base import clip
from docgemma.tools.records import chart_data

SUMMARY_CHARS = 139  # the specification: fewer than 140
RESULTS = 8
BESIDE = " (another draft order)"
INDICATORS = {CONTRAINDICATED: "critical", MAJOR: "critical", MODERATE: "warning"}  # else info
MARKUP = str.maketrans({char: f"\\{char}" for char in "\\`*_[]#|~"} | {"<": "&lt;", ">": "&gt;"})


class Hooks:
    """The services over one agent's record store and rules. No language model is asked."""

    def __init__(self, agent: Agent):
        self.agent = agent

    def add_to(self, routes: APIRouter) -> None:
        tag, path = "cds-hooks", "/cds-services"
        routes.get(path, **docs.told(tag, "services"))(self.discover)
        routes.post(path + "/{service}", **docs.told(tag, "cards", "hook"))(self.call)
        routes.post(path + "/{service}/feedback", **docs.told(tag, "received", "feedback"))(self.feedback)

    def discover(self) -> Services:
        """The services, and the data that they ask to be sent along."""
        table = services()
        return Services(services=[item | {"prefetch": table["prefetch"]} for item in table["services"]])

    async def call(self, service: Hook, given: HookRequest) -> Cards:
        """Cards for a hook. A check that could not be made is said on a card."""
        if given.hook != service:
            raise Problem(422, "The hook is not the one of this service.", "Compare it with /cds-services.")
        return Cards(cards=await asyncio.to_thread(self.cards, given))

    def feedback(self, service: Hook, given: Feedback) -> Received:
        """Take what became of cards."""
        return Received(received=len(given.feedback))

    def cards(self, given: HookRequest) -> list[dict[str, Any]]:
        """Raises Problem, StoreError: see `known`."""
        needed = set(services()["needs"][given.hook])
        if given.hook == "patient-view":
            data = known(given, self.agent.store, needed)
            return _overview(chart_data(data.chart), data.unchecked, data.origin)
        drafts, unreadable = read_drafts(given)
        chosen = selected(given)
        if not drafts and not unreadable:
            return []
        data = known(given, self.agent.store, needed)
        chart = chart_data(data.chart)
        cards = [
            self._order(draft, [other for other in drafts if other is not draft], chart, data.unchecked, data.origin)
            for draft in drafts
            if chosen is None or draft.reference in chosen
        ]
        if unreadable:
            what = (
                f"{len(unreadable)} medication order{'s'[: len(unreadable) > 1]} could not be read and not be checked"
            )
            cards.append(
                _card(f"{what}.", ["Only a MedicationRequest (FHIR R4) that names its medicine is checked."], MODERATE)
            )
        return cards

    def _order(
        self, draft: Draft, others: list[Draft], chart: dict[str, Any], unchecked: list[str], origin: str
    ) -> dict[str, Any]:
        gate = cast(Context, self.agent)  # store, knowledge, settings, drugs: what the gate reads of a context
        beside = [
            {"name": other.name + BESIDE, "dosage": "", "active": True, "status": "draft", "started": "", "reason": ""}
            for other in others
        ]
        chart = {**chart, "medications": [*chart["medications"], *beside]}
        found = [Finding(CONTRAINDICATED, "This patient is recorded as deceased.")] if chart["deceased"] else []
        for dose, often, said in draft.doses or [("", "", "")]:
            args = {"medication_name": draft.name, "dosage": dose, "frequency": often, "notes": said}
            found += order_findings(args, chart, gate)
        if not all(dose for dose, _, _ in draft.doses or [("", "", "")]):
            found.append(Finding(UNCHECKED, f"the dose of {draft.name} (the order does not say it)"))
        if len(draft.doses) > 1:
            found.append(Finding(UNCHECKED, "the sum of the doses (each instruction was checked by itself)"))
        found += [Finding(UNCHECKED, text) for text in unchecked]
        found = [
            item._replace(text=item.text.replace(f"{BESIDE} is already active", " is drafted too")) for item in found
        ]
        if not self.agent.drugs.find(draft.name):  # a typing error in a chat, but a code without a name here
            found = [
                item._replace(rank=MODERATE) if item.text.startswith(f"{draft.name} is not a known") else item
                for item in found
            ]
        worst = min((item for item in found if item.rank != UNCHECKED), key=lambda item: item.rank, default=None)
        rank = worst.rank if worst else UNCHECKED
        if worst and rank < NOTE:
            summary = f"{clip(draft.name, 40)}: {worst.text}"
        else:
            gaps = any(item.rank == UNCHECKED for item in found)
            summary = (
                f"{clip(draft.name, 40)}: no grave finding{', but not everything could be checked' if gaps else ''}."
            )
        return _card(summary, [*shown(found), f"Patient data: {origin}."], rank)


def _overview(chart: dict[str, Any], unchecked: list[str], origin: str) -> list[dict[str, Any]]:
    active = [item for item in chart["allergies"] if item["active"]]
    abnormal = [item for item in chart["labs"] if item["flag"] not in NOT_ABNORMAL]
    abnormal.sort(key=lambda item: item["date"], reverse=True)
    allergies = [
        " ".join(filter(None, (item["substance"], f"({item['reaction']})" if item["reaction"] else "")))
        for item in active
    ]
    lines = [f"Allergy: {text}." for text in allergies] or ([] if chart["no_known_allergies"] else [UNDOCUMENTED])
    lines += [
        f"{item['name']} {item['value']} {item['unit']} ({item['flag']}, {item['date'] or 'undated'})."
        for item in abnormal[:RESULTS]
    ]
    if len(abnormal) > RESULTS:
        lines.append(f"{len(abnormal) - RESULTS} further abnormal results.")
    lines += [f"Could not be checked: {'; '.join(unchecked)}."] if unchecked else []
    told = f"Allergies: {', '.join(allergies)}" if allergies else "No allergy is recorded"
    summary = f"{told}; {len(abnormal)} abnormal result{'s'[: len(abnormal) != 1]}."
    return [_card(summary, [*lines, f"Patient data: {origin}."], NOTE)] if lines else []


def _card(summary: str, lines: list[str], rank: int) -> dict[str, Any]:
    card = {
        "uuid": str(uuid.uuid4()), "summary": clip(" ".join(summary.split()), SUMMARY_CHARS),
        "indicator": INDICATORS.get(rank, "info"), "source": {"label": "DocGemma order check"},
        "detail": "\n".join(f"- {line.translate(MARKUP)}" for line in lines),
    }  # fmt: skip
    return card | ({"overrideReasons": services()["overrideReasons"]} if rank in INDICATORS else {})
