"""`hf_backend.check.verdict` and `blame`: every "no" says whose it is and what to do, and the exit status follows."""

from typing import Any

import pytest

from hf_backend.check import blame, verdict
from hf_backend.check.cases import requests
from hf_backend.check.verdict import Steps, exit_status, nos
from hf_backend.errors import RequestError, UnsupportedModelError


def _processor(**changes: Any) -> dict[str, Any]:
    image: dict[str, Any] = {
        "placeholder": "<image>",
        "strategy": "offsets",
        "embed_ids": [7],
        "merges_text": False,
        "layouts": {"pixel_values": {"joining": "concatenated", "dim": 0, "exact": False}},
        "typical": [{"size": [224, 224], "tokens": 10, "embeddings": 9}, {"size": [9, 9], "refused": "too small"}],
        "largest": {"size": [64, 64], "tokens": 20, "embeddings": 16},
        "largest_seconds": 0.1,
        "largest_bytes": 2**20,
        "probe_calls": 5,
        "probe_seconds": 0.1,
        "independent": True,
    }
    return {
        "architectures": ["AForConditionalGeneration"],
        "max_model_len": 2048,
        "processor": "AProcessor",
        "hidden_size": 64,
        "sampling_rate": 16000.0,
        "modalities": {"image": image | changes},
        "refused": {},
    }


def _engine(**changes: Any) -> dict[str, Any]:
    encoder = {
        "way": "its features method",
        "joinable": True,
        "compiled": None,
        "apart": 0.0,
        "largest_seconds": 0.1,
        "largest_memory_mb": 3,
    }
    return {
        "class": "hf_backend.models.TransformersMultiModalForCausalLM",
        "model": "AModel",
        "start_seconds": 3.0,
        "start_memory_mb": 900,
        "attention": {"backends": ["CPU_ATTN"], "ignored": []},
        "encoders": {"image": encoder},
    } | changes


REFERENCE = {"refused": {}, "tiny": {"how": "fewer heads", "parameters": 10**6}}
ANSWERED = {"right": True, "wrong": None, "difference": 1e-6}


def _steps(processor: Any = None, engine: Any = None) -> Steps:
    return Steps({"folder": "f"}, processor or _processor(), REFERENCE, engine or _engine())


COMPILED = {
    "modules": 2,
    "kinds": ["Tower"],
    "graphs": 3,
    "difference": 2e-7,
    "speed": 1.5,
    "failed": None,
}


@pytest.mark.parametrize(
    ("changes", "said", "status"),
    [
        ({}, "yes, Tower: 2 modules, 3 graphs; 2e-07 of the largest embedding", 0),
        ({"modules": 0}, "stays eager", 0),
        ({"difference": 3e-3}, "NO, Tower", 1),
        ({"difference": None, "speed": None, "failed": "recompiled"}, "NO, Tower: 2 modules, 3 graphs; recompiled", 1),
    ],
    ids=["right", "eager", "another result", "a new size compiles"],
)
def test_compiled_encoders(changes: dict[str, Any], said: str, status: int) -> None:
    engine = _engine()
    engine["encoders"]["image"]["compiled"] = COMPILED | changes
    steps = _steps(engine=engine)
    assert any(f"compile (C10): {said}" in text for _, text in verdict.rows("m", steps))
    assert exit_status(nos(steps)) == status


def test_all_fine_is_0_and_says_what_was_seen() -> None:
    steps = _steps(engine=_engine(parity={"one image": ANSWERED}))
    assert nos(steps) == []
    assert exit_status([]) == 0
    table = "\n".join(f"{name} {text}" for name, text in verdict.rows("m", steps))
    for part in (
        "'<image>', by offsets",
        "224 x 224: 9",
        "9 x 9: too small",
        "1.0 million",
        "1 of 1 answers",
        "CPU_ATTN",
    ):
        assert part in table


@pytest.mark.parametrize(
    ("steps", "subject", "whose"),
    [
        (_steps(_processor(independent=False)), "image, C1", blame.PROCESSOR),
        (_steps(_processor() | {"refused": {"video": "edits the prompt"}}), "video", blame.PROCESSOR),
        (_steps(engine=_engine(**{"class": "vllm.x.Y", "encoders": {}})), "class", blame.MACHINE),
        (_steps(engine=_engine(attention={"backends": ["A"], "ignored": ["A ignores it"]})), "attention", blame.VLLM),
        (
            _steps(engine=_engine(encoders={"image": _engine()["encoders"]["image"] | {"apart": 0.1}})),
            "image, C9",
            blame.OURS,
        ),
        (
            _steps(engine=_engine(parity={"one image": {"right": False, "wrong": "token 0", "difference": 0.1}})),
            "parity: one image",
            blame.OURS,
        ),
        (Steps({"folder": "f"}, {"error": "it broke", "whose": blame.VLLM, "do": "another"}), "processor", blame.VLLM),
    ],
)
def test_every_no_is_1_and_names_whose_it_is(steps: Steps, subject: str, whose: str) -> None:
    found = nos(steps)
    assert [(no.subject, no.whose) for no in found] == [(subject, whose)]
    assert exit_status(found) == 1
    assert found[0].do
    assert any(whose in line for line in verdict.conclusion(found, parity=True))
    list(verdict.rows("m", steps))


def test_what_could_not_be_told_is_2() -> None:
    no_tiny = Steps(
        {"folder": "f"}, _processor(), {"error": "no smaller config", "whose": blame.MODEL, "do": "--weights"}
    )
    died = Steps({"folder": "f"}, {"error": "no answer within 1 s", "unanswered": True, "do": "doctor"})
    nothing_to_compare = _steps(engine=_engine(parity={"text alone": ANSWERED}))
    for steps in (no_tiny, died, nothing_to_compare):
        assert exit_status(nos(steps)) == 2


def test_a_wrong_answer_is_told_once_and_put_down_to_attention_that_is_ignored() -> None:
    wrong = {"right": False, "wrong": "token 0", "difference": 0.1}
    both = {
        "one image": wrong,
        "one image, all at once": wrong,
        "two images": ANSWERED,
        "two images, all at once": wrong,
    }
    found = nos(_steps(engine=_engine(parity=both)))
    assert [no.subject for no in found] == ["parity: one image", "parity: two images, all at once"]
    assert {no.whose for no in found} == {blame.OURS}
    attention = {"backends": ["A"], "ignored": ["A ignores it"]}
    found = nos(_steps(engine=_engine(parity=both, attention=attention)))
    assert found[0].subject == "attention"
    assert {no.whose for no in found} == {blame.VLLM}


def test_our_own_errors_name_the_class_at_fault() -> None:
    error = UnsupportedModelError("AProcessor", found="x", expected="y", do="Do z.")
    assert blame.blame(error) == blame.Blame(blame.PROCESSOR, str(error), "Do z.")
    wrapped = RuntimeError("the engine died")
    wrapped.__cause__ = RequestError("AModel", found="x", expected="y", do="Do z.")
    assert blame.blame(wrapped).whose == blame.MODEL


def test_an_error_inside_a_configs_validation_is_found() -> None:
    from pydantic import ValidationError, model_validator
    from pydantic.dataclasses import dataclass

    @dataclass
    class Config:
        @model_validator(mode="after")
        def check(self) -> "Config":
            raise UnsupportedModelError("AProcessor", found="x", expected="y", do="Do z.")

    with pytest.raises(ValidationError) as caught:
        Config()
    assert blame.blame(caught.value).whose == blame.PROCESSOR
    assert blame.blame(caught.value).do == "Do z."


@pytest.mark.parametrize(
    ("text", "whose"),
    [
        ("`made_up` but Transformers does not recognize this architecture", blame.TRANSFORMERS),
        ("Please pass the argument `trust_remote_code=True`", blame.MODEL),
        ("CUDA out of memory", blame.MACHINE),
        ("something else", blame.UNKNOWN),
    ],
)
def test_errors_of_others_are_told_by_their_text(text: str, whose: str) -> None:
    found = blame.blame(ValueError(text))
    assert found.whose == whose
    assert text in found.found
    assert found.do


@pytest.mark.parametrize(
    ("file", "whose"),
    [
        ("/x/vllm/v1/engine.py", blame.VLLM),
        ("/x/transformers/models/a/processing_a.py", blame.PROCESSOR),
        ("/x/transformers/models/a/modeling_a.py", blame.MODEL),
        ("/x/transformers/modeling_utils.py", blame.TRANSFORMERS),
        ("/x/transformers_modules/a/modeling_a.py", blame.MODEL),
        ("/x/hf_backend/encoding/encode.py", blame.OURS),
    ],
)
def test_errors_of_others_are_told_by_whose_code_raised(file: str, whose: str) -> None:
    code = compile("def run():\n    raise KeyError('a')\n", file, "exec")
    space: dict[str, Any] = {}
    exec(code, space)
    with pytest.raises(KeyError) as caught:
        space["run"]()
    assert blame.blame(caught.value).whose == whose


def test_requests_repeat_an_item_and_mix_modalities() -> None:
    asked = {request.name: request for request in requests({"image": "<i>", "audio": "<a>"})}
    assert asked["one image"].items == asked["one image again"].items == (("image", 0),)
    assert asked["two audios"].of("audio") == (1, 0)
    assert asked["one of each"].items == (("image", 0), ("audio", 0))
    for request in asked.values():
        assert request.text.count("<i>") + request.text.count("<a>") == len(request.items)
