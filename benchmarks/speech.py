"""Models of sounds and words beside public ones, with the same weights: how fast they are, and what a look costs.

    python benchmarks/speech.py            # all parts
    python benchmarks/speech.py whisper    # one of whisper, sar, speller, look, data

- whisper: a window of 30 seconds is encoded and 40 tokens are written, in single precision, by transformers' Whisper
  and by ours (the sizes of tiny.en, random weights).
- sar: 16 images of words, what is behind the backbone, by mmocr's SAR and ours (pip install --no-deps mmocr).
- speller: forward and backward pass of the decoder of Listen, Attend and Spell for 20 sounds of 45 characters, by
  speechbrain's attentional decoder and ours (pip install --no-deps speechbrain).
- look: a pass of LAS and of a Whisper while `foveate.look` is open, against one without.
- data: the share of a training step of LAS that its batch takes.

Both sides run in one process with one thread, by turns. Times are processor times; ratios are medians of pairs.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import foveate  # isort: skip, before torch: its threads shall sleep, not spin, while others work on the machine

import numpy as np
import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration

from foveate.data.sounds.spectrograms import LogMel
from foveate.decoding import Decoding, generate
from foveate.decoding.sound_generator import SoundGenerator
from foveate.forms.processor import PreparedExample, Processor
from foveate.forms.sound import SpokenSound
from foveate.forms.transcripts import Transcript
from foveate.inference.cpu import optimize_for_cpu
from foveate.interop.public_folder import read_folder
from foveate.training import Training
from foveate.training.objectives.joint_ctc import JointCTC
from foveate.training.update import Updater

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "parity"))

TOKENS, SECONDS = 40, 30
SOUNDS, CHARACTERS, PLACES, WIDTH = 20, 45, 75, 128


def seconds_of(run: Callable[[], object]) -> float:
    begin = time.process_time()
    run()
    return time.process_time() - begin


def compare(name: str, theirs: Callable[[], object], ours: Callable[[], object], pairs: int) -> None:
    """Print the medians of both, and the median ratio of a pair."""
    theirs(), ours()
    found = []
    for number in range(pairs):
        runs = [theirs, ours] if number % 2 else [ours, theirs]
        times = [seconds_of(run) for run in runs]
        found.append(times if number % 2 else times[::-1])
    other, own = (statistics.median(column) for column in zip(*found, strict=True))
    ratio = statistics.median(one / two for one, two in found)
    print(f"{name:<34} {1000 * other:9.1f} ms {1000 * own:9.1f} ms  {ratio:5.2f}", flush=True)


def whisper_pair() -> tuple[WhisperForConditionalGeneration, Any]:
    """transformers' model with random weights, and ours with the same."""
    torch.manual_seed(0)
    heads = {"encoder_attention_heads": 6, "decoder_attention_heads": 6}
    config = WhisperConfig(vocab_size=51_864, **heads)
    theirs = WhisperForConditionalGeneration(config).eval()
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        return theirs, read_folder(Path(folder)).model.eval()


def whisper(pairs: int) -> None:
    theirs, ours = whisper_pair()
    ours = optimize_for_cpu(ours)
    sound = torch.randn(1, 80, 100 * SECONDS)
    theirs.generation_config.eos_token_id = None
    start = theirs.config.decoder_start_token_id
    values = theirs.config.to_dict()
    options = {"max_new_tokens": TOKENS, "do_sample": False, "eos_token_id": None, "suppress_tokens": None}

    def public() -> object:
        with torch.inference_mode():
            return theirs.generate(sound, begin_suppress_tokens=None, **options)

    def own() -> object:
        with torch.inference_mode():
            generator: Any = SoundGenerator(
                ours, sound.mT, {**values, "suppress_tokens": [], "begin_suppress_tokens": []}
            )
            return generate(generator, [[start]], Decoding("greedy", max_new_tokens=TOKENS), set())

    compare("Whisper, transformers | foveate", public, own, pairs)


def sar(pairs: int) -> None:
    from mmocr_sar import mmocr_sar

    model: Any = foveate.create("sar", vocabulary=97).eval()
    with mmocr_sar() as (encoder, decoder):
        words = SimpleNamespace(num_classes=97, start_idx=1, padding_idx=0)
        read, write = encoder(d_model=512, d_enc=512).eval(), decoder(words, d_model=512, d_enc=512, d_k=512).eval()
    grid, target = torch.randn(16, 512, 6, 40), torch.randint(4, 97, (16, 10))
    model.backbone.grid = lambda pixels: grid
    widths, ratios = torch.full((16,), 160), [1.0] * 16

    def public() -> object:
        with torch.inference_mode():
            whole = read(grid, [{"valid_ratio": 1.0}] * 16)
            inputs = torch.cat([whole[:, None], write.embedding(target)], 1)
            return write._2d_attention(inputs, grid, whole[:, None], ratios)

    def own() -> object:
        with torch.inference_mode():
            return model(grid, widths, target)

    compare("SAR behind the backbone, mmocr | foveate", public, own, pairs)


def speller(pairs: int) -> None:
    from speechbrain_decoder import attentional_decoder

    sizes = {"hidden_size": WIDTH, "attn_dim": WIDTH, "enc_dim": WIDTH, "input_size": 64, "num_layers": 1}
    theirs = attentional_decoder()("lstm", "content", **sizes)
    ours: Any = foveate.create("las-tiny", bands=40, vocabulary=30, score="additive")
    encoded = torch.randn(SOUNDS, PLACES, WIDTH, requires_grad=True)
    characters, lengths = torch.randn(SOUNDS, CHARACTERS, 64), torch.full((SOUNDS,), PLACES)

    def own() -> None:
        zeros = torch.zeros(1, SOUNDS, WIDTH)
        ours.speller(characters, ours.speller.start((zeros, zeros), encoded, lengths))[0].sum().backward()

    compare(
        "speller, step of training, speechbrain | foveate",
        lambda: theirs(characters, encoded, lengths / PLACES)[0].sum().backward(),
        own,
        pairs,
    )


def look(pairs: int) -> None:
    _, whisper_model = whisper_pair()
    las: Any = foveate.create("las-tiny", bands=40, vocabulary=30).eval()
    sound, lengths = torch.randn(SOUNDS, 4 * PLACES, 40), torch.full((SOUNDS,), 4 * PLACES)
    target = torch.randint(4, 30, (SOUNDS, CHARACTERS))
    window, tokens = torch.randn(1, 100 * SECONDS, 80), torch.randint(4, 50_000, (1, TOKENS))
    inputs: dict[str, tuple[Any, tuple[torch.Tensor, ...]]] = {
        "LAS": (las, (sound, lengths, target)),
        "Whisper": (whisper_model, (window, torch.tensor([100 * SECONDS]), tokens)),
    }
    for name, (model, given) in inputs.items():

        def plain(model: Any = model, given: Any = given) -> None:
            with torch.inference_mode():
                model(*given)

        def looked(model: Any = model, given: Any = given) -> None:
            with torch.inference_mode(), foveate.look(model):
                model(*given)

        compare(f"{name}, looked at | not", looked, plain, pairs)


def data(pairs: int) -> None:
    generator = np.random.default_rng(1)
    letters = "abcdefghijklmnopqrstuvwxyz "
    processor = Processor(SpokenSound(log_mel=LogMel(8000, 40), longest=4.0), Transcript(characters=letters))
    tokens = np.array([1, *(4 + one % 27 for one in range(CHARACTERS)), 2], np.int32)
    sounds = [
        PreparedExample(generator.normal(size=(4 * PLACES, 40)).astype(np.float16), tokens) for _ in range(SOUNDS)
    ]
    model: Any = foveate.create("las-tiny", bands=40, vocabulary=31)
    update = Updater(model, JointCTC(), Training(precision="float32"))
    batch = processor.batch(sounds, generator)
    compare("LAS, batch | step", lambda: processor.batch(sounds, generator), lambda: update([batch], 1e-3, 1), pairs)


PARTS = {"whisper": whisper, "sar": sar, "speller": speller, "look": look, "data": data}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--pairs", type=int, default=9)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    for part in chosen.parts or PARTS:
        PARTS[part](chosen.pairs)


if __name__ == "__main__":
    main()
