"""How many CPU threads a model should take on this machine."""

import os
import time
from pathlib import Path

PROC, SYS = Path("/proc"), Path("/sys")


def threads_to_use() -> int:
    """The cores this process may use, less those that others keep busy right now.

    llama.cpp's threads wait for each other by spinning, so one thread too many is worse than one too few: measured on
    two busy cores, two threads took twice as long as one.
    """
    cores = usable_cores()
    return max(1, cores - busy_threads()) if cores <= 16 else cores


def usable_cores() -> int:
    """Physical cores that this process may run on; a container's quota counts."""
    cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    siblings = (SYS / f"devices/system/cpu/cpu{cpu}/topology/thread_siblings_list" for cpu in cpus)
    cores = len({_read(path) or path.parts[-3] for path in siblings})
    limit, _, period = (_read(SYS / "fs/cgroup/cpu.max") or "max").partition(" ")
    return min(cores, max(1, round(int(limit) / int(period)))) if limit != "max" else cores


def busy_threads() -> int:
    """Threads of others that are running now: the fewest of a few looks, so that a passing one does not count."""
    looks = []
    for _ in range(4):
        fields = _read(PROC / "loadavg").split()
        if len(fields) < 4:
            return 0  # not Linux
        looks.append(int(fields[3].split("/")[0]) - 1)  # this thread is one of them
        time.sleep(0.005)
    return max(0, min(looks))


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
