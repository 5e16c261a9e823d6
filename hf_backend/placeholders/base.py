"""What a placeholder strategy takes and gives.

A strategy reads, from what an HF processor returned for a prompt, which pieces of the prompt it replaced and by which
token ids. Strategies are stateless; which one serves a processor is decided by a probe (`hf_backend.probe.profile`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


class Tokenizer(Protocol):
    """The part of a tokenizer that this package uses."""

    def encode(self, text: str, *, add_special_tokens: bool = ...) -> list[int]:
        """Token ids of `text`."""
        ...


@dataclass(frozen=True, slots=True)
class Replacement:
    """One placeholder as the processor replaced it."""

    placeholder: str
    """The text that was in the prompt."""
    ids: tuple[int, ...]
    """The token ids that took its place."""


class Strategy(Protocol):
    """Reads replacements out of an HF processor's output."""

    @property
    def name(self) -> str:
        """What logs and `doctor` call it."""
        ...

    @property
    def call_arguments(self) -> Mapping[str, object]:
        """Arguments the processor needs in addition, so that its output can be read."""
        ...

    def read(self, output: Mapping[str, Any], modality: str, tokenizer: Tokenizer) -> list[Replacement]:
        """Replacements of `modality` in prompt order; empty where the output doesn't tell.

        `output` is what the processor returned for one prompt.
        """
        ...
