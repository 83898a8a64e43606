"""Reward models: a number for a text, learned from pairs of which people like the first text better."""

from foveate.data.text.preferences import read_preferences
from foveate.forms.reward import JudgedText, Reward
from foveate.models.text import CAUSAL
from foveate.tasks.recipe import TableExamples
from foveate.tasks.start.parts import AllWeights, RunOrBody
from foveate.tasks.task import Task
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
    layout="Your own pairs: a file with better<TAB>worse on each line; plain or .gz. Or answers in conversations, as "
    "trl has them: JSON lines with lists of messages, prompt, chosen and rejected.",
    examples=TableExamples(batch=4096),
    model="rnn-attentive-classifier",
    training=Training(
        usual_epochs=3,
        learning_rate=2e-3,
        schedule="linear",
        usual_warmup=50,
        validate_every=100,
        save_every=100,
    ),
    start=RunOrBody(AllWeights()),
    unit="pairs",
)
