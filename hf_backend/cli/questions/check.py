"""One step of `hf-backend check` in a process of its own.

Takes ANSWER_FILE, the step's name and its arguments as JSON; gives what the step gives, or {"error", "whose", "do"} where it
raised. A process each: transformers has to answer before vLLM touches its classes, and a crash is an answer, too.
"""

import json
import sys
import traceback
from pathlib import Path
from typing import Any


def step(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Run one step."""
    from hf_backend.check import cases

    requests = [
        cases.Request(one["name"], one["text"], tuple((modality, index) for modality, index in one["items"]))
        for one in options.pop("requests", ())
    ]
    if name == "folder":
        from hf_backend.check import folder

        return {"folder": str(folder.find(options["model"], weights=options["weights"]))}
    if name == "processor":
        from hf_backend.check import processor

        return processor.profile(options["path"], trust_remote_code=options["trust_remote_code"], thorough=True)
    if name == "reference":
        from hf_backend.check import reference

        return reference.run(options.pop("source"), options.pop("target"), requests, **options)
    from hf_backend.check import engine

    return engine.run(options.pop("folder"), options.pop("modalities"), requests, **options)


def main(answer: Path, name: str, options: dict[str, Any]) -> None:
    """Write what the step found, or what stopped it, into `answer`."""
    try:
        found = step(name, options)
    except Exception as error:
        traceback.print_exc()
        from hf_backend.check.blame import blame

        judged = blame(error)
        found = {
            "error": judged.found,
            "whose": judged.whose,
            "do": judged.do,
            "traceback": traceback.format_exc()[-4000:],
        }
    answer.write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))
