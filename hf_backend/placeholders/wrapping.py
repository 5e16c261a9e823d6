"""Expansions whose edge tokens are left out where the prompt has them already.

Qwen2-Audio's processor of transformers before 5.15 puts its begin and end tokens around a clip only where neither stands there, and
a chat template writes both; Idefics2's merges the closing token of a picture with the opening one of the next. Pure functions over
lists of ints: takes a prompt, the targets found in it and the expansions as they are alone; gives the expansions as they are beside
their neighbours. Only text depends on neighbours: the item's fields and embeddings don't (C1), and one whose embeddings would is
never trimmed. Not for finding the rule (`hf_backend.probe.wrapping`).
"""

from collections.abc import Callable, Mapping, Sequence

from hf_backend.placeholders.splice import Target
from hf_backend.records import Wrapping


def edges(expansion: Sequence[int], embed_ids: frozenset[int], is_text: Callable[[int], bool]) -> tuple[int, int]:
    """How many tokens at an expansion's start and end are neither text nor embeddings: what a prompt may have already."""
    length = len(expansion)
    first = next((at for at, token in enumerate(expansion) if token in embed_ids or is_text(token)), length)
    last = next((at for at, token in enumerate(reversed(expansion)) if token in embed_ids or is_text(token)), length)
    return (first, last) if first < length else (0, 0)


def beside(
    prompt: Sequence[int],
    found: Sequence[Target],
    expansions: Mapping[str, Sequence[Sequence[int]]],
    wrappings: Mapping[str, Wrapping | None],
) -> dict[str, list[list[int]]]:
    """`expansions`, each without the edges that its processor leaves out in this prompt.

    `found` is in order of position. A modality without a rule in `wrappings` keeps its expansions.
    """
    fitted = {modality: [list(one) for one in items] for modality, items in expansions.items()}
    previous: tuple[Target, list[int]] | None = None
    for target in found:
        tokens = fitted[target.modality][target.index]
        rule = wrappings.get(target.modality)
        if rule is not None:
            before = list(prompt[max(0, target.start - len(rule.head)) : target.start])
            if rule.sees_expansions and previous is not None and previous[0].end == target.start:
                before = previous[1][-len(rule.head) :]
            after = list(prompt[target.end : target.end + len(rule.tail)])
            has_head = bool(rule.head) and before == list(rule.head)
            has_tail = bool(rule.tail) and after == list(rule.tail)
            drop_head, drop_tail = rule.dropped[(has_head, has_tail)]
            if drop_head and tokens[: len(rule.head)] == list(rule.head):
                del tokens[: len(rule.head)]
            if drop_tail and tokens[-len(rule.tail) :] == list(rule.tail):
                del tokens[-len(rule.tail) :]
        previous = target, tokens
    return fitted
