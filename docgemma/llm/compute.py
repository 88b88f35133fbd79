"""Which number type a model computes in, decided by the device alone."""

from dataclasses import dataclass

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
