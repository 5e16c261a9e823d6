"""Encoders in bfloat16 give what they give in float32 but for rounding, also where a processor has a dtype of its own."""

from pathlib import Path

import pytest
from children import found

from compat.zoo.store import checkpoint

pytestmark = [pytest.mark.engine, pytest.mark.encoding, pytest.mark.long, pytest.mark.timeout(600)]

ENGINE = """
    import functools, json, sys
    import torch
    from compat.parity import engine
    from hf_backend.check.engine import embed

    def encoded(model):
        told = {}
        with torch.inference_mode():
            for modality in model._encoders:
                items = model._info.probe_items(modality)
                rows = torch.cat([embed(model, modality, [item])[0] for item in items])
                fields = [value for item in items for value in item.fields.values() if isinstance(value, torch.Tensor)]
                kinds = {str(value.dtype) for value in fields if value.is_floating_point() and value.ndim > 1}
                told[modality] = (rows, sorted(kinds))
        return told

    if __name__ == "__main__":
        family, dtype, file = sys.argv[1:]
        llm = engine.start(family, engine.OURS, dtype=dtype)
        told = llm.apply_model(encoded)[0]
        apart = {}
        if dtype == "float32":
            torch.save({modality: rows for modality, (rows, _) in told.items()}, file)
        else:
            for modality, expected in torch.load(file).items():
                rows = told[modality][0].float()
                apart[modality] = float((rows - expected).norm() / expected.norm())
        made = {modality: [str(rows.dtype), *kinds] for modality, (rows, kinds) in told.items()}
        print("FOUND", json.dumps({"made": made, "apart": apart}))
"""


@pytest.mark.parametrize("family", ["llama4", "gemma3n", "qwen2_5_omni_thinker"])
def test_bfloat16_and_float32(family: str, tmp_path: Path) -> None:
    checkpoint(family)
    for dtype in ("float32", "bfloat16"):
        told = found(tmp_path, ENGINE, family, dtype, tmp_path / "embeddings.pt")
        assert told["made"]
        assert all(kinds == [f"torch.{dtype}"] * 2 for kinds in told["made"].values()), told["made"]
    assert told["apart"].keys() == told["made"].keys()
    assert max(told["apart"].values()) < 0.03, told["apart"]
