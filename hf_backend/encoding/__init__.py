"""Running a model's encoder on whatever items the engine hands it in a step.

`items` takes vLLM's batched arguments apart again, `buckets` groups and joins them without padding, `features` calls the
HF model and reads what it returns, `encode` does all that and splits the result exactly. Not for the text model.
"""
