"""Whisper tiny.en on recorded prompts, foveate beside CTranslate2: texts, word error rates, processor times.

    python benchmarks/whisper_prompts.py TABLE --peer PYTHON --model FOLDER

TABLE has sound<TAB>text on each line, such as test.tsv of `prompts-en` in the cache. PYTHON is the interpreter of a
virtual environment with ctranslate2; FOLDER has model.bin and its vocabulary, as CTranslate2 reads them. Both sides get
the same spectrograms, one thread and greedy search; CTranslate2 runs in single precision and in int8, in a process of
its own that is asked sound by sound, by turns with foveate.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FRAMES, BANDS, KINDS = 3000, 80, ("float32", "int8")


def answer(folder: str) -> None:
    """The other process: reads spectrograms from its input, writes tokens and seconds."""
    import ctranslate2
    import numpy as np

    models = [ctranslate2.models.Whisper(folder, compute_type=kind, intra_threads=1) for kind in KINDS]
    while data := sys.stdin.buffer.read(4 * BANDS * FRAMES):
        window = np.frombuffer(data, np.float32).reshape(1, BANDS, FRAMES)
        found = []
        for model in models:
            begin = time.process_time()
            given = ctranslate2.StorageView.from_array(window.copy())
            (result,) = model.generate(given, [["<|startoftranscript|>", "<|notimestamps|>"]], beam_size=1)
            found.append((result.sequences_ids[0], time.process_time() - begin))
        print(json.dumps(found), flush=True)


def compare(table: Path, peer: str, model: str, every: int) -> None:
    import foveate  # isort: skip, before torch: its threads shall sleep
    import numpy as np
    import torch

    from foveate.data.sounds.labelled import labelled_sounds
    from foveate.forms.sound import Heard
    from foveate.forms.whisper import WhisperOptions
    from foveate.forms.whisper_tokens import plain_words
    from foveate.interop.pretrained import locate
    from foveate.metrics.error_rates import error_rate

    torch.set_num_threads(1)
    ours: Any = foveate.load(locate("whisper-tiny.en", print))
    reads, writes = ours.processor.reads, ours.processor.writes
    command = [peer, __file__, str(table), "--answer", "--model", model]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    other: Any = subprocess.Popen(command, env={"OMP_NUM_THREADS": "1"}, **pipes)
    right, texts, seconds = [], [], []
    for example in list(labelled_sounds([table]))[::every]:
        sound = example.read()
        if sound.seconds > 30:
            continue
        begin = time.process_time()
        own = ours.answer_prepared([Heard(sound, reads)], WhisperOptions())[0].text
        taken = [time.process_time() - begin]
        other.stdin.write(np.ascontiguousarray(reads.features(sound).T, np.float32).tobytes())
        other.stdin.flush()
        found = json.loads(other.stdout.readline())
        right.append(plain_words(example.label))
        texts.append([own, *(writes.tokenizer.decode([tokens])[0].strip() for tokens, _ in found)])
        seconds.append([*taken, *(one for _, one in found)])
    other.stdin.close()
    for place, name in enumerate(("foveate", *(f"CTranslate2, {kind}" for kind in KINDS))):
        said = [some[place] for some in texts]
        wrong = error_rate([plain_words(one).split() for one in said], [one.split() for one in right])
        same = sum(one == some[0] for one, some in zip(said, texts, strict=True))
        total = sum(some[place] for some in seconds)
        print(f"{name:<22} WER {wrong:5.1f}  text as foveate's {same} of {len(texts)}  {total:7.1f} s of processor")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--peer")
    parser.add_argument("--model", required=True)
    parser.add_argument("--every", type=int, default=1, help="use every this many sounds")
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.answer:
        answer(given.model)
    else:
        compare(given.table, given.peer, given.model, given.every)


if __name__ == "__main__":
    main()
