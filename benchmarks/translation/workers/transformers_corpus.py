"""A file translated by transformers, 64 sentences of like length at a time: RUN SOURCE TYPE."""

import sys
from pathlib import Path

import layout
import texts
import torch

BATCH = 64


def main(run: str, source: str, kind: str) -> None:
    model = layout.model(Path(run)).to(getattr(torch, kind))
    sentences, writer = texts.read(Path(run), Path(source))
    order = sorted(range(len(sentences)), key=lambda place: -len(sentences[place]))
    found: dict[int, list[int]] = {}
    for start in range(0, len(order), BATCH):
        places = order[start : start + BATCH]
        rows = [torch.tensor(sentences[place]) for place in places]
        batch = torch.nn.utils.rnn.pad_sequence(rows, True, layout.PAD)
        most = 2 * batch.shape[1] + 10
        with torch.inference_mode():
            mask = (batch != layout.PAD).long()
            written = model.generate(input_ids=batch, attention_mask=mask, num_beams=5, max_new_tokens=most)
        found.update(zip(places, written.tolist(), strict=True))
    for text in writer.decode_batch([found[place] for place in range(len(sentences))]):
        print(text)


main(*sys.argv[1:])
