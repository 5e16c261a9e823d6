"""The `hf-backend` command: `doctor`, `check` and `demo`. Not for anything that runs while a model is served."""
