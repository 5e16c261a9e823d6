"""Reading through a server: the official `openai` client, as a user would.

Takes a server's address and readings; gives answers as text. Not for starting the server (`server`).
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hf_backend.demo import digits
from hf_backend.demo.reference import MOST_TOKENS
from hf_backend.demo.server import MODEL_NAME

AT_ONCE = 8
"""Requests under way at one time, so that the server has batches of several prompts to keep apart."""

REQUEST_WITHIN = 60.0
"""Seconds."""


class Client:
    """Asks one server. Greedy, so that the same picture always gets the same answer. Use as a context manager, or close."""

    def __init__(self, url: str, model: str = MODEL_NAME) -> None:
        """`url`: the server's base address without a path."""
        import httpx
        import openai

        # trust_env off: a proxy of the environment must not stand between us and this machine.
        self.openai = openai.OpenAI(
            base_url=f"{url}/v1",
            api_key="none",
            max_retries=0,
            timeout=REQUEST_WITHIN,
            http_client=httpx.Client(trust_env=False, timeout=REQUEST_WITHIN),
        )
        self.model = model

    def close(self) -> None:
        """Close the connections."""
        self.openai.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def chat(self, messages: Sequence[Any], **options: Any) -> str:
        """The answer to a chat. Raises `openai.APIError`, an `openai.BadRequestError` when the server refuses."""
        answer = self.openai.chat.completions.create(
            model=self.model, messages=list(messages), temperature=0, max_tokens=MOST_TOKENS, **options
        )
        return (answer.choices[0].message.content or "").strip()

    def read(self, reading: digits.Reading) -> str:
        """The answer's text."""
        return self.chat(digits.openai_messages(reading.images))

    def read_all(
        self, readings: Sequence[digits.Reading], progress: Callable[[int, int], None] | None = None
    ) -> list[str]:
        """Answers in the order of `readings`, asked `AT_ONCE` at a time; `progress` is told how many are done, of how many."""
        answers = []
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for done, answer in enumerate(pool.map(self.read, readings), 1):
                answers.append(answer)
                if progress:
                    progress(done, len(readings))
        return answers
