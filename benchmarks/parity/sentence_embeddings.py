"""Sentence embeddings of MiniLM beside transformers', with the real weights: vectors, and how paraphrases rank.

    python benchmarks/parity/sentence_embeddings.py

The weights (84 MB) are fetched once, as `foveate run minilm` does. Prints the greatest difference of a number of the
vectors, and for how many sentences the paraphrase is the nearest of all others; exits with 1 where a difference is
above 2e-5 or the two order any sentence's neighbours differently. The result is in benchmarks/results/parity.md.
"""

import sys
from pathlib import Path

import torch
from torch import Tensor
from transformers import AutoModel, AutoTokenizer

import foveate
from foveate.data.sources.cache import cache_folder

PARAPHRASES = (
    ("A woman plays the violin on the street.", "On a road, a lady is making music with a fiddle."),
    ("The train was an hour late because of the snow.", "Snow delayed the train by sixty minutes."),
    ("He gave up smoking last year.", "Twelve months ago he stopped using cigarettes."),
    ("The company raised its prices again.", "Once more, the firm's goods became more expensive."),
    ("Children are not allowed to swim here alone.", "Kids must be with an adult if they bathe at this place."),
    ("How can I reset my password?", "What do I do to get a new passphrase?"),
    ("The film was so boring that we left early.", "We walked out of the dull movie before its end."),
    ("Our dog barks at every stranger.", "Whenever someone unknown comes, the puppy makes noise."),
    ("The recipe needs two eggs and a cup of flour.", "For this dish, take flour and a couple of eggs."),
    ("The court found the minister guilty of fraud.", "Judges convicted the politician for cheating."),
    ("It will rain in the north tomorrow.", "Wet weather is forecast for northern parts for the next day."),
    ("The battery of my phone lasts two days.", "I charge my mobile every other day."),
)
"""Sentences, and the same in other words."""


def of_transformers(folder: Path, texts: list[str]) -> Tensor:
    """The mean of the last layer over real tokens, of length 1, as the model's card has it."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    inputs = tokenizer(texts, padding=True, return_tensors="pt")
    real = inputs["attention_mask"][..., None]
    with torch.no_grad():
        hidden = model(**inputs).last_hidden_state
    return torch.nn.functional.normalize((hidden * real).sum(1) / real.sum(1))


def neighbours(vectors: Tensor) -> Tensor:
    """For each sentence the others, nearest first."""
    cosines = (vectors @ vectors.T).fill_diagonal_(-2)
    return cosines.argsort(1, descending=True)[:, :-1]


def main() -> None:
    texts = [text for pair in PARAPHRASES for text in pair]
    ours = torch.as_tensor(foveate.load("minilm").embed(texts))
    theirs = of_transformers(cache_folder() / "all-minilm-l6-v2", texts)
    worst, same = (ours - theirs).abs().max().item(), torch.equal(neighbours(ours), neighbours(theirs))
    partner = torch.arange(len(texts)) ^ 1
    nearest = (neighbours(ours)[:, 0] == partner).sum().item()
    order = "the same" if same else "another"
    print(f"{len(texts)} sentences: greatest difference {worst:.1e}; neighbours in {order} order")
    print(f"the paraphrase is the nearest of the {len(texts) - 1} others for {nearest} of {len(texts)}")
    sys.exit(worst > 2e-5 or not same)


if __name__ == "__main__":
    main()
