"""Reward models: a number for a text, learned from pairs of which people like the first text better."""

from foveate.data.text.preferences import read_preferences
from foveate.forms.reward import JudgedText, Reward
from foveate.models.text import CAUSAL
from foveate.tasks.start.parts import LanguageModelBody
from foveate.tasks.task import Examples, Task
from foveate.training import Training
from foveate.training.objectives.preferences import BradleyTerry

TASK = Task(
    name="reward",
    about="""Train a reward model: the better text of each pair is to get the larger number.

    `foveate train rlhf` then tunes a language model to please it.""",
    families=("rnn-encoder", "transformer-encoder", "bert", "deberta", *CAUSAL),
    head="text",
    reads=JudgedText(),
    writes=Reward(),
    objective=BradleyTerry(),
    read=lambda paths, recipe: read_preferences(paths),
    files="FILE",
    layout="Your own pairs: a file with better<TAB>worse on each line; plain or .gz.",
    examples=Examples(batch=4096),
    model="rnn-attentive-classifier",
    training=Training(
        usual_epochs=3,
        learning_rate=2e-3,
        schedule="linear",
        usual_warmup=50,
        validate_every=100,
        save_every=100,
    ),
    start=LanguageModelBody(),
    unit="pairs",
)
