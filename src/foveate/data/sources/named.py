"""The table of data by name, and what opens it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from foveate.data.sources import (
    babyai,
    brown,
    debian_descriptions,
    emoji,
    emoji_captions,
    emoji_drawings,
    emoji_questions,
    emoji_scenes,
    exchanged_words,
    facts,
    fashion_mnist,
    fillets,
    gettext_debian,
    halls,
    libreoffice,
    moby_dick,
    movies,
    next_sentences,
    panda,
    prompts,
    prose,
    puppets,
    sotu,
    spoken,
    stamps,
    words,
)
from foveate.data.sources.source import Source, to_stderr
from foveate.data.sources.splits import Splits
from foveate.data.sources.union import union, union_of_prose
from foveate.errors import UserError, unknown

SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        emoji.SOURCE,
        libreoffice.SOURCE,
        libreoffice.WHOLE,
        gettext_debian.SOURCE,
        debian_descriptions.SOURCE,
        brown.SOURCE,
        exchanged_words.SOURCE,
        next_sentences.SOURCE,
        movies.SOURCE,
        movies.JUDGE,
        movies.SENTENCES,
        movies.PREFERENCES,
        sotu.SOURCE,
        moby_dick.SOURCE,
        prose.SOURCE,
        fashion_mnist.SOURCE,
        stamps.SOURCE,
        stamps.CAPTIONS,
        emoji_captions.SOURCE,
        emoji_captions.FRENCH_SOURCE,
        emoji_captions.HELD_OUT_SOURCE,
        emoji_drawings.SOURCE,
        emoji_questions.SOURCE,
        emoji_questions.AS_CAPTIONS,
        words.SOURCE,
        words.SCENES,
        halls.SOURCE,
        babyai.SOURCE,
        panda.SOURCE,
        spoken.SOURCE,
        *prompts.SOURCES,
        *fillets.SOURCES,
        emoji_scenes.SOURCE,
        emoji_scenes.GROUPS,
        emoji_scenes.MASKS,
        puppets.SOURCE,
        facts.SOURCE,
    )
}


def open_source(
    name: str,
    source_language: str = "en",
    target_language: str = "fr",
    announce: Callable[[str], None] = to_stderr,
    task: str = "translate",
) -> Splits[Any]:
    """The named source of the given task, split; fetched into the cache when it is not there yet.

    Several names with "+" between them are one source, see `union`. The two languages count where the source has
    languages. `announce` receives one line: what is fetched, how large it is and under which licence. Raises UserError
    on an unknown source or language, on a source that serves another task, and when fetching fails.
    """
    sources = [_find(part.strip(), task) for part in name.split("+")]
    for source in sources:
        _check_languages(source, source_language, target_language)
    prose = all("language" in source.tasks for source in sources)
    if len(sources) > 1 and not prose and not all(source.languages for source in sources):
        raise UserError(f"{name}: only texts in two languages, and texts of prose, can be joined")
    splits = [_open(source, source_language, target_language, announce) for source in sources]
    if len(splits) == 1:
        return splits[0]
    return union_of_prose(splits) if prose else union(splits)


def _find(name: str, task: str) -> Source:
    if name not in SOURCES and name and Path(name).exists():
        raise UserError(f"'{name}' is not a text by name; to learn from the file, give --data {name}")
    if name not in SOURCES:
        raise unknown("source", name, SOURCES)
    source = SOURCES[name]
    if task not in source.tasks:
        served = ", ".join(source.name for source in SOURCES.values() if task in source.tasks) or "none"
        *most, last = source.tasks
        tasks = f"{', '.join(most)} and {last}" if most else last
        raise UserError(f"{name} is text for {tasks}; sources for {task}: {served}")
    return source


def _check_languages(source: Source, source_language: str, target_language: str) -> None:
    for language in (source_language, target_language) if source.languages else ():
        if language not in source.languages:
            raise unknown(f"language of {source.name}", language, source.languages)
    if source.languages and source_language == target_language:
        raise UserError(f"{source.name}: source and target language are both '{source_language}'")


def _open(source: Source, source_language: str, target_language: str, announce: Callable[[str], None]) -> Splits[Any]:
    def before_fetch(place: Path) -> None:
        announce(f"fetching {source.name} ({source.size}; licence {source.licence}) into {place}")

    languages = (source_language, target_language) if source.languages else ()
    return source.open(*languages, before_fetch)
