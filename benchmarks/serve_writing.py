"""Texts of different lengths that a language model writes for clients who come one after the other: joined to those
that are being written, beside batches that gather while another batch is written.

    python benchmarks/serve_writing.py
    python benchmarks/serve_writing.py --draw --requests 16 --rounds 3 --load 2

The model is a GPT with random weights, whose texts end at one word in 97, or after 200. Both ways get the same requests
with the same options at the same times, by turns. Each text is compared with the one that is written alone.
"""

import argparse
import os
import random
import statistics
import sys
import time
from dataclasses import dataclass
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import foveate
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.serving import Service, ServiceLimits
from foveate.tasks.completion.completer import Completer

WORDS = 4000


@dataclass
class Request:
    """What a client asks for, and when."""

    text: str
    arrives: float


class InBatches(Service):
    """The service as it is for models whose texts do not join."""

    def _begin(self, inputs: Any, options: Any) -> None:
        return None


def small_model(width: int, layers: int) -> Completer:
    """A GPT of random weights, whose tokens are words."""
    vocabulary = {f"w{number}": number for number in range(WORDS)}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="w0"))
    words.pre_tokenizer, words.decoder = pre_tokenizers.WhitespaceSplit(), decoders.Fuse()
    sizes = {"width": width, "heads": 8, "feedforward": 4 * width, "layers": layers, "max_length": 512}
    model = foveate.create("gpt2", vocabulary=WORDS, **sizes).eval()
    for part in model.modules():  # weights that are large enough for texts that do not repeat themselves
        if isinstance(part, torch.nn.Linear | torch.nn.Embedding):
            torch.nn.init.normal_(part.weight, std=0.3)
    return Completer.of(model, "gpt", PublicTokenizer(words), {"eos_token_id": tuple(range(0, WORDS, 97))})


def requests(count: int) -> list[Request]:
    """Prompts of 5 to 60 words, arrivals over one second."""
    drawn = random.Random(1)
    texts = [" ".join(f"w{drawn.randrange(WORDS)}" for _ in range(drawn.randint(5, 60))) for _ in range(count)]
    times = sorted(drawn.random() for _ in range(count))
    return [Request(text, when) for text, when in zip(texts, times, strict=True)]


def serve(service: Service, asked: list[Request]) -> tuple[float, list[float], list[str]]:
    """The seconds until all are answered, those that each client waits, and the texts in the order of arrival."""
    begin, futures = time.monotonic(), []
    ends: dict[int, float] = {}
    for number, one in enumerate(asked):
        time.sleep(max(0.0, begin + one.arrives - time.monotonic()))
        future = service.answer([one.text], service.options)
        future.add_done_callback(lambda _, number=number: ends.setdefault(number, time.monotonic()))
        futures.append(future)
    texts = [future.result(600)[0]["text"] for future in futures]
    waits = [ends[number] - begin - one.arrives for number, one in enumerate(asked)]
    return max(ends.values()) - begin, waits, texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=16)
    parser.add_argument("--load", type=float, default=2.0, help="texts asked for while one could be written alone")
    parser.add_argument("--draw", action="store_true", help="draw tokens instead of taking the likeliest")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=6)
    chosen = parser.parse_args()
    torch.manual_seed(1)
    skill = small_model(chosen.width, chosen.layers)
    asked = requests(chosen.requests)
    how = {"temperature": 1.0} if chosen.draw else {"repetition_penalty": 1.3}
    options = skill.options_with(max_new_tokens=200, **how)
    begin = time.monotonic()
    answers = [skill.run(one.text, options) for one in asked]
    seconds = time.monotonic() - begin
    for one in asked:
        one.arrives *= seconds / chosen.load
    alone, lengths = [one.text for one in answers], [len(one.tokens) for one in answers]
    print(f"{len(asked)} texts of {min(lengths)} to {max(lengths)} tokens, {sum(lengths):,} in all", end="; ")
    print(f"one after the other in {seconds:.1f} seconds", flush=True)
    ways = {
        "in batches": InBatches(skill, options, ServiceLimits()),
        "joined": Service(skill, options, ServiceLimits()),
    }
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
    same = 0
    for _ in range(chosen.rounds):
        for name, service in ways.items():
            seconds, waits, texts = serve(service, asked)
            found[name].append((seconds, statistics.mean(waits), max(waits)))
            same += sum(map(str.__eq__, texts, alone))
    print("| | tokens a second | mean seconds to an answer | longest |\n| --- | ---: | ---: | ---: |")
    for name, rounds in found.items():
        total, mean, longest = map(statistics.median, zip(*rounds, strict=True))
        print(f"| {name} | {sum(lengths) / total:.0f} | {mean:.2f} | {longest:.2f} |")
    ratios = [
        [one / other for one, other in zip(batches, joined, strict=True)]
        for batches, joined in zip(found["in batches"], found["joined"], strict=True)
    ]
    total, mean, longest = map(statistics.median, zip(*ratios, strict=True))
    print(f"joined, median of {chosen.rounds} pairs: {total:.2f} x tokens a second, {mean:.2f} x sooner on average")
    print(f"{same} of {2 * chosen.rounds * len(asked)} texts are those that are written alone")


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # the threads of the services wait for more requests
