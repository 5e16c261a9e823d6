"""vLLM's replacement of layers, kept to what it can replace.

Takes the HF model before vLLM replaces its layers; gives which modules have to stay as they are. Not for the replacement, which
is vLLM's.
"""
