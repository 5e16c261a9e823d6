"""Whether an engine answers as transformers does: the same requests to both, tokens and log-probabilities compared.

Takes families of `compat.zoo` and peers (our backend, vLLM's own generic backend, vLLM's native classes); gives a table
family x case. Not for measuring speed.
"""
