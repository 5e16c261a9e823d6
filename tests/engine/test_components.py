"""Weights of what isn't served aren't loaded: bytes of parameters and buffers that a loaded model holds.

Texts are still answered as in transformers (C12) without towers, and encoders give the same embeddings without the text model.
How an instance with encoders only is used is shown by two engines that share a folder: one encodes, the other answers from what
it wrote.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from children import found

from compat.zoo.store import checkpoint
from hf_backend.check.compare import TOLERANCE

pytestmark = [pytest.mark.engine, pytest.mark.encoding, pytest.mark.timeout(600)]

ENGINE = """
    import json, sys
    from compat.parity import engine, items, reference
    from compat.parity.cases import cases
    from compat.zoo import checkpoint, spec
    from hf_backend.check.compare import compare

    def held(model):
        from hf_backend.encoding.absent import left_out

        tensors = [*model.parameters(), *model.buffers()]
        assert all(tensor.device.type == "cpu" for tensor in tensors), "what is left out isn't part of the model"
        return {"bytes": sum(tensor.nbytes for tensor in tensors), "left out": sorted(left_out(model))}

    if __name__ == "__main__":
        family, arguments, names = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
        asked = [case for case in cases(spec(family)) if case.name in names]
        requests = list(dict.fromkeys(request for case in asked for request in case.requests()))
        expected = reference.reference(family, asked) if asked else {}
        llm = engine.start(family, engine.OURS, **arguments)
        told = llm.apply_model(held)[0]
        rate = items.sampling_rate(checkpoint(family))
        answers = engine.ask_together(llm, spec(family), requests, engine.OURS, rate).answers if requests else []
        verdicts = [compare(expected[request], answer) for request, answer in zip(requests, answers, strict=True)]
        told["wrong"] = [verdict.wrong for verdict in verdicts if verdict.wrong]
        told["differences"] = [verdict.difference for verdict in verdicts]
        print("FOUND", json.dumps(told))
"""


def limits(**most: int) -> dict[str, Any]:
    """Engine arguments."""
    return {"limit_mm_per_prompt": most}


TEXT_ONLY: dict[str, Any] = {"language_model_only": True, "limit_mm_per_prompt": {}}
WHOLE = {"qwen2_vl": 284864, "idefics3": 260640, "qwen2_audio": 266400, "gemma4": 309236}
"""Bytes of all of a model."""

SETTINGS = [
    pytest.param("qwen2_vl", TEXT_ONLY, 231840, ["model.visual"], id="qwen2_vl: text only"),
    pytest.param(
        "qwen2_vl", limits(image=0, video=1), 284864, [],
        id="qwen2_vl: video on keeps the shared tower", marks=pytest.mark.long,
    ),
    pytest.param("idefics3", limits(image=0), 230816, ["model.vision_model"], id="idefics3: no images", marks=pytest.mark.long),
    pytest.param("qwen2_audio", limits(audio=0), 232096, ["model.audio_tower"], id="qwen2_audio: no audio", marks=pytest.mark.long),
    pytest.param(
        "gemma4", limits(image=1, video=1, audio=0), 299724, ["model.audio_tower"],
        id="gemma4: images without audio", marks=pytest.mark.long,
    ),
    pytest.param(
        "gemma4", TEXT_ONLY, 232876, ["model.audio_tower", "model.vision_tower"],
        id="gemma4: text only", marks=pytest.mark.long,
    ),
    pytest.param("qwen2_vl", limits(image=4, video=0), 284864, [], id="qwen2_vl: all of it", marks=pytest.mark.long),
]  # fmt: skip


@pytest.mark.parametrize(("family", "arguments", "expected", "left_out"), SETTINGS)
def test_towers_that_are_not_served(
    family: str, arguments: dict[str, Any], expected: int, left_out: list[str], tmp_path: Path
) -> None:
    checkpoint(family)
    cases = ["text_only"] + ["one_image"] * bool(arguments["limit_mm_per_prompt"].get("image"))
    told = found(tmp_path, ENGINE, family, json.dumps(arguments), json.dumps(cases))
    assert told["left out"] == left_out
    assert told["bytes"] == expected
    assert (expected < WHOLE[family]) == bool(left_out)
    assert told["differences"]
    assert not told["wrong"]
    assert max(told["differences"]) <= TOLERANCE


ENCODERS = """
    import json, sys
    import torch
    from compat.parity import engine
    from hf_backend.encoding.absent import left_out
    from hf_backend.check.engine import embed

    def held(model):
        tensors = [*model.parameters(), *model.buffers()]
        made = {}
        with torch.inference_mode():
            for modality in model._encoders:
                made[modality] = [embed(model, modality, [item])[0] for item in model._info.probe_items(modality)]
        told = {"bytes": sum(tensor.nbytes for tensor in tensors), "left out": sorted(left_out(model))}
        told["devices"] = sorted({tensor.device.type for tensor in tensors})
        return told, made, {modality: encoder.way for modality, encoder in model._encoders.items()}

    if __name__ == "__main__":
        family, file, only = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
        llm = engine.start(family, engine.OURS, mm_encoder_only=only)
        told, made, ways = llm.apply_model(held)[0]
        if only:
            for modality, each in torch.load(file).items():
                assert all(torch.equal(one, other) for one, other in zip(each, made[modality], strict=True)), modality
        else:
            torch.save(made, file)
        told["modalities"] = sorted(made)
        print("FOUND", json.dumps({**told, "ways": ways}))
"""


@pytest.mark.parametrize(
    ("family", "whole", "alone"),
    [
        pytest.param("qwen2_audio", 266400, 34560, id="qwen2_audio: through the model's own forward"),
        pytest.param("qwen2_vl", 284864, 53024, id="qwen2_vl", marks=pytest.mark.long),
        pytest.param("gemma4", 309236, 76360, id="gemma4: two towers", marks=pytest.mark.long),
        pytest.param("qwen3_vl", None, None, id="qwen3_vl: levels", marks=pytest.mark.long),
        pytest.param("gemma3n", 1830904, 1538944, id="gemma3n: inputs for each layer", marks=pytest.mark.long),
    ],
)
def test_encoders_only(family: str, whole: int | None, alone: int | None, tmp_path: Path) -> None:
    """The same embeddings, bit for bit, made the same way, without the text model's bytes."""
    checkpoint(family)
    file = tmp_path / "embeddings.pt"
    all_of_it = found(tmp_path, ENCODERS, family, file, "false")
    encoders = found(tmp_path, ENCODERS, family, file, "true")
    assert encoders["left out"][0] == "lm_head"
    assert len(encoders["left out"]) == 2
    assert encoders["devices"] == ["cpu"]
    assert encoders["modalities"]
    assert (encoders["modalities"], encoders["ways"]) == (all_of_it["modalities"], all_of_it["ways"])
    if whole is not None:
        assert (all_of_it["bytes"], encoders["bytes"]) == (whole, alone)
    assert encoders["bytes"] < all_of_it["bytes"]


SHARED = """
    import json, sys
    from compat import encoders
    from compat.parity import engine, items, reference
    from compat.parity.cases import cases
    from compat.zoo import checkpoint, spec
    from hf_backend.check.compare import compare

    if __name__ == "__main__":
        family, folder, role = sys.argv[1:]
        asked = [case for case in cases(spec(family)) if case.name in ("one_image", "interleaved_sizes")]
        requests = list(dict.fromkeys(request for case in asked for request in case.requests()))
        expected = reference.reference(family, asked)
        from vllm.config import ECTransferConfig

        transfer = ECTransferConfig(
            ec_connector="ECExampleConnector", ec_role=role, ec_connector_extra_config={"shared_storage_path": folder}
        )
        llm = engine.start(family, engine.OURS, ec_transfer_config=transfer)
        model = llm.apply_model(lambda model: model)[0]
        rate = items.sampling_rate(checkpoint(family))
        with encoders.counted(model, "image") as calls:
            answers = engine.ask_together(llm, spec(family), requests, engine.OURS, rate).answers
        verdicts = [compare(expected[request], answer) for request, answer in zip(requests, answers, strict=True)]
        wrong = [verdict.wrong for verdict in verdicts if verdict.wrong]
        tokens = [list(answer.tokens) for answer in answers]
        print("FOUND", json.dumps({"wrong": wrong, "tokens": tokens, "encoded": sum(calls)}))
"""


@pytest.mark.long
@pytest.mark.parametrize("family", ["qwen2_vl", "qwen3_vl", "llava"])
def test_c12_one_instance_encodes_and_another_answers(family: str, tmp_path: Path) -> None:
    """vLLM's disaggregated encoder: an `ec_producer` is started without a text model by vLLM itself; an `ec_consumer` encodes
    nothing that is in the folder."""
    checkpoint(family)
    folder = tmp_path / "shared"
    folder.mkdir()
    made = found(tmp_path, SHARED, family, folder, "ec_producer")
    assert made["tokens"] == [[], []]
    assert made["encoded"] == len(list(folder.rglob("*.safetensors"))) > 2
    told = found(tmp_path, SHARED, family, folder, "ec_consumer")
    assert told["encoded"] == 0
    assert all(told["tokens"])
    assert not told["wrong"]
