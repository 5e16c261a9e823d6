"""An item's embeddings as the HF model's own forward makes them.

Takes a model and one bucket's arguments with the items' expansions; gives the rows that the forward puts into the prompt.
For models that have no features method (Qwen2-Audio keeps its features inside the forward), and for those whose forward
does more with features than hand them on (Gemma3n fills up to 188 rows, Gemma4 drops padding by a mask). The forward runs
up to the call of its text model, which is intercepted: nothing of the text model is computed.
"""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from hf_backend.encoding.features import to_device
from hf_backend.errors import UnsupportedModelError
from hf_backend.modalities import Modality

if TYPE_CHECKING:
    from hf_backend.records import FieldValue


TEXT_ARGUMENTS = frozenset(
    {
        "input_ids",
        "inputs_embeds",
        "position_ids",
        "attention_mask",
        "past_key_values",
        "cache_position",
        "use_cache",
        "return_dict",
        "output_attentions",
        "output_hidden_states",
        # What models with a head hand on to a text model that has it (Llama 4, the Omnis' thinkers).
        "labels",
        "logits_to_keep",
        "output_router_logits",
    }
)
"""What vLLM gives a text model, or makes itself. Anything else of an item would be lost: Qwen3-VL adds features of several
levels between its layers (`deepstack_visual_embeds`), Gemma3n and Gemma4 take inputs for each layer."""


class _Reached(Exception):
    """The forward has reached its text model; carries what the text model was to be given."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        super().__init__()
        self.arguments = arguments


class _Stand(torch.nn.Module):
    """Stands where the text model stands while a forward is captured; everything but a call goes to the text model."""

    def __init__(self, text_model: torch.nn.Module) -> None:
        super().__init__()
        # In a tuple: a module as attribute would become a child and be walked twice.
        self._stands_for = (text_model,)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_stands_for"][0], name)

    def forward(self, *args: Any, **kwargs: Any) -> None:
        """Hand what was given to whoever captures."""
        raise _Reached({"inputs_embeds": args[0]} if args else kwargs)


@dataclass(frozen=True, slots=True)
class CapturedForward:
    """The forward of one model, up to its text model."""

    model: Any
    parent: torch.nn.Module
    """The module whose child `name` is the text model, or the first layer where the model is its own text model."""
    name: str
    modality: Modality
    accepted: frozenset[str]

    @classmethod
    def of(cls, model: Any, modality: Modality) -> "CapturedForward | None":
        """Find the text model; None where there is neither one nor layers."""
        text_model = model.get_decoder()
        if text_model is model:
            # Phi-4-multimodal: what its first layer is given are the embeddings with the items' in their places.
            depth = model.config.get_text_config().num_hidden_layers
            stacks = (each for each in model.children() if isinstance(each, torch.nn.ModuleList) and len(each) == depth)
            text_model = next((stack[0] for stack in stacks), text_model)
        for qualified, module in model.named_modules():
            if module is text_model and qualified:
                parent, _, name = qualified.rpartition(".")
                accepted = frozenset(inspect.signature(model.forward).parameters)
                return cls(model, model.get_submodule(parent), name, modality, accepted)
        return None

    def __call__(
        self, fields: Mapping[str, "FieldValue"], expansion: torch.Tensor, is_embed: torch.Tensor, device: torch.device
    ) -> torch.Tensor:
        """Embeddings of one bucket, [rows, hidden size].

        `expansion`, int64 [tokens], holds the expansions of the bucket's items one after the other, `is_embed`, bool
        [tokens], says which of them embeddings replace. Raises `UnsupportedModelError` where the text model is given more
        of an item than embeddings.
        """
        given = self._given(fields, expansion, is_embed, device)
        if more := sorted(name for name in given.keys() - TEXT_ARGUMENTS if given[name] is not None):
            raise UnsupportedModelError(
                type(self.model).__name__,
                found=f"that its text model is given {', '.join(more)} beside embeddings",
                expected=f"nothing but {', '.join(sorted(TEXT_ARGUMENTS))}",
                do="Answers would be wrong without it, and this version doesn't hand it on. Serve the model without"
                f" {self.modality.name} items: --limit-mm-per-prompt '{{\"{self.modality.name}\": 0}}'.",
            )
        embeddings: torch.Tensor = given["inputs_embeds"][0]
        self._check_other_tokens(embeddings, expansion.to(device), is_embed.to(device))
        return embeddings[is_embed.to(embeddings.device)]

    def _check_other_tokens(self, embeddings: torch.Tensor, expansion: torch.Tensor, is_embed: torch.Tensor) -> None:
        """The rest of an expansion has to be text to the model: Ovis2 overwrites the tokens around a picture too."""
        looked_up = self.model.get_input_embeddings()(expansion[None])[0]
        changed = ((embeddings - looked_up).abs().amax(-1) > 1e-3 * looked_up.abs().max()) & ~is_embed
        if bool(changed.any()):
            raise UnsupportedModelError(
                type(self.model).__name__,
                found=f"that its forward overwrites the tokens {sorted(set(expansion[changed].tolist()))} of an expansion too",
                expected="that it overwrites nothing but the modality's placeholder token",
                do="Answers would be wrong, so the model isn't served with this modality. Serve it without"
                f" {self.modality.name} items: --limit-mm-per-prompt '{{\"{self.modality.name}\": 0}}'.",
            )

    def _given(
        self, fields: Mapping[str, "FieldValue"], expansion: torch.Tensor, is_embed: torch.Tensor, device: torch.device
    ) -> dict[str, Any]:
        """What the forward gives its text model."""
        arguments: dict[str, Any] = {
            name: to_device(value, device) for name, value in fields.items() if name in self.accepted
        }
        ids = expansion.to(device)[None]
        arguments |= {"input_ids": ids, "use_cache": False}
        if "position_ids" in self.accepted:
            # Given, so that the forward doesn't work out M-RoPE positions for a prompt that isn't one.
            arguments["position_ids"] = torch.arange(ids.shape[1], device=device)[None]
        if "mm_token_type_ids" in self.accepted:
            arguments["mm_token_type_ids"] = is_embed.to(device)[None].int() * self.modality.token_type_id
        with self._intercepted():
            try:
                self.model(**arguments)
            except _Reached as reached:
                return reached.arguments
        raise RuntimeError(f"{type(self.model).__name__} returned without calling its text model `{self.name}`")

    @contextmanager
    def _intercepted(self) -> Iterator[None]:
        """Put a stand in the text model's place. By the registry of children: vLLM replaces the call of a compiled text
        model's class, which goes past hooks."""
        children = self.parent._modules
        text_model = children[self.name]
        assert text_model is not None
        children[self.name] = _Stand(text_model)
        try:
            yield
        finally:
            children[self.name] = text_model
