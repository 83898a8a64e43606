"""TF-IDF and logistic regression beside our classifiers, on the same texts: `python benchmarks/baselines.py RUN ...`

Needs scikit-learn, which foveate does not. The baseline learns from the training part of the text by name that the
first run was trained on; whether it counts pairs of words too, and how strongly it is regularised, is decided by the
development part, as the step whose weights a run keeps is. All are measured on the test part.
"""

import argparse
import time
from collections.abc import Iterator
from itertools import product

from rich.console import Console
from rich.table import Table
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

import foveate
from foveate.data.sources import open_source
from foveate.data.sources.splits import Splits
from foveate.data.text.labelled import LabelledText
from foveate.forms.answers import NoOptions
from foveate.metrics.classification import accuracy, macro_f1

STRENGTHS = (1.0, 3.0, 10.0, 30.0)
"""scikit-learn's C: the inverse of the regularisation."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", help="folders of `foveate train classify SOURCE`, all with one source")
    options = parser.parse_args()
    runs = {folder: foveate.load(folder) for folder in options.runs}
    source = next(iter(runs.values())).description["recipe"]["examples"]["source"]
    splits = open_source(source, task="classify")
    texts, right = list(splits.test.texts()), list(splits.test.labels())
    table = Table(title=f"{splits.test.name}: {len(texts):,} texts")
    for heading in ("", "accuracy", "macro F1", "dev accuracy", "texts/s"):
        table.add_column(heading, justify="right")
    best, held_out = baseline(splits)
    table.add_row(told(best), *measured(lambda: [*best.predict(texts)], right, held_out))
    for folder, classifier in runs.items():
        found = accuracy(
            [one.label for one in classifier.answer([*splits.dev.texts()], NoOptions())], [*splits.dev.labels()]
        )
        cells = measured(lambda task=classifier: [one.label for one in task.answer(texts, NoOptions())], right, found)
        table.add_row(f"{folder} ({classifier.description['recipe']['model']})", *cells)
    Console().print(table)


def baseline(splits: Splits[LabelledText]) -> tuple[Pipeline, float]:
    """The best of a few by accuracy on the development part, and that accuracy."""
    learn, check = splits.train, splits.dev
    found = []
    for words, strength in product((1, 2), STRENGTHS):
        counts = TfidfVectorizer(ngram_range=(1, words), sublinear_tf=True, token_pattern=r"(?u)\b\w+\b")
        pipeline = make_pipeline(counts, LogisticRegression(C=strength, max_iter=1000))
        pipeline.fit([*learn.texts()], [*learn.labels()])
        found.append((accuracy([*pipeline.predict([*check.texts()])], [*check.labels()]), pipeline))
    held_out, best = max(found, key=lambda one: one[0])
    return best, held_out


def told(pipeline: Pipeline) -> str:
    counts, regression = (step for _, step in pipeline.steps)
    words = "words and pairs of words" if counts.ngram_range[1] == 2 else "words"
    return f"TF-IDF of {words}, logistic regression, C = {regression.C:g}"


def measured(answer, right: list[str], held_out: float) -> Iterator[str]:
    began = time.perf_counter()
    found = answer()
    seconds = time.perf_counter() - began
    yield from (f"{accuracy(found, right):.2f}", f"{macro_f1(found, right):.2f}", f"{held_out:.2f}")
    yield f"{len(right) / seconds:,.0f}"


if __name__ == "__main__":
    main()
