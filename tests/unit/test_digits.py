"""The demo's pictures: split, words, sizes, messages, and what is printed of them."""

import base64
import io
from collections import Counter

import pytest
from PIL import Image

pytest.importorskip("sklearn", reason="the demo's pictures come with scikit-learn")

from hf_backend.demo import digits, report


def test_split_is_disjoint_complete_and_stratified() -> None:
    split = digits.split()
    assert (len(split.train), len(split.held_out)) == (1437, 360)
    assert not set(split.train) & set(split.held_out)
    assert set(split.train) | set(split.held_out) == set(range(1797))
    _, labels = digits.bundled()
    held_out, all_of_them = Counter(labels[list(split.held_out)].tolist()), Counter(labels.tolist())
    for digit in range(10):
        assert held_out[digit] == pytest.approx(all_of_them[digit] * 360 / 1797, abs=1)


def test_no_two_pictures_on_both_sides_are_the_same() -> None:
    brightness, _ = digits.bundled()
    split = digits.split()
    train = {brightness[number].tobytes() for number in split.train}
    assert not [number for number in split.held_out if brightness[number].tobytes() in train]


@pytest.mark.parametrize(
    ("numbers", "expected"), [((0,), "zero"), ((3, 7), "three seven"), ((9, 9, 1), "nine nine one"), ((), "")]
)
def test_words(numbers: tuple[int, ...], expected: str) -> None:
    assert digits.words(numbers) == expected


def test_the_truth_is_the_bundled_label() -> None:
    _, labels = digits.bundled()
    for reading in [*digits.singles(20), *digits.sequences(20)]:
        assert reading.truth == " ".join(digits.WORDS[labels[picture.number]] for picture in reading.pictures)
        assert reading.name == "+".join(str(picture.number) for picture in reading.pictures)


def test_readings_are_held_out_pictures_and_the_same_every_time() -> None:
    held_out = set(digits.split().held_out)
    assert {reading.pictures[0].number for reading in digits.singles()} == held_out
    for length in (1, 2, 3):
        drawn = digits.sequences(50, length)
        assert {len(reading.pictures) for reading in drawn} == {length}
        assert {picture.number for reading in drawn for picture in reading.pictures} <= held_out
        assert [reading.name for reading in drawn] == [reading.name for reading in digits.sequences(50, length)]


def test_pictures_have_several_sizes_and_show_the_digit() -> None:
    sizes = {(image.height, image.width) for reading in digits.singles() for image in reading.images}
    assert sizes == set(digits.CANVASES)
    for reading in digits.singles(30):
        (image,) = reading.images
        assert image.mode == "RGB"
        low, high = image.convert("L").getextrema()
        assert low == 0
        assert high > 150


@pytest.mark.parametrize("count", [-1, 361])
def test_more_singles_than_there_are_is_an_error(count: int) -> None:
    with pytest.raises(ValueError, match=rf"found count {count}; expected 0 to 360"):
        digits.singles(count)


@pytest.mark.parametrize("length", [0, 4])
def test_sequences_of_a_length_never_trained_are_an_error(length: int) -> None:
    with pytest.raises(ValueError, match=rf"found length {length}; expected 1 to 3"):
        digits.sequences(1, length)


def test_messages_hold_the_pictures_in_order_and_bit_for_bit() -> None:
    reading = digits.sequences(1)[0]
    (turn,) = digits.openai_messages(reading.images)
    assert turn["role"] == "user"
    *parts, text = turn["content"]
    assert text == {"type": "text", "text": "read the digits"}
    for part, image in zip(parts, reading.images, strict=True):
        kind, _, data = part["image_url"]["url"].partition(",")
        assert kind == "data:image/png;base64"
        assert Image.open(io.BytesIO(base64.b64decode(data))).tobytes() == image.tobytes()
    (turn,) = digits.hf_messages(reading.images)
    assert [part.get("image") for part in turn["content"]] == [*reading.images, None]


def test_report_counts_and_names_what_differs() -> None:
    readings = digits.singles(3)
    truths = [reading.truth for reading in readings]
    served = [truths[0], "wrong", truths[2]]
    result = report.Result("one picture", readings, served, truths)
    assert result.differing == [1]
    assert result.as_dict()["server_right"] == 2
    assert result.as_dict()["hf_generate_right"] == 3
    (line,) = report.differences([result])
    assert f"pictures {readings[1].name}:" in line
    assert "2/3" in report.table([result])[-1]


def test_characters_show_the_picture() -> None:
    half = Image.new("RGB", (32, 32))
    half.paste((255, 255, 255), (16, 0, 32, 32))
    assert report.characters(half) == [" " * 8 + "@" * 8] * 8
    wide = digits.Reading((digits.Picture(0, 0, half), digits.Picture(1, 1, half.resize((48, 32)))))
    *rows, last, empty = report.shown(wide, "zero one")
    assert {len(row) for row in rows} == {2 + 1 + 16 + 1 + 24 + 1}
    assert "right" in last
    assert empty == ""


def test_contact_sheet_is_a_png_that_marks_wrong_answers_red(tmp_path) -> None:  # type: ignore[no-untyped-def]
    readings = digits.singles(2)
    truths = [reading.truth for reading in readings]

    def red_pixels(served: list[str]) -> int:
        report.save_sheet([report.Result("one picture", readings, served, truths)], tmp_path / "sheet.png")
        with Image.open(tmp_path / "sheet.png") as sheet:
            return sum(count for count, color in sheet.getcolors(1 << 20) if color[0] > 200 and max(color[1:]) < 60)

    assert red_pixels(truths) == 0
    assert red_pixels(["wrong", truths[1]]) > 20
