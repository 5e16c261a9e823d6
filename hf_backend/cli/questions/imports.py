"""Which of the named libraries import, each tried in turn in this one process.

Takes ANSWER_FILE and names; gives {name: {"state": "imports" | "absent" | "fails", "error": text}}. Not for vLLM, whose
import takes long and is another question.
"""

import importlib
import importlib.util
import json
import sys
from pathlib import Path


def state_of(name: str) -> dict[str, str]:
    """Whether `name` is there and imports; an error is cut to its last line."""
    if importlib.util.find_spec(name) is None:
        return {"state": "absent", "error": ""}
    try:
        importlib.import_module(name)
    except Exception as error:  # a broken extension raises OSError, RuntimeError, ImportError, ...
        lines = str(error).strip().splitlines() or [""]
        return {"state": "fails", "error": f"{type(error).__name__}: {lines[-1]}"}
    return {"state": "imports", "error": ""}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps({name: state_of(name) for name in sys.argv[2:]}))
