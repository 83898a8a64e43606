"""Do models need the heads that align? Whisper's alignment heads, and a translator's heads that look at its source.

    python benchmarks/needed_heads.py whisper --sounds 20 --draws 3
    foveate demo && python benchmarks/needed_heads.py runs/demo/transformer-tiny

Whisper tiny.en comes with a list of its heads that follow the sound (the openai/whisper repository made it by hand).
They are taken out by `foveate.change`, and beside them as many heads between text and sound with the best alignment
scores on three training sounds, and as many outside of the list, drawn by chance. The translator's heads are taken out
one by one. Measured are the errors of what is then written, on the test parts, and the log-probability for each token:
of what the whole Whisper writes, and of the right translations.
"""

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import torch
import tyro

import foveate
from foveate.data.sources.prompts import open_prompts
from foveate.forms.inputs import read_input
from foveate.forms.whisper_tokens import plain_words
from foveate.interop.pretrained import locate
from foveate.metrics.error_rates import error_rate
from foveate.sight import Scale

Head = tuple[str, int]


@dataclass
class Settings:
    model: tyro.conf.Positional[str]
    """"whisper", or the folder of a translator."""
    examples: Annotated[int, tyro.conf.arg(aliases=("--sounds",))] = 73
    """Examples of the test part."""
    draws: int = 5
    """Draws of heads by chance."""
    seed: int = 7
    json: bool = False
    """Print JSON in place of a table."""


def without(model: Any, heads: Sequence[Head]) -> AbstractContextManager[None]:
    """The model without some heads."""
    sites: dict[str, list[int]] = {}
    for site, head in heads:
        sites.setdefault(site, []).append(head)
    return foveate.change(model, {site: Scale(0.0, own) for site, own in sites.items()}) if heads else nullcontext()


def log_probability(skill: Any, read: Any) -> float:
    """That of an answer, in nats for each token."""
    output = skill.forward(read.inputs)
    labels = skill.processor.writes.scored_labels(output, read.answer)
    return float(skill.processor.writes.score(output, labels)) / int((labels >= 0).sum())


def taught(skill: Any, given: Any, right: str) -> Any:
    """An input with the right answer in place of the model's own."""
    read, writes = skill.read(given, 4096), skill.processor.writes
    answer = writes.named(right, read.answer)
    return replace(read, answer=answer, inputs={**read.inputs, **writes.teach(answer)})


def best_by_score(skill: Any, sounds: Sequence[Path], count: int) -> list[Head]:
    """The heads with the best alignment scores on some sounds."""
    scores: Counter[Head] = Counter()
    for path in sounds:
        looked = skill.look(path)
        words = next(names for site, (names, _) in looked.tokens.items() if site.endswith("cross"))
        for site, head, score in looked.sight.roles(words).largest("alignment", count=None):
            scores[site, head] += score
    return [head for head, _ in scores.most_common(count)]


def whisper(settings: Settings) -> list[dict[str, Any]]:
    """Errors and log-probabilities without the alignment heads, and without others."""
    skill: Any = foveate.load(locate("whisper-tiny.en"))
    writes = skill.processor.writes
    prompts = open_prompts("en", print)
    usable = [one for one in prompts.test if one.seconds <= 30]
    examples = usable[: settings.examples]
    reads = [skill.read(read_input(str(one.path), skill.takes), 4096) for one in examples]
    right = [plain_words(one.label).split() for one in examples]
    aligned: list[Head] = [(f"decoder.{layer}.cross", head) for layer, head in writes.values["alignment_heads"]]
    shape = skill.model.config
    every = [(f"decoder.{layer}.cross", head) for layer in range(shape.decoder_layers) for head in range(shape.heads)]
    others = [one for one in every if one not in aligned]
    generator = torch.Generator().manual_seed(settings.seed)
    chance = [torch.randperm(len(others), generator=generator)[: len(aligned)].tolist() for _ in range(settings.draws)]
    ways: dict[str, list[Head]] = {"all heads": [], f"without the {len(aligned)} alignment heads": aligned}
    shown = [one.path for one in prompts.train if 3 < one.seconds < 9][:3]
    ways[f"without the {len(aligned)} best by alignment score"] = best_by_score(skill, shown, len(aligned))
    ways |= {f"without {len(aligned)} others, draw {n}": [others[at] for at in own] for n, own in enumerate(chance, 1)}
    rows = []
    for name, heads in ways.items():
        with without(skill.model, heads):
            texts = [plain_words(skill(str(one.path)).text).split() for one in examples]
            log_probs = [log_probability(skill, read) for read in reads]
        rows.append({"way": name, "word_errors": error_rate(texts, right), "log_probability": mean(log_probs)})
    return rows


def translator(settings: Settings) -> list[dict[str, Any]]:
    """Errors and log-probabilities without each head that looks at the source, those that are missed most first."""
    skill: Any = foveate.load(settings.model)
    examples = [*islice(skill.test_examples([], skill.processor.writes.measure_options()), settings.examples)]
    reads = [taught(skill, source, target) for source, target in examples]
    sight = skill.look(examples[0][0]).sight
    every = [(site.name, head) for site in sight if site.name.endswith("cross") for head in range(site.shape[1])]
    ways: dict[str, list[Head]] = {"all heads": [], "without all heads that look at the source": every}
    ways |= {f"without {site} head {head}": [(site, head)] for site, head in every}
    rows = []
    for name, heads in ways.items():
        with without(skill.model, heads):
            texts = [skill(source).text for source, _ in examples]
            log_probs = [log_probability(skill, read) for read in reads]
        exact = mean(text == target for text, (_, target) in zip(texts, examples, strict=True))
        rows.append({"way": name, "right": 100 * exact, "log_probability": mean(log_probs)})
    return rows[:2] + sorted(rows[2:], key=lambda row: row["log_probability"])


def main(settings: Settings) -> None:
    rows = (whisper if settings.model == "whisper" else translator)(settings)
    if settings.json:
        print(json.dumps(rows))
        return
    for row in rows:
        way, *numbers = row.values()
        print(
            f"{way:45} " + "  ".join(f"{name} {number:8.3f}" for name, number in zip([*row][1:], numbers, strict=True))
        )


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
