"""The kernel's and the dataset's metadata, held to the rules of Kaggle's own client before anything is sent.

Source: kaggle 2.2.5, `kernels_push`, `dataset_create_new` and `_validate_slug_syntax`; its documentation of
kernel-metadata.json and dataset-metadata.json.
"""

import json
import re
from pathlib import Path
from typing import Any

from docgemma.errors import ConfigError, UsageError

USER = "INSERT_USERNAME_HERE"  # in kaggle_kernel.json, as Kaggle's own templates write it
T4 = "NvidiaTeslaT4"  # two of them, in Kaggle's menu "GPU T4 x2"
SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
USER_SLUG = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
SOURCES = {  # the form of each kind of source
    "dataset_sources": r"[^/]+/[^/]+(/\d+)?",
    "competition_sources": r"[^/]+",
    "kernel_sources": r"[^/]+/[^/]+",
    "model_sources": r"[^/]+/[^/]+/[^/]+/[^/]+/\d+",  # owner/model/framework/variation/version
}
FLAGS = ("is_private", "enable_gpu", "enable_internet")
KNOWN = {"id", "title", "code_file", "language", "kernel_type", "machine_shape", *FLAGS, *SOURCES}


def read_metadata(path: Path, user: str) -> dict[str, Any]:
    """The metadata with the user's name filled in.

    Raises:
        ConfigError: the file is not there, or not JSON.
        UsageError: the name cannot be one of a Kaggle user.
    """
    if not USER_SLUG.fullmatch(user):
        raise UsageError(
            f"{user!r} is not the name of a Kaggle user.",
            hint="Give it as it stands in your profile's address: --user NAME, or KAGGLE_USERNAME.",
        )
    try:
        metadata: dict[str, Any] = json.loads(path.read_text(encoding="utf-8").replace(USER, user))
        return metadata
    except (OSError, json.JSONDecodeError) as error:
        raise ConfigError(f"The kernel's metadata cannot be read from {path}.", hint="Restore the file.") from error


def problems(metadata: dict[str, Any]) -> list[str]:
    """What Kaggle would refuse or silently change; empty where all is well."""
    found = [f"unknown field {name!r}" for name in sorted(set(metadata) - KNOWN)]
    found += [f"no field {name!r}" for name in sorted(KNOWN - set(metadata))]
    if found:
        return found
    title, (owner, _, slug) = metadata["title"], metadata["id"].partition("/")
    checks = {
        "the id must be user/slug": bool(USER_SLUG.fullmatch(owner) and SLUG.fullmatch(slug)),
        f"the id must end in the title's slug, {slugified(title)}": slug == slugified(title),
        "a title has 5 to 50 characters": 5 <= len(title) <= 50,
        "the code file must be a notebook in this folder": bool(re.fullmatch(r"[\w-]+\.ipynb", metadata["code_file"])),
        "the language must be python": metadata["language"] == "python",
        "the kernel type must be notebook": metadata["kernel_type"] == "notebook",
        **{f"{name} must be true or false": isinstance(metadata[name], bool) for name in FLAGS},
    }
    for name, form in SOURCES.items():
        for source in metadata[name]:
            checks[f"{name}: {source!r} has not the form that Kaggle reads"] = bool(re.fullmatch(form, source))
    return [problem for problem, holds in checks.items() if not holds]


def dataset_metadata(dataset: str) -> dict[str, Any]:
    """For `kaggle datasets create`. `dataset`: "user/slug"."""
    return {
        "id": dataset,
        "title": "DocGemma package",
        "subtitle": "The DocGemma wheel: code, data and the edge model",
        "description": "The Python package that the DocGemma kernel installs. MIT licence; the patients are synthetic.",
        "licenses": [{"name": "other"}],  # Kaggle lists no MIT; the description names it
    }


def slugified(title: str) -> str:
    """A title as Kaggle writes it in an address."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
