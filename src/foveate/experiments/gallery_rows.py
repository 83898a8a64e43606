"""The pictures of `foveate gallery`, each with its commands, as a user would type them.

`{out}` stands for the folder of the row.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A picture, or several, with the commands that make them."""

    name: str
    shows: str
    commands: tuple[str, ...]
    """Without the word `foveate`; `{out}` is the folder of the row."""
    results: tuple[str, ...]
    """Names of the pictures and pages that the commands write into `{out}`."""
    minutes: float
    """Time on two cores, rounded up."""
    page: str
    """The page of the documentation that explains the picture."""


SHORT = "--learning-rate 0.003 --schedule linear --warmup 100 --validate-every 200 --average 1 --threads 1"
MESSAGES = "--vocabulary 2000 --batch-tokens 1024 --validation-sentences 200 --architecture.dropout 0.1 "
MESSAGES += "--steps 900 --learning-rate 0.003 --schedule linear --warmup 100 --validate-every 300 --average 1"

MESSAGE = "woman singer dark skin tone, man in lotus position medium-light skin tone"

ROWS = (
    Row(
        "dot-scaling",
        "Entropy, gradient and variance of dot and scaled dot attention, by the width of the keys",
        ("bench dot-scaling --out {out}",),
        ("dot-scaling.png",),
        0.5,
        "docs/comparisons.md",
    ),
    Row(
        "traces",
        "Products that a translator computes one after the other, by the length of the sentence",
        ("bench traces --out {out}",),
        ("traces.png",),
        0.5,
        "docs/in-parallel.md",
    ),
    Row(
        "identity",
        "How much of a shallower net is left in the deeper plain and residual nets that contain it",
        ("bench identity --out {out}",),
        ("identity.png",),
        0.5,
        "docs/degradation.md",
    ),
    Row(
        "imagenet",
        "Published accuracy of image classifiers by their operations, counted here",
        ("bench imagenet --out {out}",),
        ("imagenet.png",),
        1,
        "docs/imagenet.md",
    ),
    Row(
        "layers",
        "Time, memory and operations of five layers by length and width; steps that wait for each other",
        ("bench layers --out {out}",),
        ("layers.png", "layers-steps.png"),
        3,
        "docs/layers.md",
    ),
    Row(
        "positions",
        "Waves of positions beside a binary counter; accuracy on sequences longer than those of the training",
        ("bench positions --out {out}",),
        ("positions-waves.png", "positions.png"),
        6,
        "docs/positions.md",
    ),
    Row(
        "products",
        "Speed of matrix products and convolutions by the number of channels",
        ("bench products --out {out}",),
        ("products.png",),
        2,
        "docs/comparisons.md",
    ),
    Row(
        "teacher-forcing",
        "Time for a known target at once and for one that is written step by step, by its length",
        ("bench teacher-forcing --out {out}",),
        ("teacher-forcing.png",),
        3,
        "docs/comparisons.md",
    ),
    Row(
        "alignment",
        "Where an RNN with attention and a Transformer look while they translate messages of emoji names",
        ("demo --out {out}",),
        ("alignment-1.png", "alignment-2.png"),
        9,
        "docs/translation.md",
    ),
    Row(
        "heads",
        "Where a small Transformer looks while it writes, and a page with every head of every layer",
        (
            f"train translate emoji --from-language en --to fr --model transformer-tiny {MESSAGES} --out {{out}}/run",
            "look {out}/run 'woman singer dark skin tone' --out {out}/look.html",
            f"run {{out}}/run '{MESSAGE}' --picture {{out}}/writing.gif",
        ),
        ("writing.gif", "look.html"),
        5,
        "docs/looking.md",
    ),
    Row(
        "saccades",
        "Where a captioner looks in a scene of emoji, word by word",
        (
            "train caption emoji-captions --model show-attend-tell-tiny --steps 700 --threads 1 --out {out}/run",
            "data emoji-captions --count 1 --out {out}/test",
            "run {out}/run {out}/test/1.png --picture {out}/saccades.png",
        ),
        ("saccades.png",),
        10,
        "docs/captions.md",
    ),
    Row(
        "spectrogram",
        "A spectrogram with the words that Whisper hears, above the attention of each token",
        (
            "data spoken --count 1 --out {out}/test",
            "run whisper-tiny.en {out}/test/1.wav --picture {out}/spectrogram.png",
        ),
        ("spectrogram.png",),
        8,
        "docs/whisper.md",
    ),
    Row(
        "boxes",
        "Boxes around the emoji of a scene, and where the query of each box looks",
        (
            "train detect emoji-scenes-groups --model detr-lite0-tiny --from efficientnet-lite0 --freeze backbone "
            "--no-augment --batch 8 --optimizer muon --learning-rate 4e-3 --warmup 100 --minutes 22 "
            "--validate-every 1000 --validation-examples 100 --average 1 --threads 1 --out {out}/run",
            "data emoji-scenes-groups --count 1 --out {out}/test",
            "run {out}/run {out}/test/1.png --picture {out}/boxes.png",
        ),
        ("boxes.png",),
        26,
        "docs/detection.md",
    ),
    Row(
        "walk",
        "The words of an instruction that each action on a map attends to",
        (
            "train walk halls --epochs 20 --threads 1 --out {out}/run",
            "data halls --count 1 --out {out}/test",
            "look {out}/run {out}/test/1.txt --out {out}/walk.html",
        ),
        ("walk.html",),
        4,
        "docs/walking.md",
    ),
    Row(
        "degradation",
        "Training and validation error of plain and residual nets of 20 and 56 layers",
        ("bench degradation --out {out}",),
        ("degradation.png",),
        33,
        "docs/degradation.md",
    ),
    Row(
        "words",
        "The words that a classifier of film reviews looks at",
        (
            f"train classify movie-sentiment --steps 400 {SHORT} --out {{out}}/run",
            "run {out}/run 'A gripping, beautifully acted drama.' --picture {out}/words.png",
        ),
        ("words.png",),
        3,
        "docs/classification.md",
    ),
    Row(
        "tags",
        "Where each word of a sentence looks in a Transformer that tags parts of speech",
        (
            f"train tag brown --model transformer-tagger --steps 400 {SHORT} --out {{out}}/run",
            "run {out}/run 'They refuse to permit us to obtain the refuse permit .' --picture {out}/tags.png",
        ),
        ("tags.png",),
        3,
        "docs/tagging.md",
    ),
)
"""In the order of the list: what needs no training first."""
