"""The demo model's recipe: training is repeatable, and the committed checkpoint is what the recipe makes."""

import dataclasses
import json

import pytest

pytest.importorskip("sklearn", reason="the demo's pictures come with scikit-learn")

import torch
from safetensors.torch import load_file

from hf_backend.demo import digits, recipe, reference, train
from hf_backend.demo.augment import IGNORED, Augmenter

ACCURACY = reference.CHECKPOINT / train.ACCURACY_FILE


def test_equal_seeds_give_equal_weights() -> None:
    plan = train.Plan(steps=3, pictures=6)
    threads = torch.get_num_threads()
    try:
        (one, _, run), (other, _, _) = train.train(plan), train.train(plan)
        different, _, _ = train.train(dataclasses.replace(plan, seed=1))
    finally:
        torch.set_num_threads(threads)
    assert run["steps"] == 3
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert not torch.equal(one.lm_head.weight, different.lm_head.weight)


def test_a_batch_asks_for_the_digits_it_shows() -> None:
    """As many placeholders as embeddings, and labels that hold three words where the answer stands and nowhere else."""
    processor = recipe.make_processor()
    batch = Augmenter(processor, seed=5).draw(4, 3)
    image = processor.tokenizer.convert_tokens_to_ids(recipe.IMAGE)
    embeds = batch.inputs["image_grid_thw"].prod(-1) // recipe.MERGE**2
    assert (batch.inputs["input_ids"] == image).sum() == embeds.sum()
    assert batch.inputs["pixel_values"].shape == (4 * embeds.sum(), 3 * 2 * recipe.PATCH**2)
    for ids, labels in zip(batch.inputs["input_ids"], batch.labels, strict=True):
        answer = labels[labels != IGNORED]
        assert torch.equal(ids[labels != IGNORED], answer)
        *spoken, end = processor.tokenizer.decode(answer).replace(recipe.END_OF_TURN, f" {recipe.END_OF_TURN}").split()
        assert end == recipe.END_OF_TURN
        assert len(spoken) == 3
        assert set(spoken) <= set(digits.WORDS)


def test_the_committed_checkpoint_is_small_and_of_this_recipe() -> None:
    weights = reference.CHECKPOINT / "model.safetensors"
    assert weights.stat().st_size < 5_000_000
    model = recipe.make_model(recipe.make_tokenizer(), seed=0)
    state, committed = model.state_dict(), load_file(weights)
    assert {tensor.dtype for tensor in committed.values()} == {torch.float32}
    assert sum(tensor.numel() for tensor in committed.values()) == sum(tensor.numel() for tensor in state.values())
    assert committed["lm_head.weight"].shape == state["lm_head.weight"].shape
    config = json.loads((reference.CHECKPOINT / "config.json").read_text())
    assert config == {**config, **json.loads(model.config.to_json_string()), "architectures": config["architectures"]}


def test_the_committed_tokenizer_and_template_are_of_this_recipe() -> None:
    from transformers import AutoProcessor

    committed, made = AutoProcessor.from_pretrained(reference.CHECKPOINT), recipe.make_processor()
    messages = digits.hf_messages(digits.sequences(1)[0].images)
    texts = [p.apply_chat_template(messages, tokenize=False, add_generation_prompt=True) for p in (committed, made)]
    assert texts[0] == texts[1]
    assert texts[0].count(recipe.IMAGE) == 3
    for text in [*texts, "Ünïcode, any 文字 & <|im_end|>"]:
        ids = [p.tokenizer.encode(text) for p in (committed, made)]
        assert ids[0] == ids[1]
        assert committed.tokenizer.decode(ids[0]) == text
    for token in recipe.SPECIAL_TOKENS:
        assert len(committed.tokenizer.encode(token)) == 1


def test_the_measured_accuracy_meets_the_aim_and_belongs_to_the_plan() -> None:
    record = json.loads(ACCURACY.read_text())
    assert record["plan"] == dataclasses.asdict(train.Plan())
    assert record["accuracy"]["one picture"]["readings"] == digits.HELD_OUT
    assert record["accuracy"]["one picture"]["share"] >= 0.97
    assert record["accuracy"]["three pictures"]["share"] >= 0.95


def test_generate_reads_as_well_as_measured() -> None:
    """On a part of the pictures, because all of them take long: no more than a few of 90 wrong."""
    readings = digits.singles(60) + digits.sequences(30, 3, seed=13)
    answers = reference.Reference().read_all(readings)
    assert reference.num_right(readings, answers) >= 0.93 * len(readings)
