"""Attention in chunks, which vLLM's Transformers backend gives full attention.

Takes vLLM's model with its attention layers; puts vLLM's own layer for chunks in the place of those whose tokens see their own
chunk only (Llama 4). Not for sliding windows, which vLLM's backend reads itself.
"""

from typing import Any

from hf_backend.errors import UnsupportedModelError
from hf_backend.upstream.attention import Attention, ChunkedLocalAttention, extract_layer_index

CHUNKED = "chunked_attention"
"""transformers' name in `layer_types`."""


def _wanted(model: Any) -> set[int]:
    """Layers of the type `CHUNKED`."""
    types = getattr(model.text_config, "layer_types", None) or []
    return {index for index, kind in enumerate(types) if kind == CHUNKED}


def with_chunks(model: Any, instances: dict[int, Any]) -> dict[int, Any]:
    """vLLM's attention by layer, with those of the type `CHUNKED` made so.

    vLLM 0.29 keeps them in such a table, and not in the model; later ones see `use_chunks`.
    """
    wanted = _wanted(model)
    return {index: _replaced(one, model) if index in wanted else one for index, one in instances.items()}


def use_chunks(model: Any) -> int:
    """Replace the attention of layers of the type `CHUNKED`; returns how many.

    Raises `UnsupportedModelError` where such a layer's attention isn't found.
    """
    wanted = _wanted(model)
    count = len(wanted)
    if not wanted:
        return 0
    for module in list(model.model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, Attention) and extract_layer_index(child.layer_name) in wanted:
                setattr(module, name, _replaced(child, model))
                wanted.remove(extract_layer_index(child.layer_name))
    if wanted and model.pp_group.world_size == 1:
        raise UnsupportedModelError(
            type(model.model).__name__,
            found=f"no attention of vLLM's in the layers {', '.join(map(str, sorted(wanted)))}",
            expected="one in each layer that attends in chunks",
            do="Answers to prompts longer than a chunk would be wrong. Please report it with the model's name.",
        )
    return count


def _replaced(attention: Any, model: Any) -> Any:
    # vLLM keeps layers by name, once each.
    del model.compilation_config.static_forward_context[attention.layer_name]
    return ChunkedLocalAttention(
        num_heads=attention.num_heads,
        head_size=attention.head_size,
        scale=attention.impl.scale,
        attention_chunk_size=model.text_config.attention_chunk_size,
        num_kv_heads=attention.num_kv_heads,
        cache_config=model.cache_config,
        quant_config=model.quant_config,
        prefix=attention.layer_name,
    )
