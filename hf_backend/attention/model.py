"""The attention rule of the model that vLLM serves, measured once a process and model.

Takes vLLM's processing info; gives its `AttentionRule`. One call of the HF processor, and only for models whose class makes
masks of its own.
"""

from typing import TYPE_CHECKING, Any

import torch
import transformers

from hf_backend.attention.rule import AttentionRule, measure_rule
from hf_backend.probe.alone import process
from hf_backend.probe.parts import sampling_rate
from hf_backend.probe.profile import profile_key
from hf_backend.probe.samples import samples
from hf_backend.processing.info import ProcessingInfo
from hf_backend.upstream import MULTIMODAL_REGISTRY

if TYPE_CHECKING:
    from vllm.config import ModelConfig

VISION = ("image", "video")
"""Modalities that vLLM reports spans of."""


_rules: dict[str, AttentionRule | None] = {}
"""By what they depend on: vLLM makes a new info each time it is asked for one."""


def rule_of(model_config: "ModelConfig") -> AttentionRule | None:
    """The rule of the model of `model_config`, None where attention is plain causal. Raises `UnsupportedModelError`."""
    info = MULTIMODAL_REGISTRY.get_processing_info(model_config)
    assert isinstance(info, ProcessingInfo)
    key = profile_key(info)
    if key not in _rules:
        _rules[key] = _measure(info)
    return _rules[key]


def _measure(info: ProcessingInfo) -> AttentionRule | None:
    config = info.get_hf_config()
    # A class of the checkpoint's own code isn't among these; none is known that makes masks of its own.
    names = getattr(config, "architectures", None) or ()
    classes = [found for name in names if (found := getattr(transformers, name, None)) is not None]
    # A class for pooling (Gemma3Model, Gemma3ForSequenceClassification) makes its masks inside its forward, the same as the
    # class that generates from the same config, which also tells what they are.
    mapping: Any = transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
    candidates = [*classes, mapping.get(type(config), None)]
    model_class = next((each for each in candidates if hasattr(each, "create_masks_for_generate")), None)
    if not classes or model_class is None:
        return None
    for name in VISION:
        if (profile := info.profile.modalities.get(name)) is None:
            continue
        # Twice the same: of videos of two lengths Gemma 4's processor makes nothing up to transformers 5.13.1 at least.
        items = samples(name, sampling_rate(info.get_hf_processor()))[:1] * (2 if profile.several else 1)
        text = "some text " + " and ".join([profile.text] * len(items)) + "\nlast."
        alone = info.alone(name)
        seen = process(info, alone.modality, alone.strategy, text, items, {})
        is_embed = torch.isin(torch.tensor(seen.ids), torch.tensor(sorted(profile.embed_ids)))
        if (rule := measure_rule(model_class, config, seen.output, is_embed)) is not None:
            return rule
    return None
