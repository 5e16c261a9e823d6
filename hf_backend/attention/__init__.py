"""Attention both ways inside items, as the HF model has it.

`rule` measures which tokens see which, `spans` cuts a step's rows for it, `cpu` is vLLM's CPU backend that takes such cuts,
`layers` puts it under the layers that need it, `settings` tells vLLM before a model exists, and keeps spans in one step. Active
only for models whose rule isn't plain causal; the others keep what vLLM gives them.
"""
