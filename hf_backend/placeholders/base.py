"""What a placeholder strategy takes and gives.

A strategy reads, from what an HF processor returned for a prompt with one item, which piece of the prompt it replaced and
by which token ids. Strategies are stateless; which one serves a processor is decided by a probe
(`hf_backend.probe.profile`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


class Tokenizer(Protocol):
    """The part of a tokenizer that this package uses."""

    def encode(self, text: str, *, add_special_tokens: bool = ...) -> list[int]:
        """Token ids of `text`."""
        ...

    def decode(self, ids: list[int]) -> str:
        """Text of `ids`."""
        ...


@dataclass(frozen=True, slots=True)
class Replacement:
    """One placeholder as the processor replaced it."""

    placeholder: str
    """The text that was in the prompt."""
    ids: tuple[int, ...]
    """The token ids that took its place."""


class Strategy(Protocol):
    """Reads the one replacement out of an HF processor's output."""

    @property
    def name(self) -> str:
        """What logs and `doctor` call it."""
        ...

    @property
    def call_arguments(self) -> Mapping[str, object]:
        """Arguments the processor needs in addition, so that its output can be read."""
        ...

    def read(
        self, output: Mapping[str, Any], ids: list[int], placeholder: str, modality: str, tokenizer: Tokenizer
    ) -> Replacement | None:
        """What took the place of `placeholder` in the prompt that consists of nothing else; None where it can't be told.

        `output` is what the processor returned for that prompt with one item of `modality`, `ids` its token ids.
        """
        ...
