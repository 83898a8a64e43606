"""A file translated by CTranslate2, sorted by itself into batches of 4,096 tokens: CONVERTED RUN SOURCE PRECISION."""

import json
import os
import sys
from pathlib import Path

import ctranslate2
import texts


def main(converted: str, run: str, source: str, precision: str) -> None:
    translator = ctranslate2.Translator(
        converted,
        compute_type=precision,
        inter_threads=1,
        intra_threads=int(os.environ["OMP_NUM_THREADS"]),
    )
    names = json.loads((Path(converted) / "shared_vocabulary.json").read_text(encoding="utf-8"))
    places = {name: place for place, name in enumerate(names)}
    sentences, writer = texts.read(Path(run), Path(source))
    found = translator.translate_batch(
        [[names[token] for token in sentence] for sentence in sentences],
        beam_size=5,
        length_penalty=1.0,
        max_batch_size=4096,
        batch_type="tokens",
        max_decoding_length=2 * max(map(len, sentences)) + 10,
    )
    for text in writer.decode_batch([[places[name] for name in one.hypotheses[0]] for one in found]):
        print(text)


main(*sys.argv[1:])
