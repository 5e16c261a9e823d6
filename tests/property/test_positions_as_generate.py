"""M-RoPE positions of whole prompts, with items of every modality, are those that `generate` gives the text model.

What `generate` computes with is taken from the text model's own call, so that no release's name for what makes positions
matters; the later steps' positions show the offset after the prompt. Runs on any transformers of the range, without an engine.
Touching items are in tests/unit/test_positions.py: `generate` itself takes them for one.
"""

import itertools
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers

from compat.parity import items
from compat.parity.cases import Request
from compat.parity.media import LEFT_OUT, all_cases
from compat.parity.reference import prepare_inputs, prompt_text
from compat.processors import processor_of
from compat.zoo.registry import spec
from compat.zoo.store import checkpoint
from hf_backend.language.positions import rope_positions

pytestmark = [pytest.mark.language, pytest.mark.processing]

FAMILIES = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen2_5_omni_thinker", "qwen3_omni_moe_thinker", "glm4v")
"""Those with sections; Video-LLaMA 3 counts positions as a text model does."""
STEPS = 3


def requests(family: str) -> list[Request]:
    """Every distinct request of the family's parity cases that transformers answers and whose items don't touch."""
    cases = [case for case in all_cases(spec(family)) if (family, case.name) not in LEFT_OUT]
    found = dict.fromkeys(request for case in cases for request in case.requests() if not request.as_ids)
    return [request for request in found if not _touches(request)]


def _touches(request: Request) -> bool:
    kinds = [isinstance(part, str) for part in request.parts]
    return any(not one and not other for one, other in itertools.pairwise(kinds))


def as_generate(model: Any, inputs: Any) -> tuple[torch.Tensor, int]:
    """Positions [3, tokens] that the text model is given for the prompt, and their offset in the steps after it."""
    seen: list[torch.Tensor] = []

    def keep(_: Any, __: Any, arguments: dict[str, Any]) -> None:
        # With a first row for the mask of the text, in releases that have four.
        seen.append(arguments["position_ids"][-3:, 0])

    hook = model.get_decoder().register_forward_pre_hook(keep, with_kwargs=True)
    try:
        with torch.no_grad():
            model.generate(**inputs, max_new_tokens=STEPS, min_new_tokens=STEPS, do_sample=False)
    finally:
        hook.remove()
    length = inputs["input_ids"].shape[1]
    assert seen[0].shape == (3, length)
    offsets = {int(value) for step, later in enumerate(seen[1:]) for value in (later - length - step).flatten()}
    assert len(seen) == STEPS
    assert len(offsets) == 1, "one offset for all sections and steps"
    return seen[0], offsets.pop()


@pytest.mark.parametrize("family", FAMILIES)
def test_positions_equal_generate(family: str) -> None:
    folder = checkpoint(family)
    processor = transformers.AutoProcessor.from_pretrained(folder)
    model = getattr(transformers, spec(family).model_class).from_pretrained(folder, dtype=torch.float32).eval()
    ours = processor_of(family, cached=False)
    profiles = ours.processor.info.profile.modalities
    layouts = {name: profile.layouts for name, profile in profiles.items()}
    rate = items.sampling_rate(folder)
    wholes = [part for part in (model, getattr(model, "model", None)) if hasattr(part, "get_rope_index")]
    for request in requests(family):
        expected, offset = as_generate(model, prepare_inputs(processor, spec(family), request, rate))
        output = ours(prompt_text(spec(family), request), items.multi_modal_data(request, rate))
        features: Any = [
            SimpleNamespace(modality=name, data=item, mm_position=place)
            for name, places in output["mm_placeholders"].items()
            for item, place in zip(output["mm_kwargs"][name], places, strict=True)
        ]
        features.sort(key=lambda feature: feature.mm_position.offset)
        assert len(features) == len(request.items)
        positions, delta = rope_positions(wholes[-1].get_rope_index, output["prompt_token_ids"], features, layouts)
        assert torch.equal(positions, expected.to(positions)), request
        assert delta == offset, request
