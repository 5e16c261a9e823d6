"""The registered pooling classes in an engine, and vLLM's adapters over the class that generates text.

vLLM takes a registered pooling class only where the checkpoint's own architecture is one for pooling: `Qwen2VLModel` for
embeddings, `Gemma3ForSequenceClassification` for classification. Answers are held to transformers, with pictures.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from children import found
from safetensors.torch import load_file, save_file

from compat.zoo.registry import spec
from compat.zoo.store import checkpoint
from hf_backend.probe.samples import picture

pytestmark = [pytest.mark.engine, pytest.mark.language, pytest.mark.long, pytest.mark.timeout(600)]

LABELS = 3
SEEDS = (1, 2)

ENGINE = """
    import json, sys
    from vllm import LLM
    from vllm.config import PoolerConfig
    from hf_backend import plugin
    from hf_backend.probe.samples import picture

    if __name__ == "__main__":
        plugin.register()
        model, text, task, options = sys.argv[1:]
        options = json.loads(options)
        if "pooling" in options:
            options["pooler_config"] = PoolerConfig(seq_pooling_type=options.pop("pooling"))
        llm = LLM(
            model, model_impl="transformers", runner="pooling", dtype="float32", max_model_len=1024, max_num_seqs=4,
            enforce_eager=True, limit_mm_per_prompt={"image": 2}, **options,
        )
        (bases,) = llm.apply_model(lambda model: [f"{base.__module__}.{base.__name__}" for base in type(model).__mro__])
        prompts = [{"prompt": text, "multi_modal_data": {"image": [picture(112, 84, seed=seed)]}} for seed in (1, 2)]
        outputs = getattr(llm, task)(prompts, use_tqdm=False)
        found = [output.outputs.embedding if task == "embed" else output.outputs.probs for output in outputs]
        print("FOUND", json.dumps([bases, found]), flush=True)
"""


def ask(directory: Path, folder: Path, text: str, task: str, **options: str) -> tuple[list[str], list[torch.Tensor]]:
    """The bases of the class that served, and an answer for each of `SEEDS`."""
    bases, answers = found(directory, ENGINE, folder, text, task, json.dumps(options))
    return bases, [torch.tensor(each) for each in answers]


def copy_of(family: str, folder: Path, *, weights: bool) -> Path:
    shutil.copytree(checkpoint(family), folder)
    if not weights:
        for file in folder.glob("*.safetensors*"):
            file.unlink()
    return folder


def inputs_of(family: str, text: str) -> list[Any]:
    processor = transformers.AutoProcessor.from_pretrained(checkpoint(family))
    return [processor(text=text, images=[picture(112, 84, seed=seed)], return_tensors="pt") for seed in SEEDS]


@pytest.mark.parametrize(("family", "pooling"), [("qwen2_vl", "LAST"), ("qwen2_vl", "MEAN"), ("gemma3", "MEAN")])
def test_embedding_class(family: str, pooling: str, tmp_path: Path) -> None:
    """Gemma 3 attends both ways inside pictures, which is measured from another class than the checkpoint's."""
    text = f"see {spec(family).placeholders['image']} now"
    model: Any = transformers.AutoModel.from_pretrained(checkpoint(family), dtype=torch.float32).eval()
    folder = copy_of(family, tmp_path / "model", weights=False)
    model.save_pretrained(folder)
    bases, answers = ask(tmp_path, folder, text, "embed", pooling=pooling)
    assert bases[0] == "hf_backend.models.TransformersMultiModalEmbeddingModel"
    for inputs, embedding in zip(inputs_of(family, text), answers, strict=True):
        with torch.inference_mode():
            hidden = model(**inputs).last_hidden_state[0]
        pooled = hidden[-1] if pooling == "LAST" else hidden.mean(0)
        assert torch.allclose(embedding, torch.nn.functional.normalize(pooled, dim=0), atol=1e-4)
    assert not torch.equal(*answers), "another picture has to give another embedding"


@pytest.mark.parametrize("family", ["qwen2_vl", "idefics3"])
def test_embedding_adapter(family: str, tmp_path: Path) -> None:
    """A checkpoint that generates text: vLLM makes our class into one that embeds, by the last token."""
    text = f"see {spec(family).placeholders['image']} now"
    bases, answers = ask(tmp_path, checkpoint(family), text, "embed", convert="embed")
    assert "hf_backend.models.TransformersMultiModalForCausalLM" in bases
    model: Any = transformers.AutoModel.from_pretrained(checkpoint(family), dtype=torch.float32).eval()
    for inputs, embedding in zip(inputs_of(family, text), answers, strict=True):
        with torch.inference_mode():
            last = model(**inputs).last_hidden_state[0, -1]
        assert torch.allclose(embedding, torch.nn.functional.normalize(last, dim=0), atol=1e-4)
    assert not torch.equal(*answers), "another picture has to give another embedding"


def test_classification_class(tmp_path: Path) -> None:
    """With vLLM's options left alone: a linear head, on the token that transformers takes."""
    text = f"see {spec('gemma3').placeholders['image']} now"
    config = transformers.AutoConfig.from_pretrained(checkpoint("gemma3"))
    config.num_labels = LABELS
    torch.manual_seed(0)
    model: Any = transformers.AutoModelForSequenceClassification.from_config(config).float().eval()
    base = transformers.AutoModel.from_pretrained(checkpoint("gemma3"), dtype=torch.float32)
    model.model.load_state_dict(base.state_dict())
    torch.nn.init.normal_(model.score.weight)
    folder = copy_of("gemma3", tmp_path / "model", weights=False)
    model.save_pretrained(folder)
    bases, answers = ask(tmp_path, folder, text, "classify")
    assert bases[0] == "hf_backend.models.TransformersMultiModalForSequenceClassification"
    for inputs, probabilities in zip(inputs_of("gemma3", text), answers, strict=True):
        with torch.inference_mode():
            expected = model(**inputs).logits[0].softmax(-1)
        assert torch.allclose(probabilities, expected, atol=1e-4)
    assert not torch.equal(*answers), "another picture has to give other probabilities"


def test_classification_adapter(tmp_path: Path) -> None:
    """A checkpoint that generates text, with the adapter's `score.weight` beside it: no place for that in transformers."""
    text = f"see {spec('qwen2_vl').placeholders['image']} now"
    folder = copy_of("qwen2_vl", tmp_path / "model", weights=True)
    (file,) = folder.glob("*.safetensors")
    model: Any = transformers.AutoModel.from_pretrained(checkpoint("qwen2_vl"), dtype=torch.float32).eval()
    head = torch.randn(LABELS, model.config.get_text_config().hidden_size, generator=torch.Generator().manual_seed(0))
    save_file({**load_file(file), "score.weight": head}, file, metadata={"format": "pt"})
    settings = json.loads((folder / "config.json").read_text())
    names = [str(number) for number in range(LABELS)]
    settings |= {"id2label": dict(zip(names, names, strict=True)), "label2id": {name: int(name) for name in names}}
    (folder / "config.json").write_text(json.dumps(settings))
    bases, answers = ask(tmp_path, folder, text, "classify", convert="classify")
    assert "hf_backend.models.TransformersMultiModalForCausalLM" in bases
    for inputs, probabilities in zip(inputs_of("qwen2_vl", text), answers, strict=True):
        with torch.inference_mode():
            expected = (head @ model(**inputs).last_hidden_state[0, -1]).softmax(-1)
        assert torch.allclose(probabilities, expected, atol=1e-4)
    assert not torch.equal(*answers), "another picture has to give other probabilities"
