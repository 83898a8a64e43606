"""Hugging Face folders of models that read texts as skills: labels of texts and pairs, tags of words, vectors."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from foveate import models, run_dir
from foveate.data.dataset import Dataset
from foveate.data.table import FIRST, LABEL, SECOND, DataTable
from foveate.data.text.labelled_pairs import read_labelled_pairs
from foveate.data.tokens.bert_tokenizer import BertTokenizer
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.data.tokens.text_tokenizer import TextTokenizer
from foveate.errors import UserError, one_line
from foveate.forms.label import Label
from foveate.forms.processor import Processor
from foveate.forms.public_text import PooledTokens, PromptedText, PublicPair, PublicTags, PublicText, PublicWords
from foveate.forms.span import AskedRow, Spans
from foveate.forms.text_pair import PairLabel
from foveate.forms.text_vector import TextVector
from foveate.interop.layout import label_names, label_scores
from foveate.interop.public_folder import PublicModel
from foveate.tasks import find_task
from foveate.tasks.ask import Answerer
from foveate.tasks.checkpoint import public_recipe
from foveate.tasks.embedder import Embedder
from foveate.tasks.hf.pooling import lowercases, read_max_length, read_pooling, read_prompt
from foveate.tasks.hf.reader import MASKED, open_public, token_types
from foveate.tasks.run_config import RunConfig
from foveate.tasks.skill import Skill
from foveate.tasks.start.weights import open_start
from foveate.training.hardware import choose_device

PAIRED = (*MASKED, "xlnet")
"""The families that learn from two texts in one row."""

NEXT = ("next", "not next")
"""What the labels of BERT's next-sentence head are called, if the folder has no names of its own."""

TASK_OF = {"text": "classify", "pair": "pair", "tokens": "tag", "span": "ask", "vector": "embed", "none": "embed"}
"""The task of a model, by what it predicts."""


class FolderClassifier(Skill):
    """A model that labels texts, and perhaps pairs of texts."""

    def test_examples(self, data: Sequence[Path], options: Any) -> Dataset[Any]:
        if data and self.processor.reads.pairs and has_pairs(data):
            return read_labelled_pairs(data)
        return super().test_examples(data, options)


class TextFolders:
    """Opens folders whose models predict one thing: what `foveate run` and `eval` ask of a task."""

    def __init__(self, head: str) -> None:
        """`head` is "text", "pair", "tokens", "span", "vector" or "none"."""
        self._head = head
        self._task = find_task(TASK_OF[head])
        self._writes: Any = Spans() if head == "span" else self._task.writes

    def run_options(self, recipe: Any, where: str) -> Any:
        """The flags of `foveate run`."""
        return self._writes.run_options()

    def eval_options(self, recipe: Any, where: str) -> Any:
        """The flags of `foveate eval`."""
        return self._writes.measure_options()

    def load(self, folder: Path | str, device: str = "cpu") -> Skill:
        """The model of a folder. Raises UserError, one line, for whatever is missing, damaged or unknown."""
        make = {"vector": bert_embedder, "none": token_embedder, "span": span_answerer}.get(self._head)
        return make(Path(folder), device) if make else labeller(self._head, Path(folder), device)


def labeller(head: str, folder: Path, device: str) -> Skill:
    """A model that gives labels: to texts, to pairs of texts, or to the words of a text."""
    public, tokenizer = open_public(folder, device)
    joins = isinstance(tokenizer, BertTokenizer) or tokenizer.joins_pairs
    own = {"tokenizer": tokenizer, "types": token_types(public), "pairs": public.family in PAIRED and joins}
    where = str(folder / run_dir.CONFIG)
    named = head != "pair" or any(not name.startswith("LABEL_") for name in _own_labels(public.values))
    names = label_names(public.values, where) if named else list(NEXT)
    if head == "tokens":
        return skill_of(Skill, "tag", public, folder, Processor(PublicWords(**own), PublicTags(names=tuple(names))))
    counts = dict.fromkeys(names, 0)
    if head == "pair":
        return skill_of(Skill, "pair", public, folder, Processor(PublicPair(**own), PairLabel(counts)))
    writes = Label(counts, scores=label_scores(public.values, len(names), where))
    return skill_of(FolderClassifier, "classify", public, folder, Processor(PublicText(**own), writes))


def span_answerer(folder: Path, device: str) -> Skill:
    """A model that answers questions about texts with a part of the text."""
    public, tokenizer = open_public(folder, device)
    own = TextTokenizer.of(tokenizer) if isinstance(tokenizer, PublicTokenizer) else tokenizer
    reads = AskedRow(tokenizer=own).for_model(public.model.config)
    return skill_of(Answerer, "ask", public, folder, Processor(reads, Spans()))


def bert_embedder(folder: Path, device: str) -> Skill:
    """A BERT whose pooled tokens are the vector of a text."""
    start = open_start(folder)
    if start.tokenizer is None or start.family not in MASKED:
        raise UserError(f"{folder} is not a BERT, so it gives no vectors of sentences")
    pooling, normalized = read_pooling(start.folder)
    config = replace(start.config, pooling=pooling, head="vector")
    model = models.build(start.family, config)
    start.fill(model)
    public = PublicModel(start.family, model.to(choose_device(device)).eval(), {})
    reads = PromptedText(tokenizer=start.tokenizer, **_prompt(folder))
    reads.max_length = read_max_length(folder, config.max_length) - sum(map(len, reads.around))
    return skill_of(Embedder, "embed", public, folder, Processor(reads, TextVector(normalized)))


def token_embedder(folder: Path, device: str) -> Skill:
    """A model without a head, of which the mean of a text's tokens, or the first of them, is the vector."""
    pooling, normalized = read_pooling(folder)
    public, tokenizer = open_public(folder, device)
    writes = PooledTokens(normalized, pooling)
    reads = PublicText(tokenizer=tokenizer, types=token_types(public), **_prompt(folder))
    return skill_of(Embedder, "embed", public, folder, Processor(reads, writes))


def _prompt(folder: Path) -> dict[str, Any]:
    """What an embedder reads before each text, and whether in lower case."""
    return {"prompt": read_prompt(folder), "small_letters": lowercases(folder)}


def skill_of(kind: type[Skill], name: str, public: PublicModel, folder: Path, processor: Processor) -> Skill:
    """A model with its forms."""
    task = find_task(name)
    recipe = public_recipe(task, public, folder, processor)
    description = asdict(RunConfig(name, public.family, asdict(recipe.architecture), recipe.as_json()))
    return kind(task, recipe, public.model, processor, description, folder)


def has_pairs(data: Sequence[Path]) -> bool:
    """Whether the first row of a table has a label and two texts."""
    try:
        return any(DataTable(data[0], (LABEL, FIRST, SECOND)))
    except UserError:
        return False


def _own_labels(values: dict[str, Any]) -> list[str]:
    named = values.get("id2label")
    return [one_line(str(name)) for name in named.values()] if isinstance(named, dict) else []
