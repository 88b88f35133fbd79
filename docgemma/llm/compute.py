"""What a model computes in and on how many CPU threads, decided by the machine alone."""

import os
from dataclasses import dataclass
from pathlib import Path

SYS = Path("/sys")
NATIVE_BFLOAT16 = (8, 0)  # CUDA compute capability from which bfloat16 is native (Ampere)


@dataclass(frozen=True)
class ComputeType:
    """`name` is a torch dtype's name, `why` one clause for the log."""

    name: str
    why: str


def compute_type(device: str, capability: tuple[int, int] | None = None) -> ComputeType:
    """The compute type for a device.

    Never float16: Gemma 3's activations overflow it and the model then answers nothing but `<pad>` (measured on real
    weights in NF4). A T4 has no native bfloat16, so the usual choice for it is exactly the broken one.

    Args:
        device: "cuda" or "cpu".
        capability: of a CUDA device, (7, 5) for a T4.

    Raises:
        ValueError: another device, or a CUDA device without its capability.
    """
    if device == "cpu":
        return ComputeType("float32", "a CPU computes it fastest and exactly")
    if device != "cuda" or capability is None:
        raise ValueError(f"no compute type is known for {device!r} with capability {capability}")
    major, minor = capability
    if capability >= NATIVE_BFLOAT16:
        return ComputeType("bfloat16", f"native on compute capability {major}.{minor}")
    return ComputeType(
        "float32", f"compute capability {major}.{minor} has no native bfloat16, and float16 makes Gemma 3 answer <pad>"
    )


def usable_cores() -> int:
    """Physical cores that this process may run on; a container's quota counts, and OMP_NUM_THREADS as for torch."""
    cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    cores = len({_read(SYS / f"devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") or cpu for cpu in cpus})
    cores = min(cores, int(os.environ.get("OMP_NUM_THREADS", "").partition(",")[0] or cores))
    limit, _, period = (_read(SYS / "fs/cgroup/cpu.max") or "max").partition(" ")
    return min(cores, max(1, round(int(limit) / int(period)))) if limit != "max" else cores


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
