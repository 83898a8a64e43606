"""Words as vectors: their own and those of their spelling."""

import torch

from foveate.nn import WordEmbedding


def test_the_sum_of_the_words_vector_and_those_of_its_spelling() -> None:
    torch.manual_seed(3)
    embedding = WordEmbedding(words=11, spellings=13, width=5)
    words, spellings = torch.randint(11, (2, 3)), torch.randint(13, (2, 3, 7))
    found = embedding(words, spellings)
    assert found.shape == (2, 3, 5)
    for row in range(2):
        for place in range(3):
            features = sum(embedding.spelling.weight[number] for number in spellings[row, place].tolist())
            expected = embedding.word.weight[words[row, place]] + features
            torch.testing.assert_close(found[row, place], expected)


def test_gradients_reach_what_was_read_and_nothing_else() -> None:
    embedding = WordEmbedding(words=5, spellings=7, width=3)
    embedding(torch.tensor([[2, 2]]), torch.tensor([[[1, 4], [4, 6]]])).sum().backward()
    assert embedding.word.weight.grad[:, 0].tolist() == [0, 0, 2, 0, 0]
    assert embedding.spelling.weight.grad[:, 0].tolist() == [0, 1, 0, 0, 2, 0, 1]
