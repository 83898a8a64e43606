"""Writing by prompt: correction and translation by SmolLM2 with no, one and several examples in the prompt, beside
low-rank updates that learn from examples, and beside answers that need no model.

    python benchmarks/prompted_writing.py --texts 60

Correction: sentences of the Brown corpus, each with one fault put in (an article left out, or "is" for "are" and the
like), to be written as they were. Translation: English names of emoji into French. Examples in prompts are drawn
several times from the training part, and the same ones are learned by updates of rank 8; `many` are learned too. Prints
BLEU and the share of answers that equal the right one.
"""

import argparse
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

Pairs = list[tuple[str, str]]

FORMS = {
    "correction": ("Correct the English.", "Poor English: {input}\nGood English: {output}"),
    "translation": ("Translate from English to French.", "English: {input}\nFrench: {output}"),
}
"""The instruction of each task, and the form of its examples."""

FAULTS = {"is": "are", "are": "is", "was": "were", "were": "was", "has": "have", "have": "has", "the": "", "a": ""}
"""What stands in the place of a word; a word that is not there where nothing stands."""

ROWS, RANK, RATE = 8, 8, 1e-3


def correction() -> tuple[Pairs, Pairs]:
    """Sentences with a fault and without, to learn from and to measure on."""
    from foveate.data.sources import open_source

    parts = open_source("brown", task="tag")
    generator = random.Random(1)
    return list(islice(_damaged(parts.train, generator), 400)), list(islice(_damaged(parts.test, generator), 400))


def _damaged(sentences: Any, generator: random.Random) -> Iterator[tuple[str, str]]:
    for sentence in sentences:
        *words, stop = sentence.words
        places = [place for place, word in enumerate(words) if word in FAULTS]
        if stop != "." or not places or not 5 <= len(words) <= 14 or not all(word.isalpha() for word in words):
            continue
        place = generator.choice(places)
        fault = [*words[:place], *filter(None, [FAULTS[words[place]]]), *words[place + 1 :]]
        yield f"{' '.join(fault)}.", f"{' '.join(words)}."


def translation() -> tuple[Pairs, Pairs]:
    """Names in English and in French; none of one part is in the other."""
    from foveate.data.sources import open_source

    parts = open_source("emoji", "en", "fr", task="translate")
    train, test = ([pair for pair in part if len(pair[0]) < 40] for part in (parts.train, parts.test))
    return train[:400], test


def word_for_word(known: Pairs, texts: Sequence[str]) -> list[str]:
    """Each word as the word that goes with it most often in the known pairs, by Dice's coefficient."""
    here, there, both = Counter[str](), Counter[str](), Counter[tuple[str, str]]()
    for source, target in known:
        words, others = set(source.split()), set(target.split())
        here.update(words)
        there.update(others)
        both.update((word, other) for word in words for other in others)
    best = dict[str, tuple[float, str]]()
    for (word, other), count in both.items():
        best[word] = max(best.get(word, (0.0, "")), (2 * count / (here[word] + there[other]), other))
    return [" ".join(best.get(word, (0.0, word))[1] for word in text.split()) for text in texts]


def fine_tuned(model: str, rows: list[dict[str, str]], steps: int) -> Any:
    """The model after so many steps with low-rank updates of queries and values."""
    import torch
    from tuning_peers import batch_of

    from foveate import tasks
    from foveate.nn import add_low_rank, merge_low_rank
    from foveate.training import CrossEntropy, Training
    from foveate.training.update import Updater

    task: Any = tasks.load(model)
    torch.manual_seed(1)
    add_low_rank(task.model, RANK, ("query", "value"))
    updater = Updater(task.model.train(), CrossEntropy(), Training(device="cpu", precision="float32", weight_decay=0.0))
    generator = random.Random(1)
    for step in range(1, steps + 1):
        batch = batch_of(generator.sample(rows, min(ROWS, len(rows))), task.tokenizer, False)
        updater([batch], RATE * (1 - (step - 1) / steps), step)
    merge_low_rank(task.model)
    task.model.eval()
    return task


def measure(name: str, chosen: argparse.Namespace, folder: Path) -> None:
    """Print the rows of a task."""
    from foveate import tasks
    from foveate.forms.prompts import Prompt, Prompting
    from foveate.metrics.translation import quality
    from foveate.tasks.completion.measures import Measuring

    train, test = {"correction": correction, "translation": translation}[name]()
    test = random.Random(2).sample(test, min(chosen.texts, len(test)))
    given, right = [source for source, _ in test], [target for _, target in test]
    instruction, form = FORMS[name]
    data = folder / f"{name}.tsv"
    data.write_text("".join(f"{source}\t{target}\n" for source, target in test), encoding="utf-8")

    def show(way: str, drawn: list[list[str]]) -> None:
        bleu = [quality(texts, right).bleu for texts in drawn]
        exact = [100 * mean(text == one for text, one in zip(texts, right, strict=True)) for texts in drawn]
        cells = [f"{mean(found):.1f} ({min(found):.1f} to {max(found):.1f})" for found in (bleu, exact)]
        print(f"| {name} | {way} | {' | '.join(cells)} | {time.process_time():.0f} |", flush=True)

    def written(task: Any, shots: Pairs) -> list[str]:
        file = folder / "shots.tsv"
        file.write_text("".join(f"{source}\t{target}\n" for source, target in shots), encoding="utf-8")
        prompting = Prompting(shots=file if shots else None, form=form, instruction=instruction)
        found = task.evaluate([data], Measuring(prompting=prompting, max_new_tokens=32))
        return [str(answer) for answer in found.answers]

    def as_rows(pairs: Pairs) -> list[dict[str, str]]:
        prompt = Prompt(instruction, form)
        return [{"prompt": prompt.ask(source), "chosen": f" {target}"} for source, target in pairs]

    show("the input, copied", [given])
    many = train[: chosen.many]
    if name == "translation":
        show(f"word for word, of {len(many)} pairs", [word_for_word(many, given)])
    model = tasks.load(chosen.model)
    drawn = [random.Random(seed).sample(train, max(chosen.examples)) for seed in range(1, chosen.draws + 1)]
    for count in chosen.examples:
        show(f"{count} examples", [written(model, own[:count]) for own in (drawn if count else drawn[:1])])
    own = drawn[0]
    show(f"learned from {len(own)} examples", [written(fine_tuned(chosen.model, as_rows(own), 10), [])])
    show(f"learned from {len(many)} examples", [written(fine_tuned(chosen.model, as_rows(many), chosen.steps), [])])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--tasks", nargs="+", choices=tuple(FORMS), default=tuple(FORMS))
    parser.add_argument("--texts", type=int, default=60, help="of the test part")
    parser.add_argument("--examples", type=int, nargs="+", default=(0, 1, 8), help="in a prompt, the most last")
    parser.add_argument("--draws", type=int, default=3, help="of examples")
    parser.add_argument("--many", type=int, default=256, help="examples that are learned from")
    parser.add_argument("--steps", type=int, default=64, help="of eight examples each, when many are learned from")
    chosen = parser.parse_args()
    print("| task | by | BLEU | equal, % | processor seconds so far |\n| --- | --- | ---: | ---: | ---: |")
    with TemporaryDirectory() as place:
        for name in chosen.tasks:
            measure(name, chosen, Path(place))


if __name__ == "__main__":
    main()
