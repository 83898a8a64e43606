"""Transcription: a model writes what is said in a sound, one character after the other."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from foveate.data.dataset import Dataset
from foveate.data.sounds.files import Sound, read_sound
from foveate.data.sounds.labelled import LabelledSound, labelled_sounds
from foveate.data.sounds.speech_processor import SpeechProcessor
from foveate.data.sounds.stream import Read
from foveate.data.tokens.character_tokens import find_characters
from foveate.errors import at_least
from foveate.forms.checks import unseen_labels
from foveate.forms.sound_files import choose_log_mel, read_or_report, sound_files
from foveate.tasks.answers.transcripts import (
    Search,
    TimedSearch,
    Transcript,
    joined,
    look_at,
    part_times,
    text_metrics,
    transcribe_parts,
    transcribe_sounds,
    transcripts_as_they_come,
    why_too_long,
)
from foveate.tasks.former.predictor import Measured, Predictor
from foveate.tasks.former.recipe import Architecture, Training
from foveate.tasks.former.task import Examples, Task
from foveate.tasks.start.parts import WholeRun
from foveate.training import Objective
from foveate.training.objectives.joint_ctc import JointCTC
from foveate.viewer.protocol import Input, LookResult


@dataclass
class SpokenTexts(Examples):
    """Which sounds to learn from, a table with sound<TAB>text on each line, and what becomes of them."""

    batch: int = 6000
    """Frames of a batch, padding included; there are a hundred in a second."""
    validation_examples: int = 200
    """Sounds that each validation during training transcribes."""
    rate: int | None = None
    """Sampling rate that sounds are resampled to. By default that of the first sound, at most 16,000 Hz."""
    bands: int | None = None
    """Bands of the spectrogram. By default 40 up to 8,000 Hz, else 80."""
    augment: bool = True
    """Mask bands and stretches of time in training, at random (SpecAugment)."""


@dataclass
class Transcribe(Task[Architecture]):
    """Train a model that writes what is said in sounds.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (examples,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "transcribe"
    unit = "characters"
    files = "TABLE"
    takes = "audio"
    metric = "character_error_rate"
    higher_is_better = False
    processor = SpeechProcessor
    options = TimedSearch
    start_parts = WholeRun(grows="vocabulary")
    default_training = Training(
        usual_epochs=20,
        schedule="cosine",
        usual_warmup=200,
        label_smoothing=0.05,
        validate_every=300,
        save_every=300,
    )

    examples: Annotated[SpokenTexts, tyro.conf.arg(name="")] = field(default_factory=SpokenTexts)
    ctc: float = 0.3
    """Weight of the CTC loss of the encoder, for models that have an output layer for it."""
    model: str = "las-tiny"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/transcribe")
    """Folder for the trained model; a training that it holds is resumed."""

    def check(self) -> None:
        super().check()
        at_least(0, "ctc", self.ctc)

    @classmethod
    def eval_options(cls, recipe: Mapping[str, Any], where: str) -> Search:
        return Search()

    def read(self, paths: Sequence[Path]) -> Dataset[LabelledSound]:
        return labelled_sounds(paths, problem_of=why_too_long)

    def fit(self, train: Dataset[LabelledSound]) -> SpeechProcessor:
        chosen, texts = self.examples, Counter(one.label for one in train)
        log_mel = choose_log_mel(train[0].rate, chosen.rate, chosen.bands)
        (frequent, _), *_ = texts.most_common(1)
        longest = max(one.seconds for one in train)
        characters = find_characters(texts.elements())
        return SpeechProcessor(log_mel, characters, longest, frequent, chosen.augment)

    def grow(self, trained: SpeechProcessor, train: Dataset[LabelledSound]) -> SpeechProcessor:
        found, chosen = self.fit(train), self.examples
        if chosen.rate is None and chosen.bands is None:
            found = replace(found, log_mel=trained.log_mel)
        return replace(found, characters="".join(dict.fromkeys(trained.characters + found.characters)))

    def objective(self) -> Objective:
        return JointCTC(super().objective(), self.ctc, SpeechProcessor.special)

    def expand(self, places: Sequence[str]) -> list[str]:
        return sound_files(places)

    def answer(self, predictor: Predictor, texts: Sequence[str], options: TimedSearch) -> list[Transcript]:
        """What is said in the sound of each file; a file that cannot be used is reported and gets no text."""
        options.check()
        sounds, errors = read_or_report(texts)
        found = {place: Transcript(place, error=error) for place, error in errors.items()}
        for place, one in zip(sounds, self._transcripts(predictor, [*sounds.values()], options), strict=True):
            found[place] = replace(one, place=place)
        return [found[place] for place in texts]

    def hear(self, predictor: Predictor, read: Read, options: TimedSearch) -> Iterator[Transcript]:
        """What is said in a stream of sound, part by part, as soon as each is there."""
        options.check()
        longest = options.cut or predictor.processor.longest
        return transcripts_as_they_come(
            read, longest, options.raw, lambda sound: next(self._transcripts(predictor, [sound], options))
        )

    def _transcripts(self, predictor: Predictor, sounds: Sequence[Sound], options: TimedSearch) -> Iterator[Transcript]:
        for sound, parts in zip(sounds, transcribe_parts(predictor, sounds, options), strict=True):
            text, log_prob = joined(predictor.processor, parts)
            times = part_times(predictor, parts) if options.times else None
            yield Transcript("", text, log_prob, sound.seconds, times=times)

    def measure(self, predictor: Predictor, examples: Sequence[LabelledSound], options: Search) -> Measured:
        texts = [text for text, _ in transcribe_sounds(predictor, [one.read() for one in examples], options)]
        return Measured(texts, text_metrics(texts, [one.label for one in examples]))

    def baselines(
        self, predictor: Predictor, examples: Sequence[LabelledSound], options: Search
    ) -> dict[str, dict[str, float]]:
        """The most frequent transcript of the training part."""
        right, frequent = [one.label for one in examples], predictor.processor.frequent
        return {"the most frequent transcript": text_metrics([frequent] * len(right), right)}

    def notes(self, predictor: Predictor, examples: Sequence[LabelledSound]) -> list[str]:
        """How many sounds are longer than those of the training, and which characters it had none of."""
        longest = predictor.processor.longest
        count = sum(one.seconds > longest for one in examples)
        long = [f"{count:,} are longer than any in training ({longest:.1f} seconds)"] if count else []
        characters = [character for one in examples for character in one.label]
        return [*long, *unseen_labels("characters", characters, predictor.processor.characters)]

    def picture(self, predictor: Predictor, prediction: Transcript) -> Any:
        """The spectrogram, and below it where the model looked when it wrote each character.

        Of several layers it is the one that looks most decidedly, as the mean of its heads. With --times, the times of
        the words are drawn too.
        """
        from foveate.viewer.speech_figure import draw

        sound = read_sound(Path(prediction.place))
        spectrogram, sight = look_at(predictor, sound, prediction.text)
        maps = [sight[site].weights()[0].mean(0).float().cpu() for site in sight.sites]
        weights = max(maps, key=lambda found: float(found.amax(-1).mean()))
        words = [(one.word, one.start, one.end) for one in prediction.times or []]
        return draw(spectrogram, weights.numpy(), [*prediction.text, "end"], sound.seconds, prediction.text, words)

    def look(
        self, predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None = None
    ) -> LookResult:
        from foveate.tasks.looking.transcripts import look_at_transcript

        return look_at_transcript(predictor, given, max_length, sites)
