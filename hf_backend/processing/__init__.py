"""Processing on vLLM's base classes: what vLLM asks about a model's inputs, answered from the processor's profile.

`info` answers limits and sizes, `dummy` builds profiling inputs, `refusals` checks a request before anything else sees
it, `processor` turns items into fields and prompt updates. Not for running the model (`hf_backend.encoding`).
"""
