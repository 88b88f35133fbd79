"""What a share and a list of times say: the Wilson interval and percentiles."""

import math
from collections.abc import Sequence


def wilson(right: int, total: int, z: float = 1.96) -> tuple[float, float]:
    """95 % interval of the share `right / total`. (0, 1) where nothing was counted.

    Source: Wilson, J Am Stat Assoc 1927;22:209-212.
    """
    if not total:
        return 0.0, 1.0
    share, spread = right / total, z * z / total
    middle = share + spread / 2
    half = z * (share * (1 - share) / total + spread / (4 * total)) ** 0.5
    return max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread))


def percentile(values: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile, always one of the values; 0.0 where there are none."""
    if not values:
        return 0.0
    rank = math.ceil(len(values) * percent / 100)
    return sorted(values)[max(rank, 1) - 1]
