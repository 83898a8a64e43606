"""The scores of `foveate eval FOLDER --task` beside those of lm-evaluation-harness (pip install lm_eval).

    python benchmarks/parity/multiple_choice.py FOLDER questions.jsonl

FOLDER is a Hugging Face folder of a causal language model. Prints the greatest difference of a choice's
log-probability and the accuracies; exits with 1 where a difference is above 1e-4 of the score or of 1.
"""

import sys
from pathlib import Path

from foveate import load
from foveate.forms.prompts import Prompting
from foveate.tasks.completion.choices import ChoiceScorer
from foveate.tasks.completion.multiple_choice import choice_scores, read_questions


def main(folder: str, path: str) -> None:
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    questions = read_questions(Path(path), [])
    task = load(folder)
    ours = choice_scores(ChoiceScorer(task.model, task.tokenizer, Prompting()), questions)
    harness = HFLM(pretrained=folder, device="cpu", dtype="float32", batch_size=8)
    requests = [
        Instance(request_type="loglikelihood", doc={}, arguments=(question.text, f" {choice}"), idx=place)
        for question in questions
        for place, choice in enumerate(question.choices)
    ]
    found = iter(score for score, _ in harness.loglikelihood(requests))
    theirs = [[next(found) for _ in question.choices] for question in questions]
    pairs = [pair for both in zip(ours, theirs, strict=True) for pair in zip(*both, strict=True)]
    worst = max(abs(one - other) / max(1.0, abs(other)) for one, other in pairs)
    print(f"{len(questions)} questions, {len(pairs)} choices: greatest relative difference {worst:.1e}")
    for name, scores in (("foveate", ours), ("lm-evaluation-harness", theirs)):
        right = sum(one.index(max(one)) == question.right for one, question in zip(scores, questions, strict=True))
        print(f"{name}: acc {100 * right / len(questions):.2f}%")
    sys.exit(worst > 1e-4)


if __name__ == "__main__":
    main(*sys.argv[1:])
