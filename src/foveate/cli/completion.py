"""`foveate completion SHELL`: what the shell needs to complete commands with the tab key."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from foveate.cli import VERBS
from foveate.cli.parse import parse
from foveate.data.sources import SOURCES
from foveate.experiments import COMPARISONS
from foveate.experiments.gallery import ROWS
from foveate.models import presets
from foveate.tasks import TASKS, find_task

OPTIONS = {
    "train": "--data --validation --model --from --out --epochs --steps --minutes --learning-rate --batch --optimizer "
    "--schedule --warmup --threads --device --seed --config --help --help-all",
    "run": "--file --picture --output --json --device --help --help-all",
    "serve": "--host --port --batch --device --help",
    "eval": "--data --output --json --device --help --help-all",
    "compare": "--data --picture --json --device --help",
    "look": "--out --beside --measure --open --sites --title --max-tokens --device --help",
    "effect": "--target --out --picture --json --top --exact --sites --max-tokens --device --help",
    "explore": "--beside --host --port --open --max-tokens --device --help",
    "bench": "--help",
    "gallery": "--out --budget --help",
    "report": "--input --out --help",
    "export": "--out --help",
    "push": "--private --help",
    "size": "--gpus --gpu --help",
    "demo": "--out --help",
    "data": "--out --count --help",
    "models": "--vocabulary --help",
}
"""The options of each command that are completed; those of one model or task alone are left to `--help-all`."""

BASH = """# foveate's completion for bash: eval "$(foveate completion bash)" in ~/.bashrc
_foveate() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} verb=${{COMP_WORDS[1]}} words=
    if [ "$word" = "=" ]; then word=  # bash takes "--model=name" for three words
    elif [ "$before" = "=" ]; then before=${{COMP_WORDS[COMP_CWORD-2]}}
    fi
    if [ "$COMP_CWORD" -eq 1 ]; then words="{verbs} --help --version"
    elif [ "$before" = --model ] || [ "$before" = -m ]; then
        case ${{COMP_WORDS[2]}} in
{models}
            *) words="{presets}" ;;
        esac
    elif [[ $word == -* ]]; then
        case $verb in
{options}
        esac
    elif [ "$COMP_CWORD" -eq 2 ]; then
        case $verb in
            train|models) words="{tasks}" ;;
            bench) words="{comparisons}" ;;
            gallery) words="{pictures}" ;;
            help) words="{verbs}" ;;
            completion) words="bash zsh fish" ;;
            size) words="{presets}" ;;
        esac
    elif [ "$COMP_CWORD" -eq 3 ] && [ "$verb" = train ]; then
        case ${{COMP_WORDS[2]}} in
{sources}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _foveate foveate
"""

ZSH = """# foveate's completion for zsh: eval "$(foveate completion zsh)" in ~/.zshrc
autoload -Uz bashcompinit && bashcompinit
"""

FISH = """# foveate's completion for fish: foveate completion fish > ~/.config/fish/completions/foveate.fish
complete -c foveate -n __fish_use_subcommand -f -a "{verbs}"
complete -c foveate -n "__fish_seen_subcommand_from train models" -a "{tasks}"
complete -c foveate -n "__fish_seen_subcommand_from bench" -f -a "{comparisons}"
complete -c foveate -n "__fish_seen_subcommand_from gallery" -f -a "{pictures}"
complete -c foveate -n "__fish_seen_subcommand_from size" -f -a "{presets}"
complete -c foveate -n "__fish_seen_subcommand_from completion" -f -a "bash zsh fish"
{models}
{sources}
{options}"""


@dataclass
class ShellCompletion:
    """Print what a shell needs to complete verbs, tasks, presets, data by name and common options with the tab key."""

    shell: Annotated[Literal["bash", "zsh", "fish"], tyro.conf.Positional, tyro.conf.arg(metavar="SHELL")]
    """bash, zsh or fish; the first line that is printed says where it goes."""


def main(arguments: Sequence[str]) -> None:
    shell = parse(ShellCompletion, arguments, "completion").shell
    known = {
        "verbs": " ".join(VERBS),
        "tasks": " ".join(TASKS),
        "presets": " ".join(presets()),
        "comparisons": " ".join(COMPARISONS),
        "pictures": " ".join(row.name for row in ROWS),
    }
    own = {task: " ".join(find_task(task).presets()) for task in TASKS}
    data = {task: " ".join(name for name, source in SOURCES.items() if task in source.tasks) for task in TASKS}
    if shell == "fish":
        lines = {"models": _fish_words(own, " -l model -s m -x"), "sources": _fish_words(data, "")}
        print(FISH.format(options="\n".join(_fish_options()), **lines, **known))
        return
    cases = {"models": _bash_cases(own), "sources": _bash_cases(data), "options": _bash_cases(OPTIONS)}
    print((ZSH if shell == "zsh" else "") + BASH.format(**cases, **known), end="")


def _bash_cases(words: Mapping[str, str]) -> str:
    return "\n".join(f'            {name}) words="{those}" ;;' for name, those in words.items())


def _fish_words(words: Mapping[str, str], option: str) -> str:
    seen = 'complete -c foveate -n "__fish_seen_subcommand_from'
    return "\n".join(f'{seen} {name}"{option} -a "{those}"' for name, those in words.items() if those)


def _fish_options() -> list[str]:
    return [
        f'complete -c foveate -n "__fish_seen_subcommand_from {verb}" -l {name.removeprefix("--")}'
        for verb, names in OPTIONS.items()
        for name in names.split()
        if (verb, name) != ("train", "--model")
    ]
