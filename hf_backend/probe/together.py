"""Processing several items in one HF call, and finding out whether that may be done.

Takes `alone` of a modality and items; gives the items of one call, equal bit for bit to each alone, or says that they have to be
processed alone. The split itself is `hf_backend.probe.joint`.
"""

from collections.abc import Mapping, Sequence

from hf_backend.errors import RequestError
from hf_backend.placeholders.base import Replacement
from hf_backend.probe.alone import PROCESSOR_ERRORS, Alone, Processed, process
from hf_backend.probe.joint import expansions_of, joint_split, same_items, split_fields
from hf_backend.records import FieldLayout, Item, JointSplit


def together(
    alone: Alone, items: Sequence[object], split: JointSplit, layouts: Mapping[str, FieldLayout]
) -> list[Item] | None:
    """All of `items` in one HF call with the start-up options; None where the processor refuses them or the split isn't
    certain for them, and they have to be processed alone."""
    # A line an item: a tokenizer doesn't merge placeholders with newlines, and nothing of the text is used.
    text = "\n".join([alone.placeholder] * len(items))
    try:
        processed = process(alone.info, alone.modality, alone.strategy, text, items, {})
    except PROCESSOR_ERRORS:
        return None
    replaced = expansions_of(processed.output, alone.modality.name, len(items), alone.info.get_tokenizer())
    parts = split_fields(processed.fields, split, layouts, len(items))
    if replaced is None or parts is None:
        return None
    made = [
        alone.item(item, one.placeholder, one.ids, {**part})
        for item, one, part in zip(items, replaced, parts, strict=True)
    ]
    if split.num_embeds is not None and any(one.expansion.num_embeds != split.num_embeds for one in made):
        return None
    return made


def find_joint(
    alone: Alone, layouts: Mapping[str, FieldLayout], probes: Sequence[tuple[object, Processed, Replacement]]
) -> JointSplit | None:
    """How A, B and A are told apart in one call, if that is certain and gives what they are alone.

    Two items of one size and one of another: processors group by size. Videos have calls of their own: their frames take all
    of the time (see `compat.bench.calls`).
    """
    if alone.modality.name == "video" or alone.strategy.name != "offsets":
        return None
    try:
        first, second = (
            alone.item(item, replaced.placeholder, replaced.ids, processed.fields)
            for item, processed, replaced in probes
        )
    except RequestError:
        return None
    if (split := joint_split(first, second, layouts)) is None:
        return None
    (item_a, _, _), (item_b, _, _) = probes
    made = together(alone, [item_a, item_b, item_a], split, layouts)
    return split if made is not None and same_items(made, [first, second, first]) else None
