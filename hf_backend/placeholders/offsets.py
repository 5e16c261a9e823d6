"""The offsets strategy: the processor itself reports each placeholder and the text that replaced it.

Needs transformers >= 5.15 and a processor whose `__call__` reaches `ProcessorMixin.get_text_with_replacements`.
"""

from collections.abc import Mapping
from typing import Any

from hf_backend.placeholders.base import Replacement, Tokenizer
from hf_backend.placeholders.splice import occurrences


def unmarked(ids: list[int], tokenizer: Tokenizer) -> list[int]:
    """`ids` without the piece that the tokenizer marks the beginning of every text with, as sentencepiece does."""
    firsts = {tuple(tokenizer.encode(text, add_special_tokens=False)[:1]) for text in ("a", "7")}
    return ids[1:] if firsts == {tuple(ids[:1])} else ids


class Offsets:
    """Reads `text_replacement_offsets`: a list of `{"type", "text", "replacement", …}` a prompt (transformers 5.15)."""

    name = "offsets"
    call_arguments: Mapping[str, object] = {"return_text_replacement_offsets": True}

    def read(
        self, output: Mapping[str, Any], ids: list[int], placeholder: str, modality: str, tokenizer: Tokenizer
    ) -> Replacement | None:
        """See `Strategy.read`. The replacement text is encoded by itself; whether that equals what the tokenizer makes
        of it inside a prompt is what the oracle in `hf_backend.probe.oracle` checks. What a tokenizer marks the beginning of every
        text with is left out where the prompt doesn't have it there (Fuyu's processor takes it off again)."""
        prompts = output.get("text_replacement_offsets")
        if prompts is None or len(prompts) == 0:
            return None
        entries = [entry for entry in prompts[0] if entry["type"] == modality]
        if len(entries) != 1:
            return None
        (entry,) = entries
        encoded = tokenizer.encode(entry["replacement"], add_special_tokens=False)
        if not occurrences(ids, encoded):
            encoded = unmarked(encoded, tokenizer)
        return Replacement(entry["text"], tuple(encoded))
