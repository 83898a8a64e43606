"""Tagged sentences as tensors: what is in a batch, and what is held out and left out."""

import torch

from foveate.contracts import IGNORE
from foveate.data.buckets import BucketedBatches
from foveate.data.text.lexicon import Lexicon, spelling
from foveate.data.text.tagged import Tagged, tagged_dataset
from foveate.forms.processor import Processor
from foveate.forms.tagged_words import TaggedWords, Tags
from foveate.special_tokens import LEARNED
from foveate.tasks import find_task

PAD, UNKNOWN = LEARNED.pad, LEARNED.unknown


def text(sentences: list[list[tuple[str, str]]], name: str = "two"):
    return tagged_dataset(name, [Tagged.of_pairs(line, pairs) for line, pairs in enumerate(sentences, 1)])


def test_a_batch_holds_numbers_spellings_and_labels() -> None:
    two = text([[("a", "X"), ("b", "Y"), ("a", "X")], [("b", "X")]])
    lexicon = Lexicon.learn(two)
    processor = Processor(TaggedWords(lexicon=lexicon), Tags(lexicon))
    (batch,) = BucketedBatches(processor.reads.buckets(two, processor), 6, seed=0).epoch(0)
    longer = int(batch.inputs["lengths"].argmax())
    a, b = 4, 5  # as often as each other, in the order of the text
    assert batch.inputs["lengths"].sort().values.tolist() == [1, 3]
    assert batch.inputs["tokens"][longer].tolist() == [a, b, a]
    assert batch.inputs["tokens"][1 - longer].tolist() == [b, PAD, PAD]
    assert batch.labels[longer].tolist() == [0, 1, 0]
    assert batch.labels[1 - longer].tolist() == [0, IGNORE, IGNORE]
    assert batch.inputs["spellings"][longer, 1].tolist() == spelling("b")
    assert batch.total_weight == 4
    assert batch.source in ("line 1, line 2 of two", "line 2, line 1 of two")


def test_inputs_alone() -> None:
    reads = TaggedWords(lexicon=Lexicon.learn(text([[("a", "X"), ("a", "X")]])))
    found, _ = reads.tensors([reads.prepare(words) for words in (("a",), ("b", "new"))])
    assert found["tokens"].tolist() == [[4, PAD], [UNKNOWN, UNKNOWN]]
    assert found["lengths"].tolist() == [1, 2]
    assert torch.equal(found["spellings"][1, 1], torch.tensor(spelling("new")))


def test_sentences_that_are_the_same_are_hold_out_groups() -> None:
    sentences = [[(f"word {number % 150}", "X")] for number in range(400)]
    rest, held = find_task("tag").hold_out(text(sentences))
    assert len(rest) + len(held) == 400
    assert held[0].words
    assert not {one.words for one in rest} & {one.words for one in held}
