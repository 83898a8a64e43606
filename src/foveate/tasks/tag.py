"""Tagging: each word of a sentence gets a tag, such as its part of speech."""

from foveate.data.text.layouts import TAGGED
from foveate.data.text.tagged import tagged_text
from foveate.forms.tagged_words import TaggedWords, Tags
from foveate.models.text import CAUSAL
from foveate.tasks.start.parts import LanguageModelBody
from foveate.tasks.task import Examples, Task
from foveate.training import CrossEntropy, Training

TASK = Task(
    name="tag",
    about="Train a tagger, which gives each word of a sentence a tag, such as its part of speech.\n\n    "
    "A BERT reads a word by its pieces, and the first one gives the tag.",
    families=("rnn-encoder", "transformer-encoder", "bert", "deberta", *CAUSAL, "xlnet"),
    head="tokens",
    reads=TaggedWords(),
    writes=Tags(),
    objective=CrossEntropy(),
    read=lambda paths, recipe: tagged_text(paths),
    files="FILE",
    lists=(".tsv", ".tsv.gz", ".conll", ".conllu"),
    layout="Your own text: a file with word<TAB>tag on each line and an empty line between sentences; plain or .gz.",
    layouts=TAGGED,
    examples=Examples(batch=2048, validation_examples=1000),
    model="birnn-transformer-tagger",
    training=Training(usual_epochs=5, learning_rate=3e-3, schedule="cosine", usual_warmup=200, validate_every=250),
    start=LanguageModelBody(),
    usual_start="minilm",
    unit="words",
)
