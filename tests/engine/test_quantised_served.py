"""Quantised checkpoints answer as their rounded weights do in transformers (C12), whatever names the list of layers left alone has.

compressed-tensors with eight bits is what vLLM's CPU kernels compute with in float32: rows of weights and tokens of inputs rounded.
transformers is given the rounded weights, and rounds the inputs of the same layers. What is left is a number that lies so near the
middle between two steps that float32's own rounding decides: one step of one input, and everything behind it. Most answers hold
none.
"""

import json
from pathlib import Path

import pytest
from children import found

from compat.zoo.quantised import INT8, quantise
from hf_backend.check.compare import TOLERANCE

pytestmark = [pytest.mark.engine, pytest.mark.encoding, pytest.mark.timeout(300)]

ENGINE = """
    import json, sys
    from pathlib import Path
    from compat.parity import engine, items, reference
    from compat.parity.cases import cases
    from compat.zoo import spec
    from compat.zoo.quantised import round_inputs
    from hf_backend.check.compare import compare

    def layers(model):
        kinds = {}
        for name, module in model.named_modules():
            method = getattr(module, "quant_method", None)
            if method is not None and not name.endswith(".attn"):
                kinds.setdefault(type(method).__name__, []).append(name)
        return kinds

    if __name__ == "__main__":
        family, quantised, rounds = sys.argv[1], sys.argv[2], sys.argv[4]
        whole = Path(sys.argv[3])
        asked = [case for case in cases(spec(family)) if case.name in ("text_only", "one_image", "interleaved_sizes")]
        requests = list(dict.fromkeys(request for case in asked for request in case.requests()))

        def prepare(model):
            if json.loads(rounds):
                assert round_inputs(model.get_decoder().layers)

        expected = reference.ask(family, requests, whole, prepare)
        llm = engine.start(family, engine.OURS, model=quantised)
        told = engine.ask_together(llm, spec(family), requests, engine.OURS, items.sampling_rate(whole))
        tolerance = float(sys.argv[5])
        pairs = zip(requests, told.answers, strict=True)
        verdicts = [compare(expected[request], answer, tolerance=tolerance) for request, answer in pairs]
        print("FOUND", json.dumps({
            "wrong": [verdict.wrong for verdict in verdicts if verdict.wrong],
            "differences": [verdict.difference for verdict in verdicts],
            "layers": llm.apply_model(layers)[0],
        }))
"""

STEP = 0.05
"""Largest difference of a log-probability; one input of Qwen2-VL's that is rounded the other way makes 0.016."""

HUB = {"vision_tower.": "vision_tower.vision_model."}
"""To names of the releases before 5."""
IN_MEMORY = {
    "language_model.lm_head.": "lm_head.",
    "language_model.model.": "model.language_model.",
    "vision_tower.": "model.vision_tower.",
    "multi_modal_projector.": "model.multi_modal_projector.",
}
"""To names that modules have in transformers 5."""
LLAVA = r"(model\.language_model|language_model\.model)\.layers\..*proj\.weight"
TOWER = [
    f"encoder.layers.{layer}.{part}"
    for layer in (0, 1)
    for part in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj", "mlp.fc1", "mlp.fc2")
]
PROJECTOR = ["multi_modal_projector.linear_1", "multi_modal_projector.linear_2"]

CHECKPOINTS = [
    pytest.param(
        "llava", HUB, LLAVA, [*(f"vision_tower.vision_model.{name}" for name in TOWER), *PROJECTOR, "language_model.lm_head"],
        id="llava: old names, each layer", marks=pytest.mark.long,
    ),
    pytest.param(
        "llava", HUB, LLAVA, ["re:vision_tower.*", "re:multi_modal_projector.*", "re:.*lm_head"],
        id="llava: old names, patterns from the start", marks=pytest.mark.long,
    ),
    pytest.param(
        "llava", IN_MEMORY, LLAVA,
        [*(f"model.vision_tower.{name}" for name in TOWER), *(f"model.{name}" for name in PROJECTOR), "lm_head"],
        id="llava: names of transformers 5", marks=pytest.mark.long,
    ),
    pytest.param(
        "llava", {}, LLAVA, ["re:model.vision_tower.*", "model.multi_modal_projector", "lm_head"],
        id="llava: files of one release, list of another, parents",
    ),
    pytest.param(
        "qwen2_vl", {}, r"model\.layers\..*proj\.weight", ["lm_head"], id="qwen2_vl: tower not listed",
        marks=pytest.mark.long,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("family", "prefixes", "quantised", "listed"), CHECKPOINTS)
def test_c12_eight_bits(
    family: str, prefixes: dict[str, str], quantised: str, listed: list[str], tmp_path: Path
) -> None:
    packed, whole = quantise(family, tmp_path, INT8, quantised=quantised, listed=listed, prefixes=prefixes)
    told = found(tmp_path, ENGINE, family, packed, whole, json.dumps(True), STEP)
    print(told["differences"])
    text = told["layers"].pop("CompressedTensorsLinearMethod")
    assert all(".layers." in name and name.startswith("model.language_model.") for name in text)
    assert len(text) == 2 * 4, "two layers of qkv, o, gate and up, down"
    assert any("lm_head" in name for names in told["layers"].values() for name in names)
    assert not told["wrong"]
    differences = sorted(told["differences"])
    assert len(differences) >= 3
    assert differences[len(differences) // 2] <= TOLERANCE
