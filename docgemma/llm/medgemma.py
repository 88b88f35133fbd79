"""Where MedGemma's weights are, and whether this machine has a GPU for them. Small checks only: no torch import."""

import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

HUB_ID = "google/medgemma-1.5-4b-it"
KAGGLE_INPUT = Path("/kaggle/input")
NVIDIA_DEVICES = ("/dev/nvidia0", "/dev/nvidiactl", "/proc/driver/nvidia/version", "/dev/dxg")


def nvidia_device() -> bool:
    """Whether the system shows an NVIDIA device. torch has the last word, once a model is loaded."""
    return any(Path(path).exists() for path in NVIDIA_DEVICES)


def find_weights(home: Path) -> Path | None:
    """MedGemma 1.5 4B on this machine: attached on Kaggle, in the data home, or in the Hugging Face cache."""
    for path in (*_kaggle(KAGGLE_INPUT), home / "models" / "medgemma"):
        if (path / "config.json").is_file():
            return path
    snapshots = hub_cache() / f"models--{HUB_ID.replace('/', '--')}" / "snapshots"
    complete = [
        path.parent for path in sorted(snapshots.glob("*/config.json")) if any(path.parent.glob("*.safetensors"))
    ]
    return complete[-1] if complete else None


def _kaggle(root: Path) -> list[Path]:
    """Model folders under Kaggle's input whose name says MedGemma, 1.5 and 4B instruction-tuned first."""
    if not root.is_dir():
        return []
    found = [path.parent for path in root.glob("**/config.json") if "medgemma" in str(path.parent).lower()]
    return sorted(found, key=lambda path: ("1.5" not in str(path), "4b-it" not in str(path), str(path)))


def hub_cache() -> Path:
    if chosen := os.environ.get("HF_HUB_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("HF_HOME", Path.home() / ".cache" / "huggingface")) / "hub"


def hub_reachable(timeout_s: float = 3.0) -> bool:
    """Whether the hub answers. Asked once, since its client tries an unreachable one for half a minute a file."""
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return True  # only the client knows how to get through
    address = urlsplit(os.environ.get("HF_ENDPOINT") or "https://huggingface.co")
    try:
        socket.create_connection((address.hostname, address.port or 443), timeout_s).close()
    except OSError:
        return False
    return True


def hub_token() -> str | None:
    """The hub's access token from Kaggle's secrets; the hub's client itself looks into the environment and its file."""
    if os.environ.get("HF_TOKEN") or not KAGGLE_INPUT.is_dir():
        return None
    try:
        from kaggle_secrets import UserSecretsClient

        return str(UserSecretsClient().get_secret("HF_TOKEN"))
    except Exception:  # the client raises a different error for each way in which there is no secret
        return None
