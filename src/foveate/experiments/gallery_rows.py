"""The pictures of `foveate gallery`, each with its commands, as a user would type them.

`{out}` stands for the folder of the row.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class GalleryRow:
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


def _bench(name: str, shows: str, minutes: float, page: str, *pictures: str) -> GalleryRow:
    """A comparison of `foveate bench`, which draws one picture of its own name or several."""
    drawn = pictures or (f"{name}.png",)
    return GalleryRow(name, shows, (f"bench {name} --out {{out}}",), drawn, minutes, f"docs/{page}.md")


SHORT = "--learning-rate 0.003 --schedule linear --warmup 100 --validate-every 200 --average 1 --threads 1"
MESSAGES = "--vocabulary 2000 --batch 1024 --validation-examples 200 --architecture.dropout 0.1 "
MESSAGES += "--architecture.encoder-layers 2 --architecture.decoder-layers 2 "
MESSAGES += "--steps 900 --learning-rate 0.003 --schedule linear --warmup 100 --validate-every 300 --average 1"

MESSAGE = "police officer medium skin tone, person running"

SMALL_GPT = "--architecture.width 128 --architecture.layers 3 --architecture.feedforward 512 --threads 1"
FEW_STEPS = "--batch 1024 --steps 40 --warmup 10 --validate-every 10 --validation-examples 200 --save-every 40 "
FEW_STEPS += "--log-every 5 --average 1 --threads 1"

ROWS = (
    _bench(
        "dot-scaling",
        "Entropy, gradient and variance of dot and scaled dot attention, by the width of the keys",
        0.5,
        "comparisons",
    ),
    _bench(
        "traces",
        "Products that a translator computes one after the other, by the length of the sentence",
        0.5,
        "in-parallel",
    ),
    _bench(
        "identity",
        "How much of a shallower net is left in the deeper plain and residual nets that contain it",
        0.5,
        "degradation",
    ),
    _bench("imagenet", "Published accuracy of image classifiers by their operations, counted here", 1, "imagenet"),
    _bench(
        "layers",
        "Time, memory and operations of five layers by length and width; steps that wait for each other",
        3,
        "layers",
        "layers.png",
        "layers-steps.png",
    ),
    _bench(
        "positions",
        "Waves of positions beside a binary counter; accuracy on sequences longer than those of the training",
        6,
        "positions",
        "positions-waves.png",
        "positions.png",
    ),
    _bench("products", "Speed of matrix products and convolutions by the number of channels", 2, "comparisons"),
    _bench(
        "teacher-forcing",
        "Time for a known target at once and for one that is written step by step, by its length",
        3,
        "comparisons",
    ),
    GalleryRow(
        "alignment",
        "Where an RNN with attention and a Transformer look while they translate messages of emoji names",
        ("demo --out {out}",),
        ("alignment-1.png", "alignment-2.png"),
        9,
        "docs/translation.md",
    ),
    GalleryRow(
        "heads",
        "Where a small Transformer looks while it writes, and a page with every head of every layer",
        (
            f"train translate emoji --from-language en --to fr --model transformer-tiny {MESSAGES} --out {{out}}/run",
            f"look {{out}}/run '{MESSAGE}' --out {{out}}/look.html",
            f"run {{out}}/run '{MESSAGE}' --picture {{out}}/writing.gif",
        ),
        ("writing.gif", "look.html"),
        5,
        "docs/looking.md",
    ),
    GalleryRow(
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
    GalleryRow(
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
    GalleryRow(
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
    GalleryRow(
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
    _bench(
        "degradation", "Training and validation error of plain and residual nets of 20 and 56 layers", 33, "degradation"
    ),
    GalleryRow(
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
    GalleryRow(
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
    GalleryRow(
        "answers",
        "Where a model looks in a scene of emoji while it answers a question",
        (
            "train answer emoji-questions --model show-ask-stacked-tiny --batch 128 --steps 600 --validate-every 200 "
            "--save-every 200 --average 1 --threads 1 --out {out}/run",
            "data emoji-questions --count 1 --out {out}/test",
            "run {out}/run {out}/test/1.png 'what colour is the book?' --picture {out}/answers.png",
        ),
        ("answers.png",),
        4,
        "docs/answers.md",
    ),
    GalleryRow(
        "fine-tuning",
        "Loss and accuracy of a classifier of film sentences from MiniLM, and from nothing",
        (
            f"train classify movie-sentiment --model minilm-l6 --from minilm --architecture.pooling mean {FEW_STEPS} "
            "--out {out}/minilm",
            f"train classify movie-sentiment --model minilm-l6 --architecture.pooling mean {FEW_STEPS} "
            "--out {out}/nothing",
            "report {out}/minilm --beside {out}/nothing --curves loss 'validation: accuracy' "
            "--picture {out}/fine-tuning.png --out {out}/report.html",
        ),
        ("fine-tuning.png", "report.html"),
        3,
        "docs/fine-tuning.md",
    ),
    GalleryRow(
        "rlhf",
        "Reward, distance and length of the texts of a language model that learns from rewards",
        (
            "train language movie-sentences --model gpt-tiny --vocabulary 2000 --passage-words 60 --max-length 80 "
            "--steps 150 --validate-every 150 --save-every 150 --learning-rate 0.003 --schedule cosine --warmup 20 "
            f"--average 1 {SMALL_GPT} --out {{out}}/base",
            "train reward movie-preferences --steps 150 --validate-every 150 --save-every 150 --average 1 --threads 1 "
            "--out {out}/reward",
            "train rlhf movie-sentences --from {out}/base --reward {out}/reward --kl-weight 0.3 --steps 50 "
            f"--validate-every 50 --save-every 50 --log-every 2 --learning-rate 0.0003 {SMALL_GPT} --out {{out}}/run",
            "report {out}/run --curves reward kl length --picture {out}/rlhf.png --out {out}/report.html",
        ),
        ("rlhf.png", "report.html"),
        4,
        "docs/rlhf.md",
    ),
    GalleryRow(
        "language",
        "Loss, accuracy and bits per byte of a recurrent language model over the steps of its training",
        (
            "train language prose --model rnn-language --architecture.dropout 0 --passage-words 256 --vocabulary 5000 "
            "--batch 2048 --optimizer muon --learning-rate 0.006 --warmup 30 --schedule linear --precision "
            "bfloat16 --minutes 35 --threads 1 --average 1 --validate-every 200 --save-every 200 --patience 99 "
            "--validation-examples 60 --out {out}/run",
            "report {out}/run --curves loss accuracy 'validation: bits per byte' --picture {out}/language.png "
            "--out {out}/report.html",
        ),
        ("language.png", "report.html"),
        40,
        "docs/language.md",
    ),
)
"""In the order of the list: what needs no training first."""
