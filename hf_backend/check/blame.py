"""Whose fault an error is: the processor's, the model's, a release's of transformers or vLLM, or ours; and what to do.

Takes an exception; gives a `Blame`, by the class it names or by whose code raised it. A guess where a library raises for
another's mistake, so the error's own text always goes with it.
"""

import traceback
from collections.abc import Sequence
from dataclasses import dataclass

from hf_backend import versions
from hf_backend.errors import HFBackendError

PROCESSOR, MODEL, TRANSFORMERS, VLLM, OURS, MACHINE, UNKNOWN = (
    "the processor",
    "the model",
    "this transformers release",
    "this vLLM release",
    "hf_backend",
    "this machine",
    "not known",
)

UNKNOWN_TO_TRANSFORMERS = (
    "does not recognize this architecture",
    "Unrecognized configuration class",
    "Unrecognized model",
)
"""How transformers says that a model is newer than itself, or needs code of its own."""
NEEDS_REMOTE_CODE = ("trust_remote_code", "trust-remote-code")


@dataclass(frozen=True, slots=True)
class Blame:
    """Whose fault, and what to do."""

    whose: str
    found: str
    """The error's text."""
    do: str


def blame(error: BaseException) -> Blame:
    """Judge `error`."""
    chain = _chain(error)
    for one in chain:
        if isinstance(one, HFBackendError):
            return Blame(_of_class(one.at_fault), str(one), one.do)
    error = chain[-1] if callable(getattr(error, "errors", None)) else error
    text = f"{type(error).__name__}: {error}".strip()
    whole = " ".join(str(one) for one in chain)
    if any(sign in whole for sign in NEEDS_REMOTE_CODE):
        return Blame(MODEL, text, "The model brings code of its own: read it, then add --trust-remote-code.")
    if any(sign in whole for sign in UNKNOWN_TO_TRANSFORMERS):
        return Blame(
            TRANSFORMERS,
            text,
            f"transformers {versions.transformers_version()} doesn't know this model: pip install --upgrade transformers"
            f" (within {versions.SUPPORTED_TRANSFORMERS}).",
        )
    if isinstance(error, MemoryError) or "out of memory" in whole.lower():
        return Blame(MACHINE, text, "Free memory, or give less: --max-model-len, --limit-mm-per-prompt.")
    frames = [frame.filename for one in chain for frame in traceback.extract_tb(one.__traceback__)]
    return Blame(*_of_frames(frames, text))


def _chain(error: BaseException) -> list[BaseException]:
    """`error`, what it was raised from, and what pydantic keeps inside it: vLLM's configs wrap whatever a check raises."""
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        current = waiting.pop(0)
        if current is None or current in found:
            continue
        found.append(current)
        waiting += [current.__cause__ or current.__context__]
        if callable(told := getattr(current, "errors", None)):
            waiting += [one["ctx"].get("error") for one in told() if isinstance(one, dict) and "ctx" in one]
    return found


def _of_class(name: str) -> str:
    return PROCESSOR if "Processor" in name else MODEL


def _of_frames(frames: Sequence[str], text: str) -> tuple[str, str, str]:
    """By the innermost frame in code that isn't a library under all of them (torch, tokenizers, …)."""
    for filename in reversed(frames):
        parts = filename.replace("\\", "/").split("/")
        if "transformers_modules" in parts:
            if "process" in parts[-1]:
                return PROCESSOR, text, "The code that the model brings raised it: mend it there, or pin its revision."
            return MODEL, text, "The code that the model brings raised it: mend it there, or pin its revision."
        if "hf_backend" in parts and "check" not in parts:
            return OURS, text, "Please report it with this output; until it is mended, HF_BACKEND_DISABLE=1."
        if "vllm" in parts:
            version = versions.vllm_version()
            return (
                VLLM,
                text,
                f"vLLM {version} raised it; try another of {versions.SUPPORTED_VLLM}, or report it there.",
            )
        if "transformers" in parts and "models" in parts:
            whose = PROCESSOR if "processing" in parts[-1] or "processor" in parts[-1] else MODEL
            version = versions.transformers_version()
            return (
                whose,
                text,
                f"Its code in transformers {version} raised it; try another release, or report it there.",
            )
        if "transformers" in parts:
            version = versions.transformers_version()
            return TRANSFORMERS, text, f"transformers {version} raised it; try another release, or report it there."
    return UNKNOWN, text, "Run again with --verbose for the whole error."
