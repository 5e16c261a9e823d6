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
from dataclasses import dataclass
from typing import Any

WIDTHS = re.compile(
    r"(^|_)(hidden_size|hidden_dim|embed_dim|d_model|n_embd|dim|width|intermediate_size|ffn_dim|ffn_hidden_size|inner_dim"
    r"|projection_dim|output_dim|out_dim|input_dim|mm_embed_dim|hidden_channels)$"
)
"""Names of widths, with whatever stands before them: `moe_intermediate_size`, `encoder_ffn_dim`, `out_hidden_size`."""
HIDDEN = ("hidden_size", "embed_dim", "d_model", "n_embd", "hidden_dim", "dim", "width")
"""Names of the width that heads divide, likeliest first."""
HEADS = re.compile(r"^(?P<prefix>.*?)(num_attention_heads|num_heads|attention_heads|n_heads?)$")
"""Names of numbers of heads; a flat config puts the part they belong to before them (`vision_num_heads`)."""
QUERY_HEADS = ("num_attention_heads", "num_heads")
DEPTHS = re.compile(r"(^|_)(num_hidden_layers|num_layers|n_layers?|depth|(num_)?(encoder|decoder)_layers)$")
INNER = re.compile(r"(intermediate_size|ffn_dim|ffn_hidden_size|inner_dim)$")
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


@dataclass(frozen=True, slots=True)
class Part:
    """Heads and the width they divide."""

    prefix: str
    """What names of this part begin with, in a section that holds several."""
    heads: int
    hidden: int
    named_head: bool
    """Whether the config names the size of a head."""

    @property
    def divisor(self) -> int:
        """By how much widths can be divided so that whole heads stay, and stay as large."""
        for fewer in range(FEWEST_HEADS, self.heads):
            by, rest = divmod(self.heads, fewer)
            if (
                rest == 0
                and self.hidden % (by * WIDTH_UNIT) == 0
                and (self.named_head or self.hidden % self.heads == 0)
            ):
                return by
        return 1


def parts(section: Config) -> list[Part]:
    """The parts that `section` describes, those with a longer prefix first."""
    found: list[Part] = []
    for name, heads in section.items():
        match = HEADS.match(name)
        if match is None or not isinstance(heads, int) or "key_value" in name or "kv" in name:
            continue
        prefix = match["prefix"]
        own = _number(section, *(prefix + hidden for hidden in HIDDEN)) if prefix else None
        hidden = own or _number(section, *HIDDEN)
        if hidden:
            named = _number(section, f"{prefix}head_dim", "head_dim") is not None
            found.append(Part(prefix if own else "", heads, hidden, named))
    return sorted(found, key=lambda part: -len(part.prefix))


def _narrow(config: dict[str, Any]) -> None:
    """Divide every part's widths; widths that two parts share by what both can be divided by."""
    sharing: dict[int, int] = {}
    for section in sections(config):
        for part in parts(section):
            sharing[part.hidden] = math.gcd(sharing.get(part.hidden, part.divisor), part.divisor)
    for section in list(sections(config)):
        own, heads_before = parts(section), _number(section, *QUERY_HEADS)
        for name, value in section.items():
            if not isinstance(value, int) or isinstance(value, bool) or NOT_WIDTHS.search(name):
                continue
            by = next((sharing[part.hidden] for part in own if name.startswith(part.prefix)), 1)
            if WIDTHS.search(name):
                # A width that is another part's own follows that one: Qwen2-VL's tower names the text model's. One inside
                # a layer follows its own part, whatever it happens to equal.
                through = by if INNER.search(name) else sharing.get(value, by)
                if value % through == 0 and value // through >= WIDTH_UNIT:
                    section[name] = value // through
            elif HEADS.match(name) and "key_value" not in name and "kv" not in name and value % by == 0:
                section[name] = value // by
        _narrow_key_value_heads(section, heads_before)


def _narrow_key_value_heads(section: dict[str, Any], heads_before: int | None) -> None:
    """One for each head where it was so, else the most that make groups of the heads that are left."""
    heads = _number(section, *QUERY_HEADS)
    for name in ("num_key_value_heads", "num_kv_heads"):
        if heads and isinstance(section.get(name), int):
            grouped = section[name] < (heads_before or heads)
            divisors = [number for number in range(1, heads + 1) if heads % number == 0]
            allowed = [number for number in divisors if number <= section[name] and (number < heads or not grouped)]
            section[name] = allowed[-1] if allowed else 1


def _flatten_depth(config: dict[str, Any]) -> None:
    for section in list(sections(config)):
        for name in [name for name, value in section.items() if DEPTHS.search(name) and isinstance(value, int)]:
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
