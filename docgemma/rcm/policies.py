"""Find the payer's policy for what is asked: by its names first, else by the nearest criteria and names, else none."""

import hashlib
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from rapidfuzz import fuzz, process

from docgemma.paths import data_file
from docgemma.rcm.meaning import WIDTH, embed
from docgemma.rcm.policy_files import load_policies
from docgemma.rcm.policy_names import called, differs, names, words
from docgemma.rcm.records import Policy
from docgemma.reading.reader import load_reader
from docgemma.text.words import plain

NEAR = 0.65  # cosine of a question and the nearest name; chosen on the `dev` queries of data/rcm/policies
COMMON = 20_000  # the encoder's vocabulary is ordered by frequency; behind are technical words
SPELT = 90  # of 100: a word of the question is a misspelt word of a name


class PolicyIndex:
    """Every criterion and every name of every policy in Qdrant, by meaning (MiniLM).

    Args:
        url: of a Qdrant server; "" keeps the index in this process.

    Attributes:
        fallback: why the local index answers although a server was named, in one line; "" where it does not.
    """

    def __init__(self, url: str = "", policies: Mapping[str, Policy] | None = None):
        self.policies = dict(load_policies() if policies is None else policies)
        self.fallback = ""
        self._points = list(_points(self.policies.values()))
        self._words = sorted({word for _, text in self._points for word in words(text) if len(word) > 4})
        digest = hashlib.sha256("\n".join(f"{key} {text}" for key, text in self._points).encode()).hexdigest()
        self._collection = f"docgemma_meanings_{digest[:12]}"  # of these texts only, also where a server keeps others
        # names need no index, so that of this process is filled at the first question that needs it
        self._client = self._open(url) if url else None

    def search(self, payer: str, asked_for: str) -> Policy | None:
        """The payer's policy for a procedure or drug; None is "Policy Not Found", never a neighbour's policy.

        Args:
            payer: its name, in any case and spacing.
            asked_for: a name, an abbreviation, a code, or a whole question that holds one.
        """
        own = {key: one for key, one in self.policies.items() if plain(one["payer"]) == plain(payer)}
        asked = self._mended(asked_for)
        fitting = {key: one for key, one in own.items() if not differs(asked, one)}
        named = {key: score for key, one in fitting.items() if (score := names(asked, one))}
        if named:
            best = max(named.values())
            first = [key for key, score in named.items() if score == best]
            return self.policies[first[0]] if len(first) == 1 else None
        if not fitting or any(names(asked, one) and not differs(asked, one) for one in self.policies.values()):
            return None  # what another payer has a policy for
        near = self.nearest(" ".join(asked), payer)
        sure = near and near[0][0] in fitting and near[0][1] >= NEAR and not self._foreign(asked, near[0][0])
        return self.policies[near[0][0]] if sure else None

    def nearest(self, asked_for: str, payer: str = "") -> list[tuple[str, float]]:
        """Policies nearest to a text, best first: (id, cosine of its best point).

        Args:
            payer: only its policies; "" takes all.
        """
        from qdrant_client import models

        match = models.FieldCondition(key="payer", match=models.MatchValue(value=plain(payer)))
        only = models.Filter(must=[match]) if payer else None
        asked: dict[str, Any] = {"query": embed([asked_for])[0].tolist(), "query_filter": only, "limit": 30}
        self._client = self._client or self._open("")
        try:
            found = self._client.query_points(self._collection, **asked)
        except _down() as error:
            self._client = self._local(error)
            found = self._client.query_points(self._collection, **asked)
        close: dict[str, float] = {}
        for point in found.points:
            close.setdefault(point.payload["policy"], point.score)
        return list(close.items())

    def _foreign(self, asked: tuple[str, ...], policy: str) -> list[str]:
        """Technical words of a question that a policy's names and criteria do not hold: it asks for another thing."""
        known = {word for key, text in self._points if key == policy for word in words(text)}
        common = load_reader(data_file("edge", "reader.npz")).common
        return [word for word in asked if word not in known and not word.isdigit() and not common(word, COMMON)]

    def _open(self, url: str) -> Any:
        """The index, filled, on a server or in this process."""
        from qdrant_client import QdrantClient

        try:
            options: dict[str, Any] = {"url": url, "timeout": 5, "check_compatibility": False}
            return self._filled(QdrantClient(**options) if url else QdrantClient(":memory:"))
        except _down() as error:
            return self._local(error)

    def _local(self, error: Exception) -> Any:
        """The same index in this process."""
        self.fallback = f"The policy server could not be asked ({type(error).__name__}); the local index answered."
        return self._open("")

    def _filled(self, client: Any) -> Any:
        from qdrant_client import models

        if not client.collection_exists(self._collection):
            space = models.VectorParams(size=WIDTH, distance=models.Distance.COSINE)
            client.create_collection(self._collection, space)
        if client.count(self._collection).count == len(self._points):
            return client
        points = [
            models.PointStruct(
                id=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{key}:{text}")),
                vector=vector.tolist(),
                payload={"policy": key, "payer": plain(self.policies[key]["payer"])},
            )
            for (key, text), vector in zip(self._points, embed([text for _, text in self._points]), strict=True)
        ]
        client.upsert(self._collection, points)
        return client

    def _mended(self, asked_for: str) -> tuple[str, ...]:
        """The words of a question, those misspelt as the names have them."""
        mended = []
        for word in words(asked_for):
            near = (
                process.extractOne(word, self._words, scorer=fuzz.ratio, score_cutoff=SPELT) if len(word) > 5 else None
            )
            mended.append(near[0] if near else word)
        return tuple(mended)


def _points(policies: Iterable[Policy]) -> Iterable[tuple[str, str]]:
    """(policy, text) of each point of the index: its title, each name, each criterion."""
    for policy in policies:
        for text in dict.fromkeys([policy["title"], *called(policy), *(item["text"] for item in policy["criteria"])]):
            yield policy["id"], text


def _down() -> tuple[type[Exception], ...]:
    """What qdrant-client raises of a server that is down, refuses or answers nonsense."""
    from qdrant_client.http.exceptions import ApiException

    return ApiException, OSError
