"""What the HF model's own forward hands to its text model.

Takes a model and one bucket's arguments with the items' expansions; gives the embeddings of every token and whatever else
the text model would be given. The forward runs up to the call of its text model, which is intercepted: nothing of the text
model is computed. Models without a features method need it (Qwen2-Audio keeps its features inside the forward), so do those
whose forward does more with features than hand them on (Gemma3n fills up to 188 rows, Gemma4 drops padding by a mask), and
it is the reference to which every quicker way is held. Not for judging what is handed over (`hf_backend.encoding.extras`).
"""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from hf_backend.encoding.absent import stands_for
from hf_backend.encoding.features import to_device

if TYPE_CHECKING:
    from hf_backend.records import FieldValue


TEXT_ARGUMENTS = frozenset(
    {
        "input_ids",
        "inputs_embeds",
        "position_ids",
        "attention_mask",
        "past_key_values",
        "cache",
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
"""What vLLM gives a text model, or makes itself. Anything else has to be handed on: Qwen3-VL adds features of several
levels between its layers (`deepstack_visual_embeds`), Gemma3n and Gemma4 take inputs for each layer."""


@dataclass(frozen=True, slots=True)
class Captured:
    """What a text model was to be given."""

    embeddings: torch.Tensor
    """[tokens, hidden size]."""
    extras: Mapping[str, Any]
    """Arguments beside `TEXT_ARGUMENTS`, but those that are None or False; they keep the batch dimension."""


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
    accepted: frozenset[str]

    @classmethod
    def of(cls, model: Any) -> "CapturedForward | None":
        """Find the text model; None where there is neither one nor layers."""
        text_model = model.get_decoder()
        if text_model is model:
            # Phi-4-multimodal: what its first layer is given are the embeddings with the items' in their places.
            depth = model.config.get_text_config().num_hidden_layers
            stacks = (each for each in model.children() if isinstance(each, torch.nn.ModuleList) and len(each) == depth)
            text_model = next((stack[0] for stack in stacks), text_model)
        for qualified, module in model.named_modules():
            if qualified and stands_for(module, text_model):
                parent, _, name = qualified.rpartition(".")
                accepted = frozenset(inspect.signature(model.forward).parameters)
                return cls(model, model.get_submodule(parent), name, accepted)
        return None

    def __call__(
        self, fields: Mapping[str, "FieldValue"], ids: torch.Tensor, token_types: torch.Tensor, device: torch.device
    ) -> Captured:
        """What the text model is given for `ids` and the items whose joined fields `fields` are.

        `ids`, int64 [tokens], are token ids, with the expansions of the items one after the other; `token_types`, int32
        [tokens], says of which modality each token is (`Modality.token_type_id`, 0 for text).
        """
        arguments: dict[str, Any] = {
            name: to_device(value, device) for name, value in fields.items() if name in self.accepted
        }
        arguments |= {"input_ids": ids.to(device)[None], "use_cache": False}
        if "position_ids" in self.accepted:
            # Given, so that the forward doesn't work out M-RoPE positions for a prompt that isn't one.
            arguments["position_ids"] = torch.arange(len(ids), device=device)[None]
        if "mm_token_type_ids" in self.accepted:
            arguments["mm_token_type_ids"] = token_types.to(device)[None]
        given = self._given(arguments)
        extras = {
            name: value
            for name, value in given.items()
            if name not in TEXT_ARGUMENTS and value is not None and value is not False
        }
        embeddings = given.get("inputs_embeds")
        if embeddings is None:
            embeddings = self.model.get_input_embeddings()(given["input_ids"])
        return Captured(embeddings[0], extras)

    def _given(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """What the forward gives its text model."""
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
