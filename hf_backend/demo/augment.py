"""Training batches: the 1,437 training digits, each time drawn a little differently.

Takes a seed; gives prompts of one to three warped pictures as tensors. Not for held-out pictures, which are never warped.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from hf_backend.demo import digits, recipe

TURN_BY, SCALE_BY, SHIFT_BY, NOISE = 0.2, 0.12, 0.09, 0.04
"""Largest rotation in radians, change of scale, shift as a share of the side, and standard deviation of the noise."""

IGNORED = -100
"""Label of a token that isn't learned."""


@dataclass(frozen=True)
class Batch:
    """Prompts with their answers, padded on the right.

    `inputs`: what the model's forward takes, `input_ids` [prompts, tokens] among it; `labels` [prompts, tokens]: the
    answer's ids where they stand, `IGNORED` elsewhere.
    """

    inputs: dict[str, torch.Tensor]
    labels: torch.Tensor


class Augmenter:
    """Draws batches. Everything random comes from one generator, so equal seeds give equal batches."""

    def __init__(self, processor: Any, seed: int) -> None:
        self._processor = processor
        self._generator = torch.Generator().manual_seed(seed)
        brightness, labels = digits.bundled()
        train = list(digits.split().train)
        self._digits = [int(labels[number]) for number in train]
        self._grey = {
            side: torch.stack([_grey(brightness[number], side) for number in train])
            for side in sorted({min(canvas) for canvas in digits.CANVASES})
        }
        tokenizer = processor.tokenizer
        turn = processor.apply_chat_template(digits.openai_messages([]), tokenize=False, add_generation_prompt=True)
        before, question, after = turn.partition(digits.QUESTION)
        self._before = tokenizer.encode(before)
        self._after = tokenizer.encode(question + after)
        self._marks = [tokenizer.convert_tokens_to_ids(mark) for mark in (recipe.VISION_START, recipe.VISION_END)]
        self._image = int(tokenizer.convert_tokens_to_ids(recipe.IMAGE))
        self._pad = int(tokenizer.pad_token_id)

    def draw(self, prompts: int, length: int) -> Batch:
        """`prompts` prompts of `length` pictures each."""
        count = prompts * length
        chosen = self._integers(len(self._digits), count)
        canvases = self._integers(len(digits.CANVASES), count)
        processed = self._processor.image_processor(images=self._pictures(chosen, canvases), return_tensors="pt")
        grids = processed["image_grid_thw"]
        embeds = (grids.prod(-1) // recipe.MERGE**2).tolist()
        rows, answers = [], []
        for start in range(0, count, length):
            own = range(start, start + length)
            rows.append(self.prompt_ids([embeds[k] for k in own]))
            answers.append(self.answer_ids([self._digits[chosen[k]] for k in own]))
        return self._padded(rows, answers, processed["pixel_values"], grids)

    def prompt_ids(self, embeds: list[int]) -> list[int]:
        """Ids of a prompt whose pictures take `embeds` embeddings each, as the processor makes them."""
        start, end = self._marks
        pictures = [token for number in embeds for token in (start, *[self._image] * number, end)]
        return [*self._before, *pictures, *self._after]

    def answer_ids(self, answer: list[int]) -> list[int]:
        """Ids of an answer and the end of its turn."""
        return list(self._processor.tokenizer.encode(digits.words(answer) + recipe.END_OF_TURN))

    def _padded(
        self, rows: list[list[int]], answers: list[list[int]], pixels: torch.Tensor, grids: torch.Tensor
    ) -> Batch:
        width = max(len(row) + len(answer) for row, answer in zip(rows, answers, strict=True))
        ids = torch.full((len(rows), width), self._pad)
        labels = torch.full((len(rows), width), IGNORED)
        mask = torch.zeros(len(rows), width, dtype=torch.long)
        for k, (row, answer) in enumerate(zip(rows, answers, strict=True)):
            stop = len(row) + len(answer)
            ids[k, :stop] = torch.tensor(row + answer)
            labels[k, len(row) : stop] = torch.tensor(answer)
            mask[k, :stop] = 1
        inputs = {
            "input_ids": ids,
            "attention_mask": mask,
            "mm_token_type_ids": (ids == self._image).long(),
            "pixel_values": pixels,
            "image_grid_thw": grids,
        }
        return Batch(inputs, labels)

    def _pictures(self, chosen: list[int], canvases: list[int]) -> list[torch.Tensor]:
        """RGB pictures [3, height, width] (uint8), warped."""
        pictures: list[torch.Tensor] = [torch.empty(0)] * len(chosen)
        for number, (height, width) in enumerate(digits.CANVASES):
            own = [k for k, canvas in enumerate(canvases) if canvas == number]
            if not own:
                continue
            grey = self._grey[min(height, width)][[chosen[k] for k in own]]
            warped = self._warp(grey, height, width)
            for k, one in zip(own, warped, strict=True):
                pictures[k] = one.expand(3, height, width)
        return pictures

    def _warp(self, grey: torch.Tensor, height: int, width: int) -> torch.Tensor:
        """Grey squares [n, side, side] (0 to 1) turned, scaled and shifted on a canvas, as uint8 [n, 1, height, width]."""
        count, side = grey.shape[0], grey.shape[-1]
        turn, scale = self._spread(TURN_BY, count), 1 + self._spread(SCALE_BY, count)
        shift = self._spread(SHIFT_BY, 2 * count).view(count, 2)
        cos, sin = torch.cos(turn) / scale, torch.sin(turn) / scale
        across, down = width / side, height / side
        theta = torch.stack(
            [
                torch.stack([cos * across, -sin * down, shift[:, 0]], -1),
                torch.stack([sin * across, cos * down, shift[:, 1]], -1),
            ],
            1,
        )
        grid = torch.nn.functional.affine_grid(theta, [count, 1, height, width], align_corners=False)
        warped = torch.nn.functional.grid_sample(grey[:, None], grid, align_corners=False)
        gain = 1 + self._spread(0.15, count).view(count, 1, 1, 1)
        noise = torch.randn(warped.shape, generator=self._generator) * NOISE * self._share(count).view(count, 1, 1, 1)
        return ((warped * gain + noise).clamp(0, 1) * 255).round().to(torch.uint8)

    def _integers(self, below: int, count: int) -> list[int]:
        drawn: list[int] = torch.randint(below, (count,), generator=self._generator).tolist()
        return drawn

    def _share(self, count: int) -> torch.Tensor:
        return torch.rand(count, generator=self._generator)

    def _spread(self, largest: float, count: int) -> torch.Tensor:
        return (2 * self._share(count) - 1) * largest


def _grey(brightness: np.ndarray[Any, np.dtype[np.uint8]], side: int) -> torch.Tensor:
    return torch.from_numpy(np.array(digits.enlarge(brightness, side), dtype=np.float32) / 255)
