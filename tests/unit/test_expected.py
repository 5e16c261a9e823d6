"""Every family of the zoo is either expected to be right or listed with what is missing."""

from pathlib import Path

from compat.expected import NOT_YET, RIGHT
from compat.zoo import families, spec


def test_every_family_is_accounted_for() -> None:
    right = {family for names in RIGHT.values() for family in names}
    assert not right & NOT_YET.keys()
    assert right | NOT_YET.keys() == set(families())


def test_a_family_is_right_in_modalities_it_has() -> None:
    for modality, names in RIGHT.items():
        assert all(modality in spec(family).placeholders for family in names)


def test_the_readme_names_the_families_that_are_right() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    for modality, called in (("image", "pictures"), ("video", "videos"), ("audio", "clips")):
        names = sorted(RIGHT[modality])
        assert f"| {called} ({len(names)}) | {', '.join(names)} |" in readme
