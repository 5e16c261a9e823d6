"""Rows of items that are woven into one another come to their own places, whatever order vLLM has them in."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from hf_backend.language.woven import in_order_of_places

TEXT, VIDEO, AUDIO, IMAGE = 1, 7, 8, 9
IDS = {"video": torch.tensor([VIDEO]), "audio": torch.tensor([AUDIO]), "image": torch.tensor([IMAGE])}

runs = st.lists(st.tuples(st.sampled_from((TEXT, VIDEO, AUDIO, IMAGE)), st.integers(1, 4)), min_size=1, max_size=12)


def tagged(rows: torch.Tensor, modality: str) -> torch.Tensor:
    rows.modality = modality  # type: ignore[attr-defined]
    return rows


@given(runs=runs, cut=st.integers(0, 5), order=st.permutations(["video", "audio", "image"]))
def test_c6_every_row_comes_to_a_place_of_its_modality_in_order(
    runs: list[tuple[int, int]], cut: int, order: list[str]
) -> None:
    """A row holds the position it belongs to; a modality's items follow one another, the modalities in any order."""
    ids = torch.tensor([token for token, times in runs for _ in range(times)])
    is_multimodal = ids != TEXT
    items = []
    for modality in order:
        places = torch.isin(ids, IDS[modality]).nonzero().float()
        items += [tagged(part, modality) for part in (places[:cut], places[cut:]) if len(part)]
    if not items:
        return
    rows = in_order_of_places(items, torch.cat(items), ids, is_multimodal, IDS)
    assert torch.equal(rows, is_multimodal.nonzero().float())


def test_rows_of_unknown_modality_stay_as_they_are() -> None:
    items = [torch.tensor([[2.0]]), torch.tensor([[1.0]])]
    ids = torch.tensor([VIDEO, AUDIO])
    assert torch.equal(
        in_order_of_places(items, torch.cat(items), ids, torch.tensor([True, True]), IDS), torch.cat(items)
    )
