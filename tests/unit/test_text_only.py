"""What a processor puts behind a text without items reaches the prompt, once, and only there."""

import pytest
import transformers
from vllm.renderers import TokenizeParams

from compat.processors import processor_of
from compat.zoo.store import checkpoint
from hf_backend.processing.text_only import TailParams, read_tail, with_tail

pytestmark = [pytest.mark.language, pytest.mark.processing]


@pytest.mark.parametrize(("family", "tail"), [("chameleon", ["<reserved08706>"]), ("qwen2_vl", []), ("paligemma", [])])
def test_a_tail_is_read_from_the_processor(family: str, tail: list[str]) -> None:
    processor = transformers.AutoProcessor.from_pretrained(checkpoint(family))
    assert processor.tokenizer.convert_ids_to_tokens(read_tail(processor, processor.tokenizer)) == tail


def test_ids_of_a_text_are_the_processors_own() -> None:
    processor = transformers.AutoProcessor.from_pretrained(checkpoint("chameleon"))
    params = processor_of("chameleon", cached=False).processor.info.default_tok_params
    for text in ("no picture at all", "a"):
        ids = processor.tokenizer(text)["input_ids"]
        made = params.apply_post_tokenization(processor.tokenizer, {"prompt_token_ids": ids})["prompt_token_ids"]
        assert made == processor(text=[text], return_tensors="pt")["input_ids"][0].tolist()


def test_prompts_with_items_and_embeddings_stay() -> None:
    params = with_tail(TokenizeParams(max_total_tokens=20), (7, 8))
    with_items = {"prompt_token_ids": [1, 2], "multi_modal_data": {"image": [object()]}}
    assert params.apply_post_tokenization(None, with_items)["prompt_token_ids"] == [1, 2]
    assert params.apply_post_tokenization(None, {"prompt_token_ids": [1, 2]})["prompt_token_ids"] == [1, 2, 7, 8]


def test_a_request_s_own_parameters_keep_the_tail() -> None:
    params = with_tail(TokenizeParams(max_total_tokens=20), (7,)).with_kwargs(add_special_tokens=False)
    assert isinstance(params, TailParams)
    assert params.tail == (7,)
    assert not params.add_special_tokens


def test_the_tail_counts_to_the_length() -> None:
    with pytest.raises(Exception, match="maximum context length is 20"):
        with_tail(TokenizeParams(max_total_tokens=20), (7,)).apply_post_tokenization(
            None, {"prompt_token_ids": [1] * 20}
        )


def test_no_tail_leaves_vllms_own() -> None:
    assert type(with_tail(TokenizeParams(max_total_tokens=20), ())) is TokenizeParams
