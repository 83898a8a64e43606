"""Which heads of SmolLM2-135M copy by induction, and does the model need them?

    python benchmarks/induction.py

A text of random words is repeated. An induction head looks, from a word, at the one behind its earlier occurrence
(Olsson et al. 2022, https://arxiv.org/abs/2209.11895). Heads are scored on some texts by a look. On other texts the
best ones are taken out by `foveate.change`, and beside them as many heads drawn by chance from the other ones.
"""

import json
from contextlib import nullcontext
from dataclasses import dataclass

import torch
import tyro
from torch import Tensor, nn

import foveate
from foveate.interop.pretrained import locate
from foveate.interop.public_folder import read_folder
from foveate.sight import Change, Knock


@dataclass
class Settings:
    heads: tuple[int, ...] = (1, 4, 16, 32)
    """How many heads are taken out."""
    words: int = 48
    """Random words of a text, which come twice."""
    texts: int = 4
    """Texts that copying is measured on; as many others score the heads."""
    draws: int = 3
    """Draws of heads by chance."""
    seed: int = 7
    json: bool = False
    """Print JSON in place of a table."""


def repeated(texts: int, words: int, generator: torch.Generator) -> Tensor:
    """Tokens (B, 2W): random words, twice. The numbers are those of whole words and parts of words alike."""
    first = torch.randint(1000, 40_000, (texts, words), generator=generator)
    return torch.cat([first, first], 1)


def scores(model: nn.Module, tokens: Tensor) -> dict[tuple[str, int], float]:
    """The mean weight of the words behind earlier occurrences, by site and head."""
    with torch.no_grad(), foveate.look(model) as sight:
        model(tokens)
    return {(site, head): score for site, head, score in sight.roles(tokens).largest("induction", count=None)}


def copied(model: nn.Module, tokens: Tensor, heads: list[tuple[str, int]]) -> float:
    """Percent of the repeated words that the model predicts without some heads."""
    words = tokens.shape[1] // 2
    changes: dict[str, Change] = {
        site: Knock([head for other, head in heads if other == site])
        for site in dict.fromkeys(site for site, _ in heads)
    }
    with torch.no_grad(), foveate.change(model, changes) if changes else nullcontext():
        logits = model(tokens).logits
    right = logits[:, words:-1].argmax(-1) == tokens[:, words + 1 :]
    return 100 * float(right.float().mean())


def main(settings: Settings) -> None:
    model = read_folder(locate("smollm2")).model.eval()
    generator = torch.Generator().manual_seed(settings.seed)
    found = scores(model, repeated(settings.texts, settings.words, generator))
    tokens = repeated(settings.texts, settings.words, generator)
    ranked = sorted(found, key=lambda place: -found[place])
    rows = [{"heads": 0, "induction": copied(model, tokens, []), "chance": None}]
    for count in settings.heads:
        others = ranked[max(settings.heads) :]
        drawn = [
            [others[at] for at in torch.randperm(len(others), generator=generator)[:count]]
            for _ in range(settings.draws)
        ]
        chance = [copied(model, tokens, some) for some in drawn]
        rows.append({"heads": count, "induction": copied(model, tokens, ranked[:count]), "chance": chance})
    best = [{"site": site, "head": head, "score": round(found[site, head], 3)} for site, head in ranked[:8]]
    if settings.json:
        print(json.dumps({"best": best, "rows": rows}))
        return
    print(f"{len(found)} heads; the best by weight of the word behind the earlier occurrence:")
    for one in best:
        print(f"  {one['site']} head {one['head']}: {one['score']}")
    print("heads taken out | best by score | by chance (lowest to highest draw)")
    for row in rows:
        among = "" if row["chance"] is None else f"{min(row['chance']):.1f} to {max(row['chance']):.1f}"
        print(f"{row['heads']:15} | {row['induction']:13.1f} | {among}")


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
