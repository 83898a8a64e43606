"""Tokenizers of each kind of model, two of whose tokens exchange their numbers."""

from collections.abc import Callable

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from foveate.data.tokens.swapped_ids import with_swapped_ids

WORDS = ["<unk>", "<s>", "</s>", "a", "b", "c", "ab"]
IDS = {word: number for number, word in enumerate(WORDS)}

KINDS: dict[str, Callable[[], models.Model]] = {
    "words": lambda: models.WordLevel(IDS, unk_token="<unk>"),
    "pieces of words": lambda: models.WordPiece(IDS, unk_token="<unk>"),
    "merged": lambda: models.BPE(IDS, [("a", "b")], unk_token="<unk>"),
    "unigrams": lambda: models.Unigram([(word, -float(number)) for number, word in enumerate(WORDS)], unk_id=0),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", [6, 0])
def test_the_same_texts_with_other_numbers(kind: str, other: int) -> None:
    tokenizer = Tokenizer(KINDS[kind]())
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(["<s>", "</s>"])
    around = [("<s>", 1), ("</s>", 2)]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=around)
    swapped, texts = with_swapped_ids(tokenizer, 2, other), ["a b ab", "c </s> b", "zz", ""]
    numbers = {2: other, other: 2}
    for text in texts:
        before, after = tokenizer.encode(text), swapped.encode(text)
        assert after.ids == [numbers.get(number, number) for number in before.ids]
        assert after.tokens == before.tokens
        assert swapped.decode(after.ids) == tokenizer.decode(before.ids)


def test_the_pair_of_a_roberta() -> None:
    tokenizer = Tokenizer(models.WordLevel(IDS, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 1))
    assert with_swapped_ids(tokenizer, 2, 5).encode("a b", "a").ids == [1, 3, 4, 5, 5, 3, 5]
