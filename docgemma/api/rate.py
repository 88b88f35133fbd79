"""How many requests a caller may make: a token bucket each, used on the event loop's thread only."""

import math
import time

from docgemma.api.problems import Problem


class Rate:
    """Args: per_minute: requests a caller may make in a minute; a burst of as many is fine."""

    def __init__(self, per_minute: int):
        self.per_minute = per_minute
        self._left: dict[str, tuple[float, float]] = {}  # caller: (requests left, as of); callers are the known names

    def count(self, name: str, now: float | None = None) -> None:
        """Raises Problem: 429, with the seconds to wait."""
        now = time.monotonic() if now is None else now
        left, since = self._left.get(name, (float(self.per_minute), now))
        left = min(self.per_minute, left + (now - since) * self.per_minute / 60)
        if left < 1:
            self._left[name] = (left, now)
            wait = math.ceil((1 - left) * 60 / self.per_minute)
            raise Problem(429, "Too many requests.", f"Wait {wait} s, then try again.", retry_after=wait)
        self._left[name] = (left - 1, now)
