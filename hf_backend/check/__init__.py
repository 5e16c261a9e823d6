"""Seeing before serving: what `hf-backend check` measures of one model, without its weights.

`folder` finds a checkpoint's small files, `shrink` and `tiny` make a tiny random model of the same kind, `processor` measures
what this package makes of its processor, `reference` and `engine` run it in transformers and in vLLM, `compare` holds the one
to the other, `blame` says whose fault an error is, `verdict` puts it all in words. Nothing here runs while a model is served.
"""
