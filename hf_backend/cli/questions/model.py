"""What this package measures of one model's processor, as vLLM would at start-up.

Takes ANSWER_FILE and a model path; gives the profile as JSON (placeholder, strategy, layouts, embed ids, cost, largest
item), or {"error": text}. Reads the config and the processor, not the weights.
"""

import json
import sys
from pathlib import Path


def main(answer: Path, path: str) -> None:
    """Write the profile, or what stopped it, into `answer`."""
    try:
        from hf_backend.check.processor import profile

        found = profile(path)
    except Exception as error:  # whatever vLLM, transformers or the probe object to is the answer
        found = {"error": f"{type(error).__name__}: {error}"}
    answer.write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
