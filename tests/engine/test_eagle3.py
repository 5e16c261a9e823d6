"""Eagle3: a small random draft model reads the text model's hidden states, and what is answered is what the model answers alone.

What the draft is given are transformers' own hidden states, with pictures in the prompt: a draft's guesses never change an
answer, so that equal answers alone would show nothing of the hooks.
"""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import save_file

from compat.zoo.registry import spec
from compat.zoo.store import checkpoint
from hf_backend.probe.samples import picture

pytestmark = [pytest.mark.engine, pytest.mark.language, pytest.mark.timeout(500)]

FAMILIES = [
    "llava",
    pytest.param("gemma3", marks=pytest.mark.long),
    pytest.param("qwen2_5_vl", marks=pytest.mark.long, id="qwen2_5_vl: M-RoPE"),
]
LAYERS = (1, 2)
"""Of two: the draft takes what layers 1 and 2 give, as inputs of the ones after them."""
TEXT = "a {} what is it?"

ENGINE = """
    import json, sys
    import torch
    from vllm import LLM, SamplingParams
    from hf_backend import plugin
    from hf_backend.probe.samples import picture

    if __name__ == "__main__":
        plugin.register()
        model, draft, prompt, states = sys.argv[1:]
        llm = LLM(
            model, model_impl="transformers", dtype="float32", max_model_len=1024, max_num_seqs=4, enforce_eager=True,
            limit_mm_per_prompt={"image": 2}, enable_prefix_caching=False,
            speculative_config={"model": draft, "method": "eagle3", "num_speculative_tokens": 2} if draft else None,
        )
        seen = []

        def watch(vllm_model):
            vllm_model.register_forward_hook(lambda module, arguments, found: seen.append(found))

        llm.apply_model(watch)
        greedy = SamplingParams(temperature=0, max_tokens=12, ignore_eos=True, detokenize=False)
        asked = {"prompt": prompt, "multi_modal_data": {"image": [picture(112, 84, seed=1)]}}
        (output,) = llm.generate([asked], greedy, use_tqdm=False)
        if draft:
            hidden, auxiliary = seen[0]
            torch.save([each[: len(output.prompt_token_ids)].clone() for each in auxiliary], states)
        print("TOKENS", json.dumps(list(output.outputs[0].token_ids)))
"""


def ask(directory: Path, model: Path, draft: Path | None, prompt: str, states: Path) -> list[int]:
    """Tokens from an engine in a child process; with a draft, the hidden states of the prompt go to the file `states`."""
    script = directory / "engine.py"
    script.write_text(textwrap.dedent(ENGINE))
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    }
    command = [sys.executable, str(script), str(model), str(draft or ""), prompt, str(states)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    line = next((line for line in done.stdout.splitlines() if line.startswith("TOKENS ")), None)
    assert line is not None, done.stdout[-2000:] + done.stderr[-4000:]
    tokens: list[int] = json.loads(line.removeprefix("TOKENS "))
    return tokens


def make_draft(directory: Path, text_config: transformers.PreTrainedConfig) -> Path:
    """A random draft of one layer in the names of Eagle3 checkpoints."""
    hidden, inner, vocabulary = text_config.hidden_size, 64, text_config.vocab_size
    heads, size = 2, 32
    generator = torch.Generator().manual_seed(3)

    def noise(rows: int, columns: int) -> torch.Tensor:
        return torch.randn(rows, columns, generator=generator) * columns**-0.5

    weights = {f"midlayer.{name}.weight": torch.ones(hidden) for name in ("input_layernorm", "hidden_norm")}
    weights |= {"midlayer.post_attention_layernorm.weight": torch.ones(hidden), "norm.weight": torch.ones(hidden)}
    weights |= {f"midlayer.self_attn.{name}_proj.weight": noise(heads * size, 2 * hidden) for name in "qkv"}
    weights["midlayer.self_attn.o_proj.weight"] = noise(hidden, heads * size)
    weights |= {f"midlayer.mlp.{name}_proj.weight": noise(inner, hidden) for name in ("gate", "up")}
    weights["midlayer.mlp.down_proj.weight"] = noise(hidden, inner)
    weights["fc.weight"] = noise(hidden, len(LAYERS) * hidden)
    weights["lm_head.weight"] = noise(vocabulary, hidden)
    folder = directory / "draft"
    config = transformers.LlamaConfig(
        architectures=["LlamaForCausalLMEagle3"],
        hidden_size=hidden,
        intermediate_size=inner,
        vocab_size=vocabulary,
        num_hidden_layers=1,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=size,
        max_position_embeddings=1024,
        tie_word_embeddings=False,
        dtype="float32",
    ).to_dict()
    config |= {
        "draft_vocab_size": vocabulary,
        "num_aux_hidden_states": len(LAYERS),
        "eagle_aux_hidden_state_layer_ids": list(LAYERS),
    }
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def hidden_states(family: str, prompt: str) -> list[torch.Tensor]:
    """What transformers' own layers give for the prompt, [tokens, hidden size] each."""
    folder = checkpoint(family)
    processor = transformers.AutoProcessor.from_pretrained(folder)
    model = getattr(transformers, spec(family).model_class).from_pretrained(folder, dtype=torch.float32).eval()
    inputs = processor(text=[prompt], images=[picture(112, 84, seed=1)], return_tensors="pt")
    found: dict[int, torch.Tensor] = {}

    def keep(number: int, output: torch.Tensor | tuple[torch.Tensor, ...]) -> None:
        found[number] = (output[0] if isinstance(output, tuple) else output)[0]

    for number, layer in enumerate(model.get_decoder().layers, start=1):
        layer.register_forward_hook(lambda _, __, output, number=number: keep(number, output))
    with torch.no_grad():
        model(**inputs)
    return [found[number] for number in LAYERS]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_draft_reads_the_text_models_hidden_states(family: str, tmp_path: Path) -> None:
    base, states = checkpoint(family), tmp_path / "states.pt"
    prompt = TEXT.format(spec(family).placeholders["image"])
    draft = make_draft(tmp_path, transformers.AutoConfig.from_pretrained(base).get_text_config())
    alone = ask(tmp_path, base, None, prompt, states)
    assert ask(tmp_path, base, draft, prompt, states) == alone
    expected, given = hidden_states(family, prompt), torch.load(states)
    assert len(given) == len(expected) == len(LAYERS)
    for one, other in zip(given, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
