"""Which tokens of an expansion embeddings replace.

Takes vLLM's processing info, a modality and an expansion; gives token ids. Candidates are what config and processor declare;
an expansion shows which one it is.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hf_backend.modalities import Modality
from hf_backend.probe.parts import text_part

if TYPE_CHECKING:
    from hf_backend.upstream import BaseProcessingInfo


def declared_ids(info: "BaseProcessingInfo", modality: Modality) -> list[tuple[str, int]]:
    """Placeholder ids that the config and the processor declare, with where they stand; the config's first, because that
    is the one the HF model looks for."""
    declared = []
    for source in (text_part(info.get_hf_config()), info.get_hf_processor()):
        for name in modality.token_id_attributes:
            if isinstance(token_id := getattr(source, name, None), int):
                declared.append((f"{type(source).__name__}.{name}", token_id))
    return declared


def find_embed_ids(info: "BaseProcessingInfo", modality: Modality, expansion: Sequence[int]) -> frozenset[int]:
    """The first declared placeholder id that the expansion holds, and the markers' ids. Never the most repeated id: a tile
    of one embedding between two separators has more separators."""
    config = text_part(info.get_hf_config())
    markers = [token_id for name in modality.marker_id_attributes for token_id in getattr(config, name, None) or ()]
    for _, token_id in declared_ids(info, modality):
        if token_id in expansion:
            return frozenset({token_id, *markers})
    raise AssertionError("no expansion without one is accepted (`profile._find_placeholder`)")
