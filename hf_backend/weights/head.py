"""What the HF class with its head makes of logits, measured on its skeleton.

vLLM's Transformers backend builds the class without its head and caps logits wherever the text config has a
`final_logit_softcapping`. In transformers that is the business of each class with a head: PaliGemma 2's config has the value of
its Gemma 2 text model and its class doesn't cap; Chameleon's never lets the model give a picture's tokens. Takes a skeleton; runs
its forward with known logits in the head's place and nothing in the model's, and gives what came of them.
"""

from dataclasses import dataclass
from typing import Any

import torch

from hf_backend.weights.skeleton import output_embeddings_name

SPREAD = 100.0
"""Largest of the known logits: above any cap."""


@dataclass(frozen=True, slots=True)
class HeadRule:
    """What becomes of the head's logits."""

    masked: tuple[int, ...] = ()
    """Ids that are never given."""
    capped: bool | None = None
    """Whether logits come out bounded; None where it couldn't be seen."""


class _Outputs:
    """What a base model returns: hidden states, and nothing else of what is asked for."""

    def __init__(self, hidden_states: torch.Tensor) -> None:
        self.last_hidden_state = hidden_states

    def __getitem__(self, index: Any) -> Any:
        return self.last_hidden_state if index == 0 else None

    def __getattr__(self, name: str) -> None:
        return None


class _BaseStand(torch.nn.Module):
    """Stands where the base model stands; everything but a call goes to it."""

    def __init__(self, base: torch.nn.Module, hidden_size: int) -> None:
        super().__init__()
        self._stands_for = (base,)
        self._hidden_size = hidden_size

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_stands_for"][0], name)

    def forward(self, *args: Any, **kwargs: Any) -> _Outputs:
        """Hidden states of one token."""
        return _Outputs(torch.zeros(1, 1, self.__dict__["_hidden_size"]))


class _HeadStand(torch.nn.Module):
    """Stands where the head stands and gives known logits."""

    def __init__(self, logits: torch.Tensor) -> None:
        super().__init__()
        self._logits = logits
        self.weight = torch.nn.Parameter(torch.zeros(0), requires_grad=False)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """[1, 1, vocabulary], whatever the hidden states are."""
        return self._logits.clone()[None, None]


def head_rule(skeleton: Any) -> HeadRule:
    """The rule of the class of `skeleton`; an empty one where its head can't be reached this way (a class without a head)."""
    name = output_embeddings_name(skeleton)
    if name is None:
        return HeadRule()
    path, _, head = name.rpartition(".")
    owner = skeleton.get_submodule(path) if path else skeleton
    vocabulary, hidden_size = skeleton.get_submodule(name).weight.shape
    prefix = getattr(owner, "base_model_prefix", "")
    base = owner._modules.get(prefix)
    if base is None:
        return HeadRule()
    known = torch.linspace(-SPREAD, SPREAD, vocabulary)
    children = owner._modules
    real = children[head]
    children[head], children[prefix] = _HeadStand(known), _BaseStand(base, hidden_size)
    try:
        with torch.inference_mode():
            found = owner(input_ids=torch.zeros(1, 1, dtype=torch.long), use_cache=False).logits[0, -1]
    except Exception:  # noqa: BLE001 - whatever a forward wants beside this, nothing is known of it then
        return HeadRule()
    finally:
        children[head], children[prefix] = real, base
    masked = (found <= torch.finfo(found.dtype).min / 2).nonzero().flatten().tolist()
    kept = torch.ones(vocabulary, dtype=torch.bool).index_fill_(0, torch.tensor(masked, dtype=torch.long), False)
    # A cap bends large logits and leaves small ones; a scale (Cohere, which vLLM knows) changes all alike.
    ratio = found[kept] / known[kept]
    small, large = ratio[known[kept].abs() < 1].mean(), ratio[known[kept].abs() > SPREAD / 2].mean()
    return HeadRule(tuple(masked), bool(large < 0.99 * small))
