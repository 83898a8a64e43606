"""A file translated by CTranslate2, which sorts it: CONVERTED RUN SOURCE PRECISION BATCHES TOKENS.

This many batches of at most this many tokens are translated at once, and share the threads.
"""

import json
import os
import sys
from pathlib import Path

import ctranslate2
import texts


def main(converted: str, run: str, source: str, precision: str, batches: str, tokens: str) -> None:
    translator = ctranslate2.Translator(
        converted,
        compute_type=precision,
        inter_threads=int(batches),
        intra_threads=max(1, int(os.environ["OMP_NUM_THREADS"]) // int(batches)),
    )
    names = json.loads((Path(converted) / "shared_vocabulary.json").read_text(encoding="utf-8"))
    places = {name: place for place, name in enumerate(names)}
    sentences, writer = texts.read(Path(run), Path(source))
    found = translator.translate_batch(
        [[names[token] for token in sentence] for sentence in sentences],
        beam_size=5,
        length_penalty=1.0,
        max_batch_size=int(tokens),
        batch_type="tokens",
        max_decoding_length=2 * max(map(len, sentences)) + 10,
    )
    for text in writer.decode_batch([[places[name] for name in one.hypotheses[0]] for one in found]):
        print(text)


main(*sys.argv[1:])
