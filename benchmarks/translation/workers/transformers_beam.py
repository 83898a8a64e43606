"""Beam search of forced length by transformers: FOLDER SOURCES.json THREADS TYPE."""

import json
import sys
from pathlib import Path
from typing import Any

import layout
import torch
from serving import serve


def main(folder: str, sources: str, threads: str, kind: str) -> None:
    torch.set_num_threads(int(threads))
    asked = json.loads(Path(sources).read_text(encoding="utf-8"))
    model = layout.model(Path(folder), forced=True).to(getattr(torch, kind))
    source = torch.tensor(asked["sources"])
    settings = {
        "num_beams": asked["beams"],
        "do_sample": False,
        "max_new_tokens": asked["length"],
        "length_penalty": 1.0,
        "use_cache": True,
        "return_dict_in_generate": True,
        "output_scores": False,
    }

    def job() -> dict[str, Any]:
        with torch.inference_mode():
            found = model.generate(input_ids=source, attention_mask=torch.ones_like(source), **settings)
        return {"tokens": found.sequences[:, 1:].tolist()}

    serve(job)


main(*sys.argv[1:])
