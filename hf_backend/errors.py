"""The errors of this package, and the one form their messages take.

Takes the class at fault, what was found, what was expected and what to do next; gives exceptions whose text says all
four. Not for errors that vLLM or transformers raise themselves.
"""


class HFBackendError(Exception):
    """Base of every error this package raises on purpose."""

    def __init__(self, at_fault: str, *, found: str, expected: str, do: str) -> None:
        super().__init__(f"{at_fault}: found {found}; expected {expected}. {do}")
        self.at_fault = at_fault
        self.found = found
        self.expected = expected
        self.do = do


class UnsupportedModelError(HFBackendError, ValueError):
    """The model can't be served; raised while vLLM starts, never by a request."""


class RequestError(HFBackendError, ValueError):
    """A request can't be served; vLLM's API server answers it with a 4xx because it is a `ValueError`.

    Raised before the processor cache or the engine saw anything of the request (C11).
    """


class EncoderOutputError(HFBackendError, RuntimeError):
    """An encoder gave another number of embeddings than the prompt has places for them."""
