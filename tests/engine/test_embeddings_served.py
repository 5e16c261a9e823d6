"""Embeddings that a request brings along answer as the items they were made of, and no encoder is called for them."""

from pathlib import Path

import pytest
from children import found

from compat.zoo.store import checkpoint

pytestmark = [pytest.mark.engine, pytest.mark.encoding, pytest.mark.timeout(300)]

ENGINE = """
    import functools, json, sys
    import torch
    from PIL import Image
    from children import answers
    from compat import encoders
    from compat.parity import engine
    from compat.zoo import spec
    from hf_backend.check.engine import embed
    from hf_backend.probe.samples import samples
    from vllm import SamplingParams

    # Fields beside a modality's embeddings, for the families whose positions are made from them.
    FIELDS = {("qwen2_vl", "image"): ["image_grid_thw"], ("qwen2_vl", "video"): ["video_grid_thw"]}

    def fresh(modality):
        one = samples(modality, 16000)[0]
        if modality == "image":
            return one.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return (one[::-1].copy(), 16000) if modality == "audio" else (one[0][::-1].copy(), one[1])

    def encoded(model, modality):
        alone = model._info.alone(modality)
        items = model._info.probe_items(modality)
        with torch.inference_mode():
            return [(embed(model, modality, [item])[0], item.fields) for item in items]

    def ask(llm, family, modality, given, count):
        text = "which is " + " and ".join([spec(family).placeholders[modality]] * count) + "?"
        greedy = SamplingParams(temperature=0, max_tokens=12, logprobs=2, ignore_eos=True, detokenize=False)
        outputs = llm.generate([{"prompt": text, "multi_modal_data": {modality: given}}], greedy, use_tqdm=False)
        return list(outputs[0].prompt_token_ids), answers(outputs)[0]

    if __name__ == "__main__":
        family, modality = sys.argv[1:]
        llm = engine.start(family, engine.OURS, enable_mm_embeds=True)
        items = list(samples(modality, 16000))
        if modality == "audio":
            items = [(clip, 16000) for clip in items]
        made = llm.apply_model(functools.partial(encoded, modality=modality))[0]
        rows = [embeddings for embeddings, _ in made]
        names = FIELDS.get((family, modality))
        forms = {"rows": rows}
        if names:
            fields = {name: torch.cat([each[name] for _, each in made]) for name in names}
            name = modality + "_embeds"
            forms = {"a list": {name: rows, **fields}, "one tensor": {name: torch.cat(rows), **fields}}
        told = {"items": ask(llm, family, modality, items, 2)}
        model = llm.apply_model(lambda model: model)[0]
        with encoders.counted(model, modality) as calls:
            told |= {form: ask(llm, family, modality, given, 2) for form, given in forms.items()}
            counted = list(calls)
            # Another item, whose embeddings nobody keeps: that the count sees a call.
            ask(llm, family, modality, [fresh(modality)], 1)
        refused = []
        without = rows if names else {modality + "_embeds": rows, "size": torch.ones(2)}
        for wrong in ([row[:, :-1] for row in rows], without):
            try:
                ask(llm, family, modality, wrong, 2)
            except ValueError as error:
                refused.append(str(error))
        after = ask(llm, family, modality, items, 2)
        later = calls[len(counted) :]
        found = {"told": told, "calls": counted, "later calls": later, "refused": refused, "after": after}
        print("FOUND", json.dumps(found))
"""

FAMILIES = [
    pytest.param("llava", "image", id="llava"),
    pytest.param("qwen2_vl", "image", id="qwen2_vl: with grids"),
    pytest.param("qwen2_vl", "video", id="qwen2_vl: videos with grids", marks=pytest.mark.long),
    pytest.param("qwen2_audio", "audio", id="qwen2_audio", marks=pytest.mark.long),
]


@pytest.mark.parametrize(("family", "modality"), FAMILIES)
def test_as_the_items_and_no_encoder(family: str, modality: str, tmp_path: Path) -> None:
    checkpoint(family)
    result = found(tmp_path, ENGINE, family, modality)
    told = result["told"]
    ids, (tokens, logprobs) = told.pop("items")
    assert told
    for other_ids, (other_tokens, other_logprobs) in told.values():
        assert other_ids == ids
        assert other_tokens == tokens
        assert max(abs(a - b) for a, b in zip(logprobs, other_logprobs, strict=True)) < 1e-4
    assert result["calls"] == []
    assert result["later calls"] == [1]
    assert len(result["refused"]) == 2
    assert result["after"][1][0] == tokens, "C11: the engine is as it was before the refusals"
