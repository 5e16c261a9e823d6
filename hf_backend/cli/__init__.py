"""The `hf-backend` command: `doctor` and `demo`. Not for anything that runs while a model is served."""
