"""Reading with Hugging Face's own `generate`: the answers a server must give too.

Takes a checkpoint folder and readings; gives answers as text. Run it before an engine is made in the same process:
vLLM decorates Hugging Face's classes. Not for reading through a server (`client`).
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from hf_backend.demo import digits

CHECKPOINT = Path(__file__).with_name("checkpoint")
"""The trained checkpoint that comes with the package."""

MOST_TOKENS = 8
"""Three words and the end of the turn take four."""


class Reference:
    """A checkpoint in float32 on the CPU, read greedily one prompt at a time, as if nobody else were there."""

    def __init__(self, checkpoint: Path = CHECKPOINT, model: Any = None, processor: Any = None) -> None:
        """Load `checkpoint`; or take a model and a processor that are in memory already."""
        import torch
        import transformers

        self._processor = processor or transformers.AutoProcessor.from_pretrained(checkpoint)
        self._model = model or transformers.AutoModelForImageTextToText.from_pretrained(checkpoint, dtype=torch.float32)
        self._model.eval()

    def read(self, reading: digits.Reading) -> str:
        """The answer's text without special tokens."""
        import torch

        inputs = self._processor.apply_chat_template(
            digits.hf_messages(reading.images),
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            add_generation_prompt=True,
        )
        with torch.inference_mode():
            ids = self._model.generate(**inputs, max_new_tokens=MOST_TOKENS, do_sample=False)
        answer = ids[0, inputs["input_ids"].shape[1] :]
        return str(self._processor.tokenizer.decode(answer, skip_special_tokens=True)).strip()

    def read_all(
        self, readings: Sequence[digits.Reading], progress: Callable[[int, int], None] | None = None
    ) -> list[str]:
        """Answers in the order of `readings`; `progress` is told how many are done, of how many."""
        answers = []
        for done, reading in enumerate(readings, 1):
            answers.append(self.read(reading))
            if progress:
                progress(done, len(readings))
        return answers


def num_right(readings: Iterable[digits.Reading], answers: Iterable[str]) -> int:
    """How many answers equal the truth."""
    return sum(reading.truth == answer for reading, answer in zip(readings, answers, strict=True))
