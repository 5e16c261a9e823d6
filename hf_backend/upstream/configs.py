"""vLLM's names around configs, apart from the others: importing them must not import vLLM's models."""

from vllm.model_executor.models.config import MODELS_CONFIG_MAP, VerifyAndUpdateConfig
from vllm.transformers_utils.config import HFConfigParser, register_config_parser

__all__ = ["MODELS_CONFIG_MAP", "HFConfigParser", "VerifyAndUpdateConfig", "register_config_parser"]
