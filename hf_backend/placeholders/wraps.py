"""Expansions without the tokens that the prompt has around their placeholders already.

Before transformers 5.15 Qwen2-Audio's processor puts a begin and an end token around a clip only where the prompt has neither:
a chat template writes them, a user may not. Pure functions over lists of ints. Not for measuring the rule (`probe.wraps`).
"""

from collections.abc import Mapping, Sequence

from hf_backend.placeholders.splice import Target
from hf_backend.records import WrapRule


def unwrapped(
    prompt: Sequence[int],
    found: Sequence[Target],
    expansions: Mapping[str, Sequence[Sequence[int]]],
    rules: Mapping[str, WrapRule],
) -> dict[str, list[Sequence[int]]]:
    """`expansions`, by modality and item, as the processor makes them for the placeholders `found` in `prompt`.

    `rules` are those of the modalities that have one.
    """
    made = {modality: list(items) for modality, items in expansions.items()}
    for target in found:
        rule = rules.get(target.modality)
        if rule is None or _beside(prompt, target, rule) not in rule.left_out:
            continue
        expansion = made[target.modality][target.index]
        end = len(expansion) - len(rule.tail)
        if tuple(expansion[: len(rule.head)]) == rule.head and tuple(expansion[end:]) == rule.tail:
            made[target.modality][target.index] = expansion[len(rule.head) : end]
    return made


def _beside(prompt: Sequence[int], target: Target, rule: WrapRule) -> tuple[bool, bool]:
    """Whether the head stands right before `target` and the tail right behind it."""
    before = prompt[max(0, target.start - len(rule.head)) : target.start]
    behind = prompt[target.end : target.end + len(rule.tail)]
    return tuple(before) == rule.head, tuple(behind) == rule.tail
