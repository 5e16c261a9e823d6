"""What is wrong with a request is said before the cache or the engine sees anything of it (C11).

Takes the prompt's ids, the placeholders' ids and the number of items of each modality; raises `RequestError` or gives the
placeholders found. Not for faults that only processing an item shows (`hf_backend.probe.alone`).
"""

import math
from collections.abc import Mapping, Sequence

from hf_backend.errors import RequestError
from hf_backend.placeholders.splice import Target, find_targets


def refuse_empty(processor_class: str, modality: str, items: Sequence[object]) -> None:
    """Raises `RequestError` for a clip without samples and a video without frames. Some processors pad them to something that
    they weren't (Gemma3n hears 60 embeddings in an empty clip), others fail without saying why."""
    for item in items:
        contents = item[0] if isinstance(item, tuple) and item else item
        shape = getattr(contents, "shape", None)
        if shape is not None and math.prod(shape) == 0:
            raise RequestError(
                processor_class,
                found=f"an empty {modality}, of shape {tuple(shape)}",
                expected=f"{modality} with contents",
                do="Leave the item out, or send one that isn't empty.",
            )


def check_counts(
    processor_class: str,
    prompt: Sequence[int],
    targets: Mapping[str, Sequence[int]],
    placeholders: Mapping[str, str],
    item_counts: Mapping[str, int],
) -> list[Target]:
    """The placeholders of `prompt`, as many as there are items of each modality (C4).

    A placeholder that a user wrote literally can't be told from a real one in token ids; it makes one too many, and the
    request is refused rather than an item bound to the wrong place (C7). `targets` and `placeholders` give each served
    modality's placeholder as ids and as text.
    """
    for modality, num_items in item_counts.items():
        if num_items and modality not in targets:
            raise RequestError(
                processor_class,
                found=f"{num_items} {modality} item(s)",
                expected=f"items of {sorted(targets)} only",
                do="The model isn't served with this modality.",
            )
    found = find_targets(prompt, targets)
    for modality in targets:
        num_found = sum(target.modality == modality for target in found)
        num_items = item_counts.get(modality, 0)
        if num_found == num_items:
            continue
        if num_items == 0:
            # Without items of a modality its placeholder is a token like any other, as in HF.
            found = [target for target in found if target.modality != modality]
            continue
        hint = (
            "Put one placeholder for each item into the prompt; a chat template does."
            if num_found < num_items
            else "Take literal placeholders out of the text; a prompt of token ids must not be expanded already."
        )
        raise RequestError(
            processor_class,
            found=f"{num_found} {modality} placeholder(s) {placeholders[modality]!r} in the prompt for"
            f" {num_items} {modality} item(s)",
            expected=f"exactly {num_items}",
            do=hint,
        )
    return found
