"""Text to sound: a model says a text, one audio token after the other."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console
from torch.nn.functional import cross_entropy

from foveate.contracts import IGNORE, Picture
from foveate.data.dataset import Dataset
from foveate.data.sounds.labelled import labelled_sounds
from foveate.data.sounds.layouts import SPOKEN
from foveate.forms.speech import BATCH, ListenOptions, Said, Speech, SpokenText
from foveate.tasks.answers.judges import recognised
from foveate.tasks.recipe import FileTable
from foveate.tasks.skill import Skill
from foveate.tasks.start.parts import AllWeights
from foveate.tasks.task import Task
from foveate.training import SmoothedCrossEntropy, Training


class Speaker(Skill):
    """A speaker in use: measured by the nats of right audio tokens, and by a judge of what it says."""

    def picture(self, answer: Said) -> Picture | None:
        """That of the first part of the text."""
        return super().picture(replace(answer, given=answer.words[0]))

    def measure(
        self, examples: Sequence[Any], options: ListenOptions, console: Console | None = None
    ) -> tuple[list[str], dict[str, float]]:
        """Nats of each audio token; with a judge, the share of sounds that it recognises."""
        reads, writes = self.processor.reads, self.processor.writes
        prepared, nats, count = self.processor.prepare(Dataset("examples", examples)), 0.0, 0
        for begin in range(0, len(prepared), BATCH):
            batch = self.processor.batch(prepared[begin : begin + BATCH], None)
            logits = self.forward(batch.inputs).logits.float().cpu()
            nats += float(cross_entropy(logits.mT, batch.labels, ignore_index=IGNORE, reduction="sum"))
            count += batch.total_weight
        metrics, texts = {"nats": nats / count}, [one.label for one in examples]
        if options.judge is not None:
            inputs = reads.tensors([reads.prepare([text]) for text in texts])[0]
            made = writes.draw_codes(self.model, self.on_device(inputs), options)
            sounds = [writes.learned_codec.decode(codes, options.seed) for codes in made]
            metrics["recognised"] = recognised(options.judge, "classify-sound", sounds, texts)
        return texts, metrics

    def baselines(self, examples: Sequence[Any], options: ListenOptions) -> dict[str, dict[str, float]]:
        """The most frequent tokens; with a judge, real sounds, and real sounds that went through the codebook."""
        codec = self.processor.writes.learned_codec
        sounds, texts = [one.read() for one in examples], [one.label for one in examples]
        codes = [codec.encode(sound) for sound in sounds]
        found = {"frequency of each token": {"nats": self.processor.writes.frequency_nats(codes)}}
        if options.judge is not None:
            through = [codec.decode(one.tolist(), options.seed) for one in codes]
            for name, some in (("real sounds through the codebook", through), ("real sounds", sounds)):
                found[name] = {"recognised": recognised(options.judge, "classify-sound", some, texts)}
        return found


TASK = Task(
    name="speak",
    about="Train a model that says texts.",
    families=("transformer",),
    reads=SpokenText(),
    writes=Speech(),
    objective=SmoothedCrossEntropy(),
    read=lambda paths, recipe: labelled_sounds(paths, spoken=True),
    files="TABLE",
    layout="Your own sounds: a table with sound<TAB>text on each line, or a folder with one folder for each text.",
    layouts=SPOKEN,
    examples=FileTable(batch=1000, validation_examples=200),
    model="speaker-tiny",
    training=Training(
        epochs=12,
        optimizer="muon",
        learning_rate=8e-3,
        schedule="cosine",
        warmup=20,
        validate_every=200,
        save_every=200,
    ),
    start=AllWeights(),
    unit="tokens",
    skill=lambda: Speaker,
)
