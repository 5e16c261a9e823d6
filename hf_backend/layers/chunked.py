"""Attention in chunks, which vLLM's Transformers backend gives full attention.

Takes vLLM's model with its attention layers; puts vLLM's own layer for chunks in the place of those whose tokens see their own
chunk only (Llama 4). Not for sliding windows, which vLLM's backend reads itself.
"""

from typing import Any

from hf_backend.errors import UnsupportedModelError
from hf_backend.upstream.attention import Attention, ChunkedLocalAttention, extract_layer_index

CHUNKED = "chunked_attention"
"""transformers' name in `layer_types`."""


def use_chunks(model: Any) -> int:
    """Replace the attention of layers of the type `CHUNKED`; returns how many.

    Raises `UnsupportedModelError` where such a layer's attention isn't found.
    """
    types = getattr(model.text_config, "layer_types", None) or []
    wanted = {index for index, kind in enumerate(types) if kind == CHUNKED}
    if not wanted:
        return 0
    forward_context = model.compilation_config.static_forward_context
    for module in list(model.model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, Attention) and extract_layer_index(child.layer_name) in wanted:
                # vLLM keeps layers by name, once each.
                del forward_context[child.layer_name]
                setattr(module, name, _in_chunks(child, model))
                wanted.remove(extract_layer_index(child.layer_name))
    if wanted and model.pp_group.world_size == 1:
        raise UnsupportedModelError(
            type(model.model).__name__,
            found=f"no attention of vLLM's in the layers {', '.join(map(str, sorted(wanted)))}",
            expected="one in each layer that attends in chunks",
            do="Answers to prompts longer than a chunk would be wrong. Please report it with the model's name.",
        )
    return sum(kind == CHUNKED for kind in types)


def _in_chunks(attention: Any, model: Any) -> Any:
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
