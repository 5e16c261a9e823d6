"""One checkpoint into one model of vLLM.

Takes vLLM's model, a stream of weights and vLLM's own loading; gives the names that were loaded. Which of the model's weights
are missing then, vLLM says.
"""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import torch

from hf_backend.weights.convert import Reader
from hf_backend.weights.names import ServedNames, SkeletonNames
from hf_backend.weights.skeleton import output_embeddings_name


def load(
    model: Any,
    skeleton: Any,
    weights: Iterable[tuple[str, torch.Tensor]],
    load_named: Callable[[Iterable[tuple[str, torch.Tensor]]], set[str]],
) -> set[str]:
    """Load `weights` in any layout that transformers loads into `model` by `load_named`, vLLM's own `load_weights`.

    `skeleton` is transformers' model of the checkpoint. Returns vLLM's names of what was loaded. Raises
    `UnsupportedModelError` naming the checkpoint's weights that have no place.
    """
    names = SkeletonNames(skeleton, strict=model.quant_config is None)
    places = ServedNames.of(skeleton, output_embeddings_name(skeleton), model)
    read = Reader(skeleton, model, names, places)
    whole = model.hf_to_vllm_mapper
    # Names are vLLM's already. Of its mapper only what it has learned of fused layers is left to do: its renamings are for
    # the class without a head, and would rename some names twice.
    model.hf_to_vllm_mapper = dataclasses.replace(whole, orig_to_new_renaming=[], orig_to_new_regex={})
    try:
        return load_named(read(weights))
    finally:
        model.hf_to_vllm_mapper = whole
