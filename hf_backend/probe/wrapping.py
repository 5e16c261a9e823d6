"""Whether a processor leaves out an expansion's edges where the prompt has them already, and the rule by which it does.

Takes a modality's placeholder, and an item with its expansion alone; asks the processor with the edges' text around the placeholder
(one call where it makes no difference, four or five where it does); gives the rule, or None. Whether the rule explains other
prompts, too, is for the oracle (`hf_backend.probe.oracle`).
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hf_backend.modalities import Modality
from hf_backend.placeholders.base import Strategy
from hf_backend.placeholders.seams import IsText
from hf_backend.placeholders.splice import find_targets, splice
from hf_backend.placeholders.wrapping import beside, edges
from hf_backend.probe.alone import PROCESSOR_ERRORS, process
from hf_backend.records import Wrapping

if TYPE_CHECKING:
    from hf_backend.upstream import BaseProcessingInfo

SITUATIONS = ((False, False), (True, True), (True, False), (False, True))
"""Whether an expansion's head stands before the placeholder, and its tail behind it; or whether they are left out."""


def find_wrapping(
    info: "BaseProcessingInfo",
    modality: Modality,
    strategy: Strategy,
    placeholder: str,
    target: Sequence[int],
    item: object,
    expansion: Sequence[int],
    embed_ids: frozenset[int],
    is_text: IsText,
) -> Wrapping | None:
    """The rule for `expansion`, that of `item` alone; None where its edges are always put in, and where nothing simple
    explains what the processor gives: the oracle then refuses what it can't follow."""
    tokenizer: Any = info.get_tokenizer()
    first, last = edges(expansion, embed_ids, is_text)
    if not first and not last:
        return None
    head, tail = tuple(expansion[:first]), tuple(expansion[len(expansion) - last :])
    head_text, tail_text = tokenizer.decode(list(head)), tokenizer.decode(list(tail))

    @functools.cache
    def asked(text: str) -> list[int] | None:
        try:
            return process(info, modality, strategy, text, [item] * text.count(placeholder), {}).ids
        except PROCESSOR_ERRORS:
            return None

    def explains(text: str, rule: Wrapping | None) -> bool:
        """Whether splicing with `rule` gives what the processor does. A prompt that it refuses shows nothing."""
        if (expected := asked(text)) is None:
            return rule is None
        count = text.count(placeholder)
        for special in (True, False):
            prompt = tokenizer.encode(text, add_special_tokens=special)
            found = find_targets(prompt, {modality.name: target})
            if len(found) == count:
                expansions = beside(prompt, found, {modality.name: [expansion] * count}, {modality.name: rule})
                if splice(prompt, found, expansions)[0] == expected:
                    return True
        return False

    touching = placeholder * 2
    if explains(f"a {head_text}{placeholder}{tail_text} b", None) and (tail != head or explains(touching, None)):
        return None
    rule = Wrapping(head, tail, dict.fromkeys(SITUATIONS, SITUATIONS[0]), sees_expansions=False)
    for has_head, has_tail in SITUATIONS[1:]:
        if (has_head and not head) or (has_tail and not tail):
            continue
        text = f"a {head_text if has_head else ''}{placeholder}{tail_text if has_tail else ''} b"
        for drops in SITUATIONS:
            tried = dataclasses.replace(rule, dropped={**rule.dropped, (has_head, has_tail): drops})
            if explains(text, tried):
                rule = tried
                break
        else:
            return None
    seen = dataclasses.replace(rule, sees_expansions=True)
    return seen if not explains(touching, rule) and explains(touching, seen) else rule
