"""Towers that transformers' `get_encoder` doesn't find, so that they aren't loaded where nothing is served of them.

Takes an HF model on the meta device; gives the classes of the models inside it beside its text model. vLLM leaves modules out by
class. Not for which modality a tower serves: that is certain only where there is but one.
"""

from typing import Any

from transformers import PreTrainedModel


def towers(model: Any) -> tuple[type, ...]:
    """Classes of the children of `model` that are models of their own, but for its text model (Granite Speech's `encoder`,
    VibeVoice's two tokenizers); none where the text model isn't a child."""
    text_model = model.get_decoder()
    children = list(model.children())
    if not any(child is text_model for child in children):
        return ()
    kinds = {type(child) for child in children if isinstance(child, PreTrainedModel)} - {type(text_model), type(model)}
    return tuple(sorted(kinds, key=lambda kind: kind.__name__))
