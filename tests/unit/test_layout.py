"""How fields join is found from contents and sizes, never from names."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hf_backend.probe.layout import layout_of
from hf_backend.records import FieldLayout, Joining

pytestmark = pytest.mark.processing

CONCATENATED, CONSTANT = Joining.CONCATENATED, Joining.CONSTANT


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 3), st.integers(1, 4))
def test_the_dimension_in_which_sizes_add_up_is_the_joining_one(a: int, b: int, dim: int, ndim_more: int) -> None:
    """Also where both items have the same size, and wherever the dimension lies (Idefics3: 1, MiniCPM-V 4.6: 3)."""
    shape = [7] * (dim + ndim_more)
    one = torch.randn([*shape[:dim], a, *shape[dim + 1 :]])
    two = torch.randn([*shape[:dim], b, *shape[dim + 1 :]])
    layout = layout_of(one, two, torch.cat([one, two], dim))
    assert layout == FieldLayout(CONCATENATED, dim, exact=True)


def test_padding_to_the_largest_is_seen_and_not_taken_for_composition() -> None:
    """Pixtral: [1, 3, height, width] each, padded to the largest of both."""
    one, two = torch.ones(1, 3, 4, 6), torch.ones(1, 3, 8, 2)
    both = torch.zeros(2, 3, 8, 6)
    both[0, :, :4, :], both[1, :, :, :2] = one, two
    assert layout_of(one, two, both) == FieldLayout(CONCATENATED, 0, exact=False)


def test_contents_decide_where_two_dimensions_add_up() -> None:
    """[1, 2] and [1, 2] joined along 1 give [1, 4]; a second candidate must not be taken for it."""
    one, two = torch.tensor([[1, 2], [3, 4]]), torch.tensor([[5, 6], [7, 8]])
    assert layout_of(one, two, torch.cat([one, two], 1)) == FieldLayout(CONCATENATED, 1, exact=True)
    assert layout_of(one, two, torch.cat([one, two], 0)) == FieldLayout(CONCATENATED, 0, exact=True)


def test_unpadded_items_come_as_a_list() -> None:
    one, two = torch.randn(1, 3, 4, 6), torch.randn(1, 3, 8, 2)
    assert layout_of(one, two, [one[0], two[0]]) == FieldLayout(CONCATENATED, 0, exact=True)
    assert layout_of([one[0]], [two[0]], [one[0], two[0]]) == FieldLayout(CONCATENATED, 0, exact=True)


def test_a_value_that_never_changes_is_constant() -> None:
    value = torch.tensor(3)
    assert layout_of(value, value.clone(), value.clone()) == FieldLayout(CONSTANT)


@pytest.mark.parametrize(
    "both",
    [torch.zeros(5, 3), torch.zeros(2, 2), torch.zeros(4, 2, 1), [torch.zeros(2)]],
    ids=["rows missing", "columns cut", "another number of dimensions", "a list of one"],
)
def test_what_fits_no_rule_is_refused(both: torch.Tensor | list[torch.Tensor]) -> None:
    assert layout_of(torch.ones(2, 3), torch.ones(2, 3) * 2, both) is None
