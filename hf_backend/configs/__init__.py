"""Configs as the rest of vLLM can read them.

Takes a checkpoint's config as vLLM's own parser reads it; gives the config with what vLLM's readers look for. Every rule reads
the config itself and names no family. Not for what follows from the model's modules (`hf_backend.weights`).
"""
