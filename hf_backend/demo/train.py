"""Train the demo model from scratch: `python -m hf_backend.demo.train` rebuilds the committed checkpoint.

Takes the training digits and a seed; gives a checkpoint folder with the accuracy measured by Hugging Face's `generate`
on held-out pictures beside it. Minutes on one core. Not for reading with the result (`reference`, `server`).
"""

import argparse
import json
import math
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from hf_backend.demo import digits, recipe
from hf_backend.demo.augment import IGNORED, Augmenter, Batch
from hf_backend.demo.reference import CHECKPOINT, Reference, num_right

ACCURACY_FILE = "accuracy.json"
SEQUENCES = 200
"""Sequences of two and of three that the accuracy is measured on."""


@dataclass(frozen=True)
class Plan:
    """One training run."""

    steps: int = 2200
    pictures: int = 48
    """Pictures a step, in prompts of one, two or three."""
    alone: float = 0.15
    """Share of the steps, at the start, whose prompts hold one picture: reading is learned first, keeping order next."""
    learning_rate: float = 1.5e-3
    warm_up: int = 60
    weight_decay: float = 0.05
    average: float = 0.995
    """Share of the running average of the weights that a step keeps; the average is what is saved."""
    seed: int = 0
    threads: int = 1
    """One is quick enough, gives the same weights on any number of cores, and doesn't stall on a busy machine."""


def train(plan: Plan, most_seconds: float = math.inf) -> tuple[Any, Any, dict[str, float]]:
    """Model, processor and a record of the run. Stops early, and says so, after `most_seconds`."""
    torch.set_num_threads(plan.threads)
    processor = recipe.make_processor()
    model = recipe.make_model(processor.tokenizer, plan.seed)
    augmenter = Augmenter(processor, plan.seed)
    _check_prompts(processor, augmenter)
    optimizer = torch.optim.AdamW(_groups(model, plan.weight_decay), lr=plan.learning_rate, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, plan))
    mean = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(plan.average)
    )
    model.train()
    began, shown_loss, shown_right = time.monotonic(), 0.0, 0.0
    step = 0
    for step in range(1, plan.steps + 1):
        loss, right = _step(model, _draw(augmenter, step, plan))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        mean.update_parameters(model)
        keep = 0.95 if step > 1 else 0.0
        shown_loss = keep * shown_loss + (1 - keep) * loss.item()
        shown_right = keep * shown_right + (1 - keep) * right
        seconds = time.monotonic() - began
        if step % 50 == 0 or step in (1, plan.steps):
            left = seconds / step * (plan.steps - step)
            _say(
                f"step {step:5d}/{plan.steps}  loss {shown_loss:.4f}  words right {shown_right:6.1%}  {left:4.0f} s left"
            )
        if seconds > most_seconds:
            _say(
                f"stopped after {seconds:.0f} s, at step {step} of {plan.steps}: --most-seconds is {most_seconds:.0f}."
            )
            break
    model.load_state_dict(mean.module.state_dict())
    return model.eval(), processor, {"steps": step, "seconds": round(time.monotonic() - began, 1)}


def _check_prompts(processor: Any, augmenter: Augmenter) -> None:
    """Training prompts are put together by hand; they must be what a server and `generate` will send."""
    reading = digits.Reading(tuple(digits.picture(number) for number in digits.split().train[:3]))
    expected = processor.apply_chat_template(
        digits.hf_messages(reading.images), tokenize=True, return_dict=True, add_generation_prompt=True
    )
    embeds = [(grid.prod() // recipe.MERGE**2).item() for grid in torch.as_tensor(expected["image_grid_thw"])]
    found = augmenter.prompt_ids([int(number) for number in embeds])
    if found != list(expected["input_ids"][0]):
        raise ValueError(
            f"Augmenter: found prompt ids {found}; expected the processor's {expected['input_ids'][0]}. "
            "Make `Augmenter.prompt_ids` follow the chat template again."
        )


def _groups(model: torch.nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Matrices decay; biases and norms don't."""
    matrices = [weight for weight in model.parameters() if weight.ndim > 1]
    others = [weight for weight in model.parameters() if weight.ndim <= 1]
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]


def _rate(step: int, plan: Plan) -> float:
    """Share of the learning rate at `step`: a linear start, then half a cosine down to 1%."""
    if step < plan.warm_up:
        return (step + 1) / plan.warm_up
    share = min(1.0, (step - plan.warm_up) / max(1, plan.steps - plan.warm_up))
    return 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * share))


def _draw(augmenter: Augmenter, step: int, plan: Plan) -> Batch:
    length = 1 if step <= plan.alone * plan.steps else 1 + step % 3
    return augmenter.draw(plan.pictures // length, length)


def _step(model: Any, batch: Batch) -> tuple[torch.Tensor, float]:
    """Loss over the answers' tokens, and the share of them that is right."""
    hidden = model.model(**batch.inputs, use_cache=False).last_hidden_state[:, :-1]
    labels = batch.labels[:, 1:]
    learned = labels != IGNORED
    logits = model.lm_head(hidden[learned])
    loss = torch.nn.functional.cross_entropy(logits, labels[learned])
    return loss, (logits.argmax(-1) == labels[learned]).float().mean().item()


def measure(model: Any, processor: Any) -> dict[str, dict[str, float]]:
    """Accuracy of greedy `generate` on all held-out pictures one by one, and on sequences of two and three."""
    reference = Reference(model=model, processor=processor)
    tasks = {
        "one picture": digits.singles(),
        "two pictures": digits.sequences(SEQUENCES, 2, seed=12),
        "three pictures": digits.sequences(SEQUENCES, 3, seed=13),
    }
    result = {}
    for name, readings in tasks.items():
        began = time.monotonic()
        right = num_right(readings, reference.read_all(readings))
        result[name] = {"readings": len(readings), "right": right, "share": round(right / len(readings), 4)}
        _say(
            f"held out, {name}: {right} of {len(readings)} right ({right / len(readings):.1%}), {time.monotonic() - began:.0f} s"
        )
    return result


def save(model: Any, processor: Any, folder: Path, record: dict[str, Any]) -> None:
    """Write model, processor and `accuracy.json` into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    (folder / ACCURACY_FILE).write_text(json.dumps(record, indent=2) + "\n")


def _say(line: str) -> None:
    print(line, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Train, measure, save. Exit status 0."""
    parser = argparse.ArgumentParser(prog="python -m hf_backend.demo.train", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=CHECKPOINT, help="folder to write (default: the package's own)")
    parser.add_argument("--steps", type=int, default=Plan.steps)
    parser.add_argument("--seed", type=int, default=Plan.seed)
    parser.add_argument("--threads", type=int, default=Plan.threads)
    parser.add_argument("--most-seconds", type=float, default=math.inf, help="stop training after that long")
    args = parser.parse_args(arguments)
    plan = Plan(steps=args.steps, seed=args.seed, threads=args.threads)
    _say(f"training on {len(digits.split().train)} digits, {plan.steps} steps of {plan.pictures} pictures")
    model, processor, run = train(plan, args.most_seconds)
    accuracy = measure(model, processor)
    parameters = sum(weight.numel() for weight in model.parameters())
    record = {
        "accuracy": accuracy,
        "plan": asdict(plan),
        "run": run,
        "parameters": parameters,
        "torch": torch.__version__,
    }
    save(model, processor, args.out, record)
    _say(f"wrote {args.out} ({parameters:,} parameters, trained in {run['seconds']:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
