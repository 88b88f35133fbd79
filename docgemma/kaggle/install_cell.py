import importlib.metadata as installed
import subprocess
import sys
import tempfile
from pathlib import Path

# Kaggle's own libraries stay as they are, torch above all: what runs on its GPUs is built for them; transformers is
# replaced where it is older than the wheel's floor
KEEP = ("torch", "torchvision", "torchaudio", "numpy", "scipy", "pandas")


def pip(*args: str) -> None:
    done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", *args], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"pip install {' '.join(args)} failed:\n{done.stderr[-800:]}")


wheels = [path for place in ("/kaggle/input", ".") for path in sorted(Path(place).glob("**/docgemma-*.whl"))]
if not wheels:
    raise SystemExit("The package is not attached. Add input > Datasets: the one made by `docgemma kaggle build`.")
has_gpu = Path("/dev/nvidia0").exists()
print("Installing; this takes a minute or two …")
with tempfile.TemporaryDirectory() as folder:
    kept = Path(folder, "keep.txt")
    have = {dist.metadata["Name"].lower(): dist.version for dist in installed.distributions() if dist.metadata["Name"]}
    kept.write_text("".join(f"{name}=={have[name]}\n" for name in KEEP if name in have))
    pip("--no-deps", "--force-reinstall", str(wheels[0]))
    pip("-c", str(kept), f"{wheels[0]}[{'transformers,' if has_gpu else ''}demo]")
print(f"DocGemma {installed.version('docgemma')} is installed; GPU {'found' if has_gpu else 'not found'}.")
