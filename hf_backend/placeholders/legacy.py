"""The legacy strategy: what is left of the expanded prompt between the known ids before and after the placeholder.

For transformers before 5.15, and for processors of later releases that report no offsets. The prompt is the placeholder
alone, so that what stands around it is only what the tokenizer adds to every text.
"""

from collections.abc import Mapping
from typing import Any

from hf_backend.placeholders.base import Replacement, Tokenizer
from hf_backend.placeholders.splice import occurrences


class Legacy:
    """Cuts the expansion out of the expanded ids."""

    name = "legacy"
    call_arguments: Mapping[str, object] = {}

    def read(
        self, output: Mapping[str, Any], ids: list[int], placeholder: str, modality: str, tokenizer: Tokenizer
    ) -> Replacement | None:
        """See `Strategy.read`. None where the ids don't begin and end as the unexpanded prompt does: the processor then
        edits the prompt beyond its placeholders (PaliGemma moves the bos token behind the picture)."""
        target = tokenizer.encode(placeholder, add_special_tokens=False)
        for special in (True, False):
            prompt = tokenizer.encode(placeholder, add_special_tokens=special)
            starts = occurrences(prompt, target)
            if len(starts) != 1:
                continue
            before, after = prompt[: starts[0]], prompt[starts[0] + len(target) :]
            end = len(ids) - len(after)
            if len(before) <= end and ids[: len(before)] == before and ids[end:] == after:
                return Replacement(placeholder, tuple(ids[len(before) : end]))
        return None
