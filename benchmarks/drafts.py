"""How much sooner greedy search ends where the text itself guesses the next tokens: a language model with drafts and
without, by turns, on a text that is quoted and on one that is new.

    python benchmarks/drafts.py --model smollm2 --tokens 40 --rounds 3

Prints processor seconds of one thread, the least of all rounds, and whether both texts are the same.
"""

import argparse
import time
from unittest.mock import patch

import foveate  # isort: skip, before torch: its threads shall sleep, not spin, while others work on the machine

import torch

from foveate.decoding import Decoding, generate, generation
from foveate.decoding.generation import Generated

TEXT = (
    "The agreement on the European Economic Area was signed in August 1992 by the ministers of twelve states and the "
    "members of the free trade association in Porto."
)

PROMPTS = {
    "quotes": f"Text: {TEXT}\nSame text again: The agreement on the European",
    "new": "Once upon a time there was a lighthouse keeper who",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--tokens", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    skill = foveate.load(asked.model)
    model, settings = skill.optimized("float32"), Decoding("greedy", max_new_tokens=asked.tokens)

    def written(prompt: list[int], drafted: bool) -> tuple[float, Generated]:
        with patch.object(generation, "_takes_drafts", generation._takes_drafts if drafted else lambda *_: False):
            begin = time.process_time()
            (found,) = generate(model, [prompt], settings, set())
            return time.process_time() - begin, found

    print("| text | without drafts, s | with drafts, s | ratio | same text |\n| --- | ---: | ---: | ---: | --- |")
    for name, text in PROMPTS.items():
        (prompt,) = skill.tokenizer.encode([text])
        rounds = [(written(prompt, False), written(prompt, True)) for _ in range(asked.rounds)]
        plain, drafted = (min(seconds for seconds, _ in each) for each in zip(*rounds, strict=True))
        same = all(one.tokens == other.tokens for (_, one), (_, other) in rounds)
        print(
            f"| {name} | {plain:.2f} | {drafted:.2f} | {plain / drafted:.2f} | {'yes' if same else 'no'} |", flush=True
        )


if __name__ == "__main__":
    main()
