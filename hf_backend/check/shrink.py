"""A config of the same kind, but tiny: fewer heads, fewer layers, widths in proportion.

Takes a config as the dictionary in a `config.json`; gives smaller ones, smallest first. What must fit the processor stays as
it is: the vocabulary, patches, picture sizes, mel bins, token ids. Whether a smaller one still makes a model is not known
here: `hf_backend.check.tiny` builds and runs it, and takes the next where that fails. Pure.

Head sizes are kept, since rotary sections are cut by them, and heads are taken away: every width of a section is divided by
one number, so that what was a multiple of another width still is one. Equal widths of two sections stay equal (a connector's
output is the text model's width).
"""

import math
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

WIDTHS = re.compile(
    r"(^|_)(hidden_size|hidden_dim|embed_dim|d_model|n_embd|dim|width|intermediate_size|ffn_dim|ffn_hidden_size|inner_dim"
    r"|projection_dim|output_dim|out_dim|input_dim|mm_embed_dim|hidden_channels)$"
)
"""Names of widths, with whatever stands before them: `moe_intermediate_size`, `encoder_ffn_dim`, `out_hidden_size`."""
HIDDEN = ("hidden_size", "embed_dim", "d_model", "n_embd", "hidden_dim", "dim", "width")
"""Names of the width that a section's heads divide, likeliest first."""
HEADS = ("num_attention_heads", "num_heads", "n_head", "encoder_attention_heads", "attention_heads", "n_heads")
DEPTHS = re.compile(r"^(num_hidden_layers|num_layers|n_layers?|depth|(num_)?(encoder|decoder)_layers)$")
NOT_WIDTHS = re.compile(r"(head_dim|rope_dim|rotary_dim|_lora_|per_layer_input)")
FEWEST_HEADS = 2
"""With one head, an order of heads that is mixed up would go unseen."""
FEWEST_LAYERS = 2
WIDTH_UNIT = 8
"""Widths stay multiples of this."""

Config = Mapping[str, Any]


def candidates(config: Config) -> Iterator[tuple[str, dict[str, Any]]]:
    """What was done, and the config: narrower and shallower, then only one of the two. Nothing where neither is possible."""
    seen = [dict(config)]
    for name, narrower, shallower in (
        ("fewer heads and layers", True, True),
        ("fewer layers", False, True),
        ("fewer heads", True, False),
    ):
        made: dict[str, Any] = deepcopy(dict(config))
        if shallower:
            _flatten_depth(made)
        if narrower:
            _narrow(made)
        made.pop("quantization_config", None)
        if made not in seen:
            seen.append(made)
            yield name, made


def sections(config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """`config` and every config inside it."""
    yield config
    for value in config.values():
        if isinstance(value, dict):
            yield from sections(value)


def _number(section: Config, *names: str) -> int | None:
    found = (section.get(name) for name in names)
    return next((value for value in found if isinstance(value, int) and not isinstance(value, bool)), None)


def divisor(section: Config) -> int:
    """By how much the widths of `section` can be divided so that whole heads stay; 1 where it names no heads."""
    heads = _number(section, *HEADS)
    hidden = _number(section, *HIDDEN)
    if not heads or not hidden or heads < 2 * FEWEST_HEADS:
        return 1
    named = _number(section, "head_dim")
    for fewer in range(FEWEST_HEADS, heads):
        by, rest = divmod(heads, fewer)
        # Where the config names no head size, it has to stay hidden / heads.
        if rest == 0 and hidden % (by * WIDTH_UNIT) == 0 and (named or hidden % heads == 0):
            return by
    return 1


def _narrow(config: dict[str, Any]) -> None:
    """Divide every section's widths; widths that two sections share by what both can be divided by."""
    own = [(section, divisor(section)) for section in sections(config)]
    sharing: dict[int, int] = {}
    for section, by in own:
        if by > 1 and (hidden := _number(section, *HIDDEN)):
            sharing[hidden] = math.gcd(sharing.get(hidden, by), by)
    for section, _ in own:
        hidden = _number(section, *HIDDEN) or 0
        by = sharing.get(hidden, 1) if divisor(section) > 1 else 1
        for name, value in section.items():
            if not isinstance(value, int) or isinstance(value, bool) or NOT_WIDTHS.search(name):
                continue
            if WIDTHS.search(name):
                # A width that is another section's own follows that one: Qwen2-VL's tower names the text model's.
                through = sharing.get(value, by)
                if value % through == 0 and value // through >= WIDTH_UNIT:
                    section[name] = value // through
            elif name in HEADS or name.endswith("attention_heads"):
                section[name] = value // by if value % by == 0 else value
        _narrow_key_value_heads(section)


def _narrow_key_value_heads(section: dict[str, Any]) -> None:
    """As many as before where that divides the heads that are left, else as many as can."""
    heads = _number(section, *HEADS)
    for name in ("num_key_value_heads", "num_kv_heads"):
        if heads and isinstance(section.get(name), int):
            section[name] = math.gcd(section[name], heads) if section[name] != heads else heads
            if section[name] == heads and heads > 1:
                section[name] = heads // 2


def _flatten_depth(config: dict[str, Any]) -> None:
    for section in list(sections(config)):
        for name in [name for name, value in section.items() if DEPTHS.match(name) and isinstance(value, int)]:
            _shallower(section, name, config)


def _shallower(section: dict[str, Any], name: str, whole: dict[str, Any]) -> None:
    """Cut one depth down, and with it what is told layer by layer or by a layer's number."""
    depth = section[name]
    per_layer = {key: value for key, value in section.items() if isinstance(value, list) and len(value) == depth > 0}
    numbers = {
        key: value
        for key, value in section.items()
        if isinstance(value, list)
        and value
        and key not in per_layer
        and all(isinstance(entry, int) for entry in value)
        and re.search(r"(index|indices|layers?)", key)
        and max(value) < depth
    }
    kept = FEWEST_LAYERS
    for values in per_layer.values():
        if all(isinstance(entry, (str, int)) for entry in values):
            # As many as it takes to see every kind of layer (Gemma3 has five with a window before one without).
            kept = max(kept, 1 + max(values.index(kind) for kind in set(values)))
    kept = max([kept, *(len(values) + 1 for values in numbers.values())])
    for layer in _layers_asked_for(whole):
        kept = max(kept, -layer)
    if kept >= depth:
        return
    section[name] = kept
    for key, values in per_layer.items():
        section[key] = values[:kept]
    for key, values in numbers.items():
        section[key] = list(range(len(values)))
    for key in ("max_window_layers", "num_kv_shared_layers", "first_k_dense_replace"):
        if isinstance(section.get(key), int) and section[key] > 0:
            section[key] = min(section[key], kept - 1)


def _layers_asked_for(config: dict[str, Any]) -> list[int]:
    """Layers that a connector takes features from, counted from the end where negative."""
    found: list[int] = []
    for section in sections(config):
        for name in ("vision_feature_layer", "feature_layer", "select_layer"):
            value = section.get(name)
            found += value if isinstance(value, list) else [value] if isinstance(value, int) else []
    return [layer for layer in found if layer < 0] or [-FEWEST_LAYERS]
