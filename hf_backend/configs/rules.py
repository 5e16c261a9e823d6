"""What a config lacks for vLLM, as rules.

Each takes a config (and, for one, the text of config.json) and gives it back changed, or another. vLLM's native classes read
the same config, so that a rule adds and never renames.
"""

import copy
from collections.abc import Mapping
from typing import Any

import transformers
from transformers.models.auto import configuration_auto, modeling_auto

from hf_backend.modalities import IMAGE
from hf_backend.probe.parts import text_part

EXPERTS_A_TOKEN = ("num_experts_per_tok", "top_k")
"""Names under which vLLM's Transformers backend reads how many experts a token goes to."""
OTHER_EXPERTS_A_TOKEN = ("moe_topk", "moe_top_k", "moe_k", "num_experts_per_token", "top_k_experts")
"""Names that configs have for it beside these (Aria: `moe_topk`)."""

MULTIMODAL_MAPPINGS = (
    "MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES",
    "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES",
)
"""transformers' lists of models that take items beside text."""


def with_experts_a_token(config: Any) -> Any:
    """Add the name that vLLM reads where the text config has another one."""
    text = config.get_text_config()
    if all(getattr(text, name, None) is None for name in EXPERTS_A_TOKEN):
        found = next((getattr(text, name) for name in OTHER_EXPERTS_A_TOKEN if getattr(text, name, None)), None)
        if found is not None:
            setattr(text, EXPERTS_A_TOKEN[0], found)
    return config


def with_image_token_index(config: Any) -> Any:
    """Add the name by which vLLM reads a picture's token id when it loads a draft model (Eagle3), and which it asks of every class
    that it doesn't know by name: Qwen2.5-VL's config has `image_token_id`, an Omni's has it in the thinker's."""
    if getattr(config, "image_token_index", None) is None:
        part = text_part(config)
        found = [getattr(part, name, None) for name in IMAGE.token_id_attributes]
        if (token_id := next((each for each in found if isinstance(each, int)), None)) is not None:
            config.image_token_index = token_id
    return config


def with_text_config(config: Any) -> Any:
    """Add a copy as `text_config` to a multimodal config that has none (Chameleon, Phi-4-multimodal): vLLM takes a config that
    is its own text config for a text model's."""
    if config.get_text_config() is config and is_multimodal(config):
        config.text_config = copy.deepcopy(config)
    return config


def is_multimodal(config: Any) -> bool:
    """Whether a config without a text config is that of a model which takes items: transformers lists it as one, or it brings
    its own code, and it holds the config of another part."""
    parts = [value for value in vars(config).values() if isinstance(value, transformers.PreTrainedConfig)]
    listed = any(config.model_type in getattr(modeling_auto, name, {}) for name in MULTIMODAL_MAPPINGS)
    return bool(parts) and (listed or bool(getattr(config, "auto_map", None)))


def of_transformers(config: Any, text: Mapping[str, Any]) -> Any:
    """transformers' config in place of vLLM's own class of the same model type, where the checkpoint is in transformers' layout:
    parts that config.json has are unknown to vLLM's class and lost by it (Qwen3-ASR: `audio_config`, `text_config`)."""
    theirs = transformers_class(config.model_type)
    if theirs is None or not type(config).__module__.startswith("vllm."):
        return config
    parts = {name for name, value in text.items() if isinstance(value, Mapping) and name in theirs.sub_configs}
    if parts <= set(type(config).sub_configs):
        return config
    # vLLM has registered its class, for what loads the processor and the tokenizer too.
    transformers.AutoConfig.register(config.model_type, theirs, exist_ok=True)
    return theirs.from_dict(dict(text), name_or_path=config.name_or_path)


def transformers_class(model_type: str) -> Any:
    """transformers' own config class of a model type, whatever was registered over it; None if there is none."""
    name = configuration_auto.CONFIG_MAPPING_NAMES.get(model_type)
    return getattr(transformers, name, None) if name else None


def with_known_architecture(config: Any) -> Any:
    """Name the class that transformers has for this config where `architectures` names one that it doesn't have
    (Qwen2.5-Omni's checkpoints: `Qwen2_5OmniModel`)."""
    named = list(config.architectures or ())
    if (named and hasattr(transformers, named[0])) or getattr(config, "auto_map", None):
        return config
    for mapping in MULTIMODAL_MAPPINGS:
        known = getattr(modeling_auto, mapping, {}).get(config.model_type)
        if isinstance(known, str) and hasattr(transformers, known):
            config.architectures = [known, *named]
            break
    return config
