"""The frozen records that the rooms hand to each other.

Gives the per-item record (`Expansion`, `Item`), what was measured of a processor (`FieldLayout`, `ModalityProfile`,
`ProcessorProfile`) and the name of the one field that this package adds to an item. Not for behaviour beyond reading
these records.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import torch

    FieldValue: TypeAlias = torch.Tensor | list[torch.Tensor]
"""What an HF processor says of one item under one name: a tensor, or a list of tensors of different shapes."""


NUM_EMBEDS = "num_embeds"
"""Name of the field that carries each item's embedding count (int64, 0-d, on the CPU) to the encoding room."""

EXPANSION = "expansion"
"""Name of the field that carries an item's expansion, int64 [tokens], on the CPU."""

EMBEDS = "embeds"
"""Name of the one other field of an item that was given as embeddings, [count, hidden size]."""


def wire_name(modality: str, field_name: str) -> str:
    """What a field is called between processor and model.

    vLLM keeps the fields of all modalities of a request in one dictionary, and processors of two modalities may use one
    name; with the modality's name in it, a field can't end up on the other.
    """
    return f"{modality}.{field_name}"


def may_make_positions(value: object) -> bool:
    """Whether a field's value may be what M-RoPE positions are made from: grids, and seconds a frame (Qwen2.5-VL), never
    pixels and waveforms. vLLM takes the others away from an item whose embeddings it still has."""
    tensor: Any = value
    return hasattr(tensor, "ndim") and (tensor.ndim < 2 or not tensor.is_floating_point())


@dataclass(frozen=True, slots=True)
class Expansion:
    """The token ids that take an item's placeholder's place, and which of them embeddings replace."""

    ids: tuple[int, ...]
    is_embed: tuple[bool, ...]

    @property
    def num_embeds(self) -> int:
        """How many embeddings the encoder has to give for the item."""
        return sum(self.is_embed)


@dataclass(frozen=True, slots=True)
class Item:
    """One item as the HF processor describes it when it is processed alone (C1)."""

    placeholder: str
    """The text that the processor replaced."""
    expansion: Expansion
    fields: Mapping[str, "FieldValue"]
    """The processor's outputs that belong to the item; each keeps the batch dimension the processor gave it."""


class Joining(Enum):
    """How the values of one field join when several items are processed in one call."""

    CONCATENATED = "concatenated"
    """Along one dimension; the others are equal or padded to the largest."""
    CONSTANT = "constant"
    """The same whatever the items are."""


@dataclass(frozen=True, slots=True)
class FieldLayout:
    """How one field of several items joins, as seen by processing two items alone and together."""

    joining: Joining
    dim: int = 0
    """The dimension along which sizes add up (for `CONCATENATED`)."""
    exact: bool = True
    """Whether the joint call gave the concatenation bit for bit; if not, it padded."""


@dataclass(frozen=True, slots=True)
class JointSplit:
    """How the fields of several items of one HF call are told apart, as seen on probe items."""

    counted_by: Mapping[str, str | None]
    """Field to the field whose numbers, multiplied, are an item's rows in it; None where every item has one row."""
    num_embeds: int | None
    """The number of embeddings that every item must have for the split to be certain; None where it is in any case."""


@dataclass(frozen=True, slots=True)
class PromptEdit:
    """What a processor does to a prompt with items besides putting expansions into it."""

    drop: tuple[int, ...]
    """Ids that the tokenizer puts before every text, and the processor doesn't."""
    after_last: tuple[int, ...]
    """Ids behind the last item's expansion (PaliGemma: bos)."""
    at_end: tuple[int, ...]
    """Ids at the prompt's end (PaliGemma: a newline)."""


@dataclass(frozen=True, slots=True)
class TouchRule:
    """What a processor does where an expansion touches something (Idefics2)."""

    shared: bool
    """Whether the token at an expansion's edge is one with an equal token that it touches: two items share it."""
    spaced: bool
    """Whether a word right behind an expansion gets a space in front."""


@dataclass(frozen=True, slots=True)
class Splicing:
    """How expansions are put into a prompt so that it is the processor's own."""

    merges_text: bool = False
    """Whether the tokenizer merges text at the expansion's edges with the text beside it (Gemma3)."""
    edit: PromptEdit | None = None
    """What the processor writes into the prompt besides; None for nothing."""
    touching: TouchRule | None = None
    """What it joins where an expansion touches something; None for nothing."""


@dataclass(frozen=True, slots=True)
class WrapRule:
    """Tokens around an item's embeddings that a processor leaves out of an expansion where the prompt has them already."""

    head: tuple[int, ...]
    """Ids before the embeddings in every expansion."""
    tail: tuple[int, ...]
    """Ids behind them."""
    left_out: frozenset[tuple[bool, bool]]
    """Whether the prompt has `head` right before and `tail` right behind the placeholder, wherever both are left out."""


@dataclass(frozen=True, slots=True)
class ModalityProfile:
    """What was measured of a processor for one modality."""

    modality: str
    placeholder: str
    """The text that stands for one item in a prompt."""
    headed: bool
    """Whether the processor itself puts the placeholder in front of the prompt, whose text has none (Fuyu)."""
    target_ids: tuple[int, ...]
    """Its token ids."""
    strategy: str
    """The placeholder strategy that met the oracle."""
    embed_ids: frozenset[int]
    """Ids of the tokens that embeddings replace."""
    layouts: Mapping[str, FieldLayout]
    """Layout of every item field."""
    text_fields: frozenset[str]
    """Outputs that follow the text and are no item fields."""
    joinable: bool
    """Whether items may share one encoder call: how they join was seen."""
    several: bool
    """Whether the processor takes two items in one prompt. Where it doesn't, items are still processed one by one."""
    splicing: Splicing
    """How expansions are put into a prompt."""
    frame: tuple[tuple[int, ...], tuple[int, ...]]
    """Tokens before the first and after the last embedding of an expansion, as far as both probe items agree in them: what
    to put around embeddings that a request brings along."""
    nested: bool
    """Whether the processor takes a list of items for each prompt (`hf_backend.modalities.Modality.nested`)."""
    joint: JointSplit | None
    """How several new items are processed in one call; None where each has a call of its own."""
    wraps: WrapRule | None
    """What the prompt around a placeholder takes from its expansion; None for nothing."""
    probe_calls: int
    """How many calls of the HF processor the measurement took."""
    probe_seconds: float

    @property
    def text(self) -> str:
        """What a prompt has for one item: the placeholder, or nothing where the processor puts it there itself."""
        return "" if self.headed else self.placeholder


@dataclass(frozen=True, slots=True)
class ProcessorProfile:
    """What was measured of one HF processor."""

    processor_class: str
    modalities: Mapping[str, ModalityProfile]
    refused: Mapping[str, str] = field(default_factory=dict)
    """Modality to the reason it isn't served, for those the processor has a part for."""
