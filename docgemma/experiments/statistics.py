"""What a share says: its Wilson interval."""


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
