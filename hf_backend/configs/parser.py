"""The parser of configs, over vLLM's own.

Takes what vLLM's parser takes; gives its config after the rules. Registered by the plug-in under the name of the format, since
vLLM chooses the class that serves a model by the config's form, before any class of ours is asked.
"""

from typing import Any

from hf_backend.configs import rules
from hf_backend.upstream.configs import HFConfigParser


class ConfigParser(HFConfigParser):
    """vLLM's parser of config.json, and the rules."""

    def parse(self, model: Any, trust_remote_code: bool, *args: Any, **kwargs: Any) -> tuple[dict[str, Any], Any]:
        """The text of config.json and the config."""
        text, config = super().parse(model, trust_remote_code, *args, **kwargs)
        config = rules.of_transformers(config, text)
        config = rules.with_known_architecture(config)
        config = rules.with_text_config(config)
        config = rules.with_image_token_index(config)
        return text, rules.with_experts_a_token(config)
