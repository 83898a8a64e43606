"""Short stories of who goes where and who carries what, with questions: to learn to read for a question.

They are like the first bAbI tasks (Weston et al. 2015, https://arxiv.org/abs/1502.05698), in words of our own.
"""

import random

from foveate.data.dataset import Dataset
from foveate.data.sources.cache import BeforeFetch
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits
from foveate.data.text.facts import TextQuestion

PEOPLE = ("Ada", "Ben", "Clara", "David", "Emma", "Felix", "Grace", "Henry")
PLACES = ("attic", "barn", "cellar", "garden", "kitchen", "library", "market", "station")
THINGS = ("apple", "book", "coat", "key", "lamp", "letter", "map", "umbrella")
MOVES = ("went to the", "walked to the", "ran to the", "is now in the")
TAKES = ("took the", "picked up the", "carries the")

COUNTS = {"train": 12_000, "dev": 1_000, "test": 1_000}
"""Questions of each part; each has a story of its own."""

MOST_SENTENCES = 8


def open_facts(before_fetch: BeforeFetch) -> Splits[Dataset[TextQuestion]]:
    """Stories of 2 to 8 sentences with a question each. Nothing is fetched; no story is in two parts."""
    seen: set[str] = set()
    parts = []
    for seed, (part, count) in enumerate(COUNTS.items()):
        generator = random.Random(seed)
        found: list[TextQuestion] = []
        while len(found) < count:
            one = random_question(f"facts.{part}, story {len(found) + 1}", generator)
            if one.text not in seen:
                seen.add(one.text)
                found.append(one)
        parts.append(Dataset(f"facts.{part}", found, "questions"))
    return Splits(*parts)


def random_question(place: str, generator: random.Random) -> TextQuestion:
    """A story and a question about it. Who moves again is where the last move says; who has a thing took it last."""
    people = generator.sample(PEOPLE, 4)
    where: dict[str, tuple[str, int]] = {}
    owner: dict[str, tuple[str, int]] = {}
    sentences: list[str] = []
    for number in range(generator.randint(2, MOST_SENTENCES)):
        person = generator.choice(people)
        if generator.random() < 0.6:
            where[person] = generator.choice(PLACES), number
            sentences.append(f"{person} {generator.choice(MOVES)} {where[person][0]}.")
        else:
            thing = generator.choice(THINGS)
            owner[thing] = person, number
            sentences.append(f"{person} {generator.choice(TAKES)} {thing}.")
    asks_where = bool(where) and (not owner or generator.random() < 0.5)
    known = where if asks_where else owner
    subject = generator.choice(sorted(known))
    answer, sentence = known[subject]
    question = f"Where is {subject}?" if asks_where else f"Who has the {subject}?"
    return TextQuestion(place, " ".join(sentences), question, answer, "where" if asks_where else "who", sentence)


SOURCE = Source(
    name="facts",
    tasks=("ask",),
    about="14,000 short stories of who goes where and who takes what, a question each; made on this machine",
    size="0 MB, nothing is fetched",
    licence="none needed",
    open=open_facts,
)
