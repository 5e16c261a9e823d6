"""The demo's server over HTTP: it reads as HF does (C12), refuses bad input with a clear text, and goes on (C7, C11)."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sklearn", reason="the demo's pictures come with scikit-learn")
pytest.importorskip("openai", reason="the server is asked through the openai client")

import openai

from hf_backend.demo import client, digits, reference, server

pytestmark = [pytest.mark.serve, pytest.mark.timeout(600)]

SINGLES, SEQUENCES = digits.singles(40), digits.sequences(20) + digits.sequences(10, 2)
ONE_PLACEHOLDER = (
    "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>read the digits<|im_end|>\n<|im_start|>assistant\n"
)
NO_PLACEHOLDER = "<|im_start|>user\nread the digits<|im_end|>\n<|im_start|>assistant\n"


@pytest.fixture(scope="module")
def expected() -> dict[str, str]:
    """Answers of HF `generate` by the names of the pictures."""
    hf = reference.Reference()
    return {reading.name: hf.read(reading) for reading in SINGLES + SEQUENCES}


@pytest.fixture(scope="module")
def serving(expected: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[server.Server]:
    """A real `vllm serve` of the committed checkpoint, one for all tests of this file. HF reads before it starts."""
    log = tmp_path_factory.mktemp("serve") / "server.log"
    # The flag lets a request bring its own chat template: that is how the tests send too few placeholders.
    running = server.Server(reference.CHECKPOINT, log=log, extra=["--trust-request-chat-template"])
    with running:
        yield running


@pytest.fixture
def asked(serving: server.Server, expected: dict[str, str]) -> Iterator[client.Client]:
    """A client; whatever a test sends, the server must answer a good request rightly after it (C11)."""
    with client.Client(serving.url) as one:
        yield one
        good = SEQUENCES[0]
        assert one.read(good) == expected[good.name] == good.truth


def refusal(asked: client.Client, messages: list[dict[str, Any]], **options: Any) -> str:
    """The text of the 4xx with which the server refuses."""
    with pytest.raises(openai.APIStatusError) as error:
        asked.chat(messages, **options)
    assert 400 <= error.value.status_code < 500, error.value
    return str(error.value)


def with_url(url: str) -> list[dict[str, Any]]:
    messages = digits.openai_messages(SINGLES[0].images)
    messages[0]["content"][0]["image_url"]["url"] = url
    return messages


@pytest.mark.parametrize("readings", [SINGLES, SEQUENCES], ids=["one picture", "several pictures"])
def test_answers_are_those_of_hf_generate_and_right(
    asked: client.Client, expected: dict[str, str], readings: list[digits.Reading]
) -> None:
    answers = asked.read_all(readings)
    assert {r.name: a for r, a in zip(readings, answers, strict=True)} == {r.name: expected[r.name] for r in readings}
    assert reference.num_right(readings, answers) >= 0.95 * len(readings)


def test_the_same_pictures_in_another_order_are_read_in_that_order(asked: client.Client) -> None:
    """All six orders of three pictures that are read rightly: an image in the wrong place shows at once."""
    a, b, c = SEQUENCES[0].pictures
    assert len({a.digit, b.digit, c.digit}) == 3
    orders = [digits.Reading(order) for order in [(a, b, c), (a, c, b), (b, a, c), (b, c, a), (c, a, b), (c, b, a)]]
    assert asked.read_all(orders) == [reading.truth for reading in orders]


def test_more_images_than_the_limit(asked: client.Client) -> None:
    images = SEQUENCES[0].images + SINGLES[0].images
    text = refusal(asked, digits.openai_messages(images))
    assert f"At most {server.MOST_PICTURES} image" in text


@pytest.mark.parametrize("cut", ["not a picture", "half a picture", "nothing"])
def test_an_image_that_cannot_be_decoded(asked: client.Client, cut: str) -> None:
    whole = base64.b64decode(digits.data_url(SINGLES[0].images[0]).partition(",")[2])
    data = {"not a picture": b"GIF90 or so", "half a picture": whole[: len(whole) // 2], "nothing": b""}[cut]
    text = refusal(asked, with_url("data:image/png;base64," + base64.b64encode(data).decode()))
    assert re.search("image", text, re.IGNORECASE)


@pytest.mark.parametrize(
    ("template", "reading", "found", "wanted"),
    [
        (NO_PLACEHOLDER, SINGLES[0], 0, 1),
        (ONE_PLACEHOLDER, SEQUENCES[0], 1, 3),
        (ONE_PLACEHOLDER.replace("<|image_pad|>", "<|image_pad|>" * 2), SINGLES[0], 2, 1),
    ],
    ids=["none for one", "one for three", "two for one"],
)
def test_another_number_of_placeholders_than_images(
    asked: client.Client, template: str, reading: digits.Reading, found: int, wanted: int
) -> None:
    text = refusal(asked, digits.openai_messages(reading.images), extra_body={"chat_template": template})
    assert f"found {found} image placeholder(s) '<|image_pad|>' in the prompt for {wanted} image item(s)" in text
    assert f"expected exactly {wanted}" in text


def test_a_literal_placeholder_beside_an_image_is_one_too_many(asked: client.Client) -> None:
    messages = digits.openai_messages(SINGLES[0].images, "read <|image_pad|> the digits")
    text = refusal(asked, messages)
    assert "found 2 image placeholder(s)" in text
    assert "expected exactly 1" in text


def test_a_literal_placeholder_without_any_image_is_answered(asked: client.Client) -> None:
    answer = asked.openai.chat.completions.create(
        model=asked.model, messages=digits.openai_messages([], "read <|image_pad|> the digits"), max_tokens=4
    )
    assert answer.choices[0].finish_reason in ("stop", "length")


@pytest.mark.parametrize("process", ["APIServer", "EngineCore|Worker"])
def test_the_plug_in_says_in_each_process_that_it_serves(serving: server.Server, process: str) -> None:
    line = rf"\((?:{process}) pid=\d+\) INFO .*hf_backend \S+ serves --model-impl transformers .*by offsets"
    assert re.search(line, serving.log_text()), serving.log_text()[-4000:]


def test_no_fault_left_a_trace_in_the_log(serving: server.Server, asked: client.Client) -> None:
    refusal(asked, digits.openai_messages(SINGLES[0].images, "read <|image_pad|> the digits"))
    assert "EngineDeadError" not in serving.log_text()


def test_a_server_that_cannot_start_shows_the_end_of_its_log(tmp_path: Path) -> None:
    broken = server.Server(tmp_path / "no-checkpoint", log=tmp_path / "server.log", say=lambda line: None)
    with pytest.raises(server.ServerError, match=r"found exit status [1-9]\d* after") as error:
        broken.start()
    assert "no-checkpoint" in str(error.value).partition("The end of its log")[2]
    assert not broken.healthy()
