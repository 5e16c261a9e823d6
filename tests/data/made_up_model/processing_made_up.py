"""Processor of the made-up model: patches of pictures of any shape, frames of clips of any length.

A picture becomes rows of tokens, each closed by a token that stays text; a clip one token a frame, between two of its own where the
text has neither of them there.
"""

import numpy as np
import torch
from transformers import BatchFeature, ProcessorMixin


class Pictures:
    """Cuts a picture into patches after making its sides multiples of one."""

    def __init__(self, patch_size, longest_side):
        self.patch_size = patch_size
        self.longest_side = longest_side

    def __call__(self, picture):
        width, height = picture.size
        scale = min(1.0, self.longest_side / max(width, height))
        columns = max(1, round(width * scale / self.patch_size))
        rows = max(1, round(height * scale / self.patch_size))
        side = self.patch_size
        pixels = np.asarray(picture.convert("RGB").resize((columns * side, rows * side)), dtype=np.float32) / 127.5 - 1
        patches = pixels.reshape(rows, side, columns, side, 3).transpose(0, 2, 1, 3, 4).reshape(rows * columns, -1)
        return torch.from_numpy(patches.copy()), (rows, columns)


class Clips:
    """Cuts a clip into frames; what is left over at its end is dropped."""

    sampling_rate = 8000

    def __init__(self, frame_size):
        self.frame_size = frame_size

    def __call__(self, clip):
        samples = np.asarray(clip, dtype=np.float32)
        count = max(1, len(samples) // self.frame_size // 8)
        padded = np.zeros(count * 8 * self.frame_size, dtype=np.float32)
        padded[: min(len(samples), len(padded))] = samples[: len(padded)]
        # Eight frames are heard as one.
        return torch.from_numpy(padded.reshape(count, 8, self.frame_size).mean(axis=1))


class MadeUpProcessor(ProcessorMixin):
    def __init__(self, tokenizer=None, patch_size=16, longest_side=96, frame_size=200, chat_template=None, **kwargs):
        super().__init__(tokenizer, chat_template=chat_template)
        self.image_processor = Pictures(patch_size, longest_side)
        self.feature_extractor = Clips(frame_size)
        self.image_token, self.row_token = "<picture>", "<row>"
        self.audio_token, self.start_token, self.end_token = "<sound>", "<hear>", "</hear>"

    @classmethod
    def get_attributes(cls):
        return ["tokenizer"]

    def __call__(self, text=None, images=None, audio=None, return_tensors=None, **kwargs):
        texts = [text] if isinstance(text, str) else list(text)
        data = {}
        if images is not None:
            cut = [self.image_processor(picture) for picture in _flat(images)]
            data["patches"] = torch.cat([patches for patches, _ in cut])
            data["patch_grid"] = torch.tensor([grid for _, grid in cut])
            expansions = [(self.image_token * columns + self.row_token) * rows for _, (rows, columns) in cut]
            texts = _expand(texts, self.image_token, expansions)
        if audio is not None:
            heard = [self.feature_extractor(clip) for clip in _flat(audio)]
            data["frames"] = torch.cat(heard)
            data["frame_counts"] = torch.tensor([len(frames) for frames in heard])
            expansions = [self.audio_token * len(frames) for frames in heard]
            texts = _expand(texts, self.audio_token, expansions, self.start_token, self.end_token)
        tokens = self.tokenizer(texts, return_tensors=return_tensors)
        return BatchFeature({**tokens, **data})


def _flat(items):
    return [one for item in items for one in _flat(item)] if isinstance(items, (list, tuple)) else [items]


def _expand(texts, placeholder, expansions, start="", end=""):
    """Each placeholder's expansion in its place, from left to right over all texts, between `start` and `end` where the text
    has neither there."""
    left = iter(expansions)
    expanded = []
    for text in texts:
        before, *others = text.split(placeholder)
        parts = [before]
        for behind in others:
            there = before.endswith(start) or behind.startswith(end)
            parts += [next(left) if there else start + next(left) + end, behind]
            before = behind
        expanded.append("".join(parts))
    return expanded
