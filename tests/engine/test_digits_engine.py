"""The digits model in an engine of our own process tree: every answer is HF's (C12), whatever stands beside a request."""

import json
import random
from pathlib import Path

import pytest
from children import found

pytest.importorskip("sklearn", reason="the demo's pictures come with scikit-learn")

from hf_backend.demo import digits, reference

pytestmark = [pytest.mark.engine, pytest.mark.timeout(400)]

READINGS = digits.singles(40) + digits.sequences(15)
random.Random(3).shuffle(READINGS)

ENGINE = """
    import json, sys
    from vllm import LLM, SamplingParams
    from hf_backend import plugin
    from hf_backend.demo import digits, reference

    if __name__ == "__main__":
        plugin.register()
        names = json.loads(sys.argv[1])
        readings = [digits.Reading(tuple(map(digits.picture, numbers))) for numbers in names]
        llm = LLM(
            str(reference.CHECKPOINT), model_impl="transformers", dtype="float32", max_model_len=256, max_num_seqs=16,
            limit_mm_per_prompt={"image": 3}, enforce_eager=True,
        )
        chats = [digits.openai_messages(reading.images) for reading in readings]
        greedy = SamplingParams(temperature=0, max_tokens=reference.MOST_TOKENS)
        outputs = llm.chat(chats, greedy, use_tqdm=False)
        model = llm.apply_model(lambda model: type(model).__module__) if sys.argv[2] == "0" else None
        print("FOUND", json.dumps({"answers": [output.outputs[0].text.strip() for output in outputs], "model": model}))
"""


@pytest.fixture(scope="module")
def expected() -> list[str]:
    """What HF `generate` reads; in this process, which never makes an engine."""
    return reference.Reference().read_all(READINGS)


@pytest.mark.parametrize("multiprocessing", ["0", "1"], ids=["one process", "engine in its own process"])
def test_every_answer_is_that_of_hf_generate(expected: list[str], tmp_path: Path, multiprocessing: str) -> None:
    """In a child process: vLLM decorates HF's classes, and the reference must not see that."""
    numbers = [[picture.number for picture in reading.pictures] for reading in READINGS]
    environment = {"VLLM_ENABLE_V1_MULTIPROCESSING": multiprocessing, "OMP_NUM_THREADS": "1"}
    if multiprocessing == "0":
        # `apply_model` sends a function to the engine; here the engine is the sender.
        environment["VLLM_ALLOW_INSECURE_SERIALIZATION"] = "1"
    result = found(tmp_path, ENGINE, json.dumps(numbers), multiprocessing, **environment)
    names = [reading.name for reading in READINGS]
    assert dict(zip(names, result["answers"], strict=True)) == dict(zip(names, expected, strict=True))
    assert reference.num_right(READINGS, result["answers"]) >= 0.95 * len(READINGS)
    if result["model"] is not None:
        assert result["model"] == ["hf_backend.models"]
