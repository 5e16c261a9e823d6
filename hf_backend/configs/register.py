"""Registers the parser of configs and the checks of model configs with vLLM.

Takes the names of our classes; gives nothing. vLLM warns that a parser of this format is there already: ours calls it.
"""

from collections.abc import Iterable

from hf_backend.configs.machine import MachineConfig
from hf_backend.configs.parser import ConfigParser
from hf_backend.upstream.configs import MODELS_CONFIG_MAP, register_config_parser

FORMAT = "hf"
"""vLLM's name of checkpoints with a config.json."""


def register_configs(architectures: Iterable[str]) -> None:
    """Once a process."""
    register_config_parser(FORMAT)(ConfigParser)
    for name in architectures:
        MODELS_CONFIG_MAP[name] = MachineConfig
