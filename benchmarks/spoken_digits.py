"""Tables to train and test speech models on, made from the free spoken digit dataset (8 kHz, six speakers).

    python benchmarks/spoken_digits.py FOLDER OUT [--sounds 6000] [--without SPEAKER]

FOLDER has the recordings `{digit}_{speaker}_{number}.wav`. Numbers 0 to 4 are the test part, as in the dataset's own
split. OUT gets joined digits of one speaker, with pauses of up to 0.2 s, and their tables of sound<TAB>text:

    train.tsv                 as many sounds of 1 to 5 digits as --sounds says
    test-5.tsv                600 sounds of 1 to 5 digits
    test-7.tsv, test-10.tsv   300 sounds of 7 and of 10 digits

and tables of the single recordings, sound<TAB>label, for digits and speakers: `digits-train.tsv`, `digits-test.tsv`,
`speakers-train.tsv`, `speakers-test.tsv`. With --without, the training part has no sound of the speaker, and the test
part no sound of others.
"""

import argparse
import random
import wave
from collections import defaultdict
from pathlib import Path

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

TESTED = 5
"""Recordings of each digit and speaker with a lower number are the test part."""

RATE, WIDTH = 8000, 2

LONGEST_PAUSE = 0.2

Recordings = dict[str, dict[str, list[Path]]]
"""Files by speaker and digit."""


def find(folder: Path, test: bool, without: str | None) -> Recordings:
    """The recordings of one part."""
    found: Recordings = defaultdict(lambda: defaultdict(list))
    for path in sorted(folder.glob("*_*_*.wav")):
        digit, speaker, number = path.stem.split("_")
        wanted = without is None or (speaker == without) == test
        if wanted and (int(number) < TESTED) == test:
            found[speaker][digit].append(path)
    if not found:
        raise SystemExit(f"{folder} has no recordings of this part")
    return found


def join(recordings: Recordings, count: int, lengths: tuple[int, int], out: Path, seed: int) -> None:
    """Write `count` sounds of as many digits as `lengths` allows, and their table."""
    draw, lines = random.Random(seed), []
    sounds = out / out_name(lengths, count)
    sounds.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        speaker = draw.choice(sorted(recordings))
        digits = [draw.choice(sorted(recordings[speaker])) for _ in range(draw.randint(*lengths))]
        data = b"".join(
            frames(draw.choice(recordings[speaker][digit]))
            + bytes(WIDTH * round(draw.uniform(0, LONGEST_PAUSE) * RATE))
            for digit in digits
        )
        path = sounds / f"{number}_{speaker}.wav"
        with wave.open(str(path), "wb") as file:
            file.setparams((1, WIDTH, RATE, 0, "NONE", ""))
            file.writeframes(data)
        lines.append(f"{path.relative_to(out)}\t{' '.join(WORDS[int(digit)] for digit in digits)}")
    (out / f"{sounds.name}.tsv").write_text("\n".join(lines) + "\n")


def out_name(lengths: tuple[int, int], count: int) -> str:
    return "train" if count > 600 else f"test-{lengths[1]}"


def frames(path: Path) -> bytes:
    with wave.open(str(path)) as file:
        if (file.getframerate(), file.getsampwidth(), file.getnchannels()) != (RATE, WIDTH, 1):
            raise SystemExit(f"{path} is not of {RATE} Hz, 16 bits and one channel")
        return file.readframes(file.getnframes())


def label(recordings: Recordings, out: Path, part: str) -> None:
    """Write the tables of single recordings."""
    files = [(path, speaker, digit) for speaker, own in recordings.items() for digit in own for path in own[digit]]
    for name, place in (("speakers", 1), ("digits", 2)):
        lines = [f"{file[0].resolve()}\t{file[place]}" for file in files]
        (out / f"{name}-{part}.tsv").write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--sounds", type=int, default=6000, help="how many sounds to learn from, more than 600")
    parser.add_argument("--without", help="speaker to leave out of the training part")
    given = parser.parse_args()
    train, test = (find(given.folder, part, given.without) for part in (False, True))
    join(train, given.sounds, (1, 5), given.out, seed=1)
    join(test, 600, (1, 5), given.out, seed=2)
    for length in (7, 10):
        join(test, 300, (length, length), given.out, seed=length)
    label(train, given.out, "train")
    label(test, given.out, "test")


if __name__ == "__main__":
    main()
