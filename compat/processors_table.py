"""`python -m compat.processors_table`: what was measured of every processor of the zoo, as a Markdown table on stdout.

A line a family and modality: the placeholder, the strategy that met the oracle, the calls and seconds that the measurement took,
the calls that three new items take, and what is out of the ordinary. `docs/processors.md` is its output. No engine.
"""

import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from compat.processors import processor_of
from compat.zoo.registry import families
from hf_backend import modalities
from hf_backend.probe.parts import sampling_rate
from hf_backend.probe.samples import samples
from hf_backend.records import ModalityProfile

HEAD = """# Every processor of the zoo

What was measured of each at start-up, by `python -m compat.processors_table` (vLLM {vllm}, transformers {transformers}).
*Probe*: calls of the HF processor and seconds. *Three new items*: calls for three items of a prompt, two of them of one size,
that aren't in the cache; in the cache they take none.

| family | modality | placeholder | strategy | probe | three new items | notes |
|---|---|---|---|---|---|---|"""


def notes(profile: ModalityProfile) -> list[str]:
    """What is out of the ordinary."""
    return [
        note
        for present, note in (
            (profile.splicing.merges_text, "text at the expansion's edges merges with the prompt's"),
            (profile.splicing.edit is not None, "writes tokens of its own into the prompt"),
            (profile.splicing.touching is not None, "joins what touches an expansion"),
            (profile.headed, "puts the item in front of the prompt itself"),
            (profile.wraps is not None, "leaves out the tokens around an item where the prompt has them"),
            (profile.nested, "takes a list of items a prompt"),
            (not profile.several, "takes one item a prompt"),
            (any(not layout.exact for layout in profile.layouts.values()), "pads items of a prompt to the largest"),
        )
        if present
    ]


def calls_for_three(family: str, modality: str) -> str:
    """Calls of the HF processor for A, B and C of one request, C another item of the size of A; or why there is no such request."""
    from hf_backend.probe import calls

    processor = processor_of(family, cached=True)
    small, large = samples(modality, sampling_rate(processor.processor.info.get_hf_processor()))
    third = _changed(small)
    profile = processor.processor.info.modality_profile(modality)
    if profile.headed:
        return "one a prompt"
    placeholder = profile.placeholder
    text = " and ".join([placeholder] * 3) + " ?"
    before = calls.count()
    processor(text, {modality: [small, large, third]})
    return str(calls.count() - before)


def _changed(item: object) -> object:
    """An item of the same size and other contents."""
    if isinstance(item, tuple):
        return (255 - item[0], *item[1:])
    if hasattr(item, "point"):
        return item.point(lambda value: 255 - value)
    return -item  # type: ignore[operator]


def _short(reason: str) -> str:
    """What was found, in a cell."""
    text = " ".join(reason.split())
    return text[max(text.find("found "), 0) :][:160].replace("|", "\\|") + " …"


def main() -> int:
    """Print the table; 1 if a family that has a processor can't be measured at all."""
    from hf_backend.versions import transformers_version, vllm_version

    print(HEAD.format(vllm=vllm_version().base_version, transformers=transformers_version()))  # type: ignore[union-attr]
    for family in families():
        try:
            profile = processor_of(family, cached=False).processor.info.profile
        except Exception as error:  # noqa: BLE001 - said in the table, whatever it is
            print(f"| {family} | | | refused at start | | | {_short(str(error))} |")
            continue
        for row in modalities.MODALITIES:
            if (reason := profile.refused.get(row.name)) is not None:
                print(f"| {family} | {row.name} | | refused | | | {_short(reason)} |")
            if (found := profile.modalities.get(row.name)) is None:
                continue
            cells = (
                family,
                row.name,
                f"`{found.placeholder}`".replace("|", "\\|"),
                found.strategy,
                f"{found.probe_calls}, {found.probe_seconds:.2f} s",
                calls_for_three(family, row.name),
                "; ".join(notes(found)),
            )
            print(f"| {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
