"""Two items in one call of an HF processor, and how their fields join.

Takes two items with what each is alone; gives what they are together and every field's layout (`hf_backend.probe.layout`). Not
for splitting several new items of a request (`hf_backend.probe.together`).
"""

from typing import TYPE_CHECKING, Any

from hf_backend.errors import UnsupportedModelError
from hf_backend.modalities import Modality
from hf_backend.placeholders.base import Strategy
from hf_backend.probe.alone import PROCESSOR_ERRORS, Processed, process
from hf_backend.probe.layout import layout_of
from hf_backend.records import FieldLayout, Joining

if TYPE_CHECKING:
    from hf_backend.upstream import BaseProcessingInfo


def process_two(
    info: "BaseProcessingInfo",
    modality: Modality,
    strategy: Strategy,
    placeholder: str,
    item_a: object,
    item_b: object,
    alone_a: Processed,
    alone_b: Processed,
) -> tuple[Processed | None, Processed]:
    """Two items in one call, and what the second one is alone.

    A with B; where the processor can't stack items of two sizes (LLaVA-OneVision's videos), A with itself: they then join
    when their sizes are equal. None for the call where it takes one item a prompt only (Audio Flamingo 3).
    """
    text = f"{placeholder} and {placeholder}"
    for second, alone in ((item_b, alone_b), (item_a, alone_a)):
        try:
            return process(info, modality, strategy, text, [item_a, second], {}), alone
        except ValueError:
            continue
    return None, alone_b


def process_two_prompts(
    info: "BaseProcessingInfo", modality: Modality, strategy: Strategy, placeholder: str, item_a: object, item_b: object
) -> Processed | None:
    """Two items in one call where a prompt takes one only: each in a prompt of its own (Audio Flamingo 3). How they join is
    the same for the encoder. None where the processor refuses that, too."""
    try:
        return process(
            info, modality, strategy, [placeholder] * 2, [item_a, item_b], {"text_kwargs": {"padding": True}}
        )
    except PROCESSOR_ERRORS:
        return None


def layouts_of(
    info: "BaseProcessingInfo", a: Processed, b: Processed, both: Processed | None, text_fields: frozenset[str]
) -> dict[str, FieldLayout]:
    """The layout of every field but those that follow the text, from what A, B and `both` gave; nothing is exact where two were
    never seen together. Raises `UnsupportedModelError` where no layout fits."""
    names = sorted(a.fields.keys() - text_fields)
    if both is None:
        return {name: FieldLayout(Joining.CONCATENATED, exact=False) for name in names}
    layouts: dict[str, FieldLayout] = {}
    for name in names:
        layout = None
        if name in b.fields and name in both.fields:
            layout = layout_of(a.fields[name], b.fields[name], both.fields[name])
        if layout is None:
            shapes = [_shape(processed.fields.get(name)) for processed in (a, b, both)]
            raise UnsupportedModelError(
                type(info.get_hf_processor()).__name__,
                found=f"`{name}` of {shapes[0]} for one item, {shapes[1]} for another and {shapes[2]} for both",
                expected="one dimension in which sizes add up, or the same value every time",
                do="Items of this processor can't be told apart, so the model can't be served.",
            )
        layouts[name] = layout
    return layouts


def _shape(value: Any) -> str:
    if value is None:
        return "nothing"
    shape = getattr(value, "shape", None)
    return f"a list of {len(value)}" if shape is None else f"shape {tuple(shape)}"
