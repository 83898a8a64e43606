"""Beam search of forced length by CTranslate2: CONVERTED SOURCES.json THREADS PRECISION."""

import json
import sys
from pathlib import Path
from typing import Any

import ctranslate2
from serving import serve


def main(folder: str, sources: str, threads: str, precision: str) -> None:
    asked = json.loads(Path(sources).read_text(encoding="utf-8"))
    translator = ctranslate2.Translator(folder, compute_type=precision, inter_threads=1, intra_threads=int(threads))
    names = json.loads((Path(folder) / "shared_vocabulary.json").read_text(encoding="utf-8"))
    places = {name: place for place, name in enumerate(names)}
    batch = [[names[token] for token in tokens] for tokens in asked["sources"]]
    settings = {
        "beam_size": asked["beams"],
        "min_decoding_length": asked["length"],
        "max_decoding_length": asked["length"],
        "length_penalty": 1.0,
        "return_scores": True,
    }

    def job() -> dict[str, Any]:
        found = translator.translate_batch(batch, **settings)
        tokens = [[places[name] for name in one.hypotheses[0]] for one in found]
        return {"tokens": tokens, "scores": [one.scores[0] for one in found]}

    serve(job)


main(*sys.argv[1:])
