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
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} verb=${{COMP_WORDS[1]}} words= front=
    if [ "$word" = "=" ]; then word=  # bash takes "--model=name" for three words
    elif [ "$before" = "=" ]; then before=${{COMP_WORDS[COMP_CWORD-2]}}
    elif [ -n "$ZSH_VERSION" ] && [[ $word == --*=* ]]; then  # and zsh for one
        before=${{word%%=*}} word=${{word#*=}} front=$before=
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
    COMPREPLY=($(compgen -P "$front" -W "$words" -- "$word"))
}}
complete -o default -F _foveate foveate
"""

ZSH = """# foveate's completion for zsh: eval "$(foveate completion zsh)" in ~/.zshrc
(( ${{+functions[compdef]}} )) || {{ autoload -Uz compinit && compinit }}
autoload -Uz bashcompinit && bashcompinit
"""

FISH = """# foveate's completion for fish: foveate completion fish > ~/.config/fish/completions/foveate.fish
function __foveate_next  # whether these words stand before the one that is typed, and no others
    set -l words (commandline -opc)
    test "$words[2..]" = "$argv"
end
function __foveate_in  # whether the command begins with these words
    set -l words (commandline -opc)
    string match -q -- "$argv *" "$words[2..] "
end
complete -c foveate -n __foveate_next -f -a "{verbs}"
complete -c foveate -n __foveate_next -l help
complete -c foveate -n __foveate_next -l version
complete -c foveate -n "__foveate_next help" -f -a "{verbs}"
complete -c foveate -n "__foveate_next train || __foveate_next models" -f -a "{tasks}"
complete -c foveate -n "__foveate_next bench" -f -a "{comparisons}"
complete -c foveate -n "__foveate_next gallery" -f -a "{pictures}"
complete -c foveate -n "__foveate_next size" -a "{presets}"
complete -c foveate -n "__foveate_next completion" -f -a "bash zsh fish"
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
        lines = {"models": _fish_words("in", own, "-l model -s m -x"), "sources": _fish_words("next", data, "-f")}
        print(FISH.format(options="\n".join(_fish_options()), **lines, **known))
        return
    cases = {"models": _bash_cases(own), "sources": _bash_cases(data), "options": _bash_cases(OPTIONS)}
    print((ZSH.format() if shell == "zsh" else "") + BASH.format(**cases, **known), end="")


def _bash_cases(words: Mapping[str, str]) -> str:
    return "\n".join(f'            {name}) words="{those}" ;;' for name, those in words.items())


def _fish_words(place: str, words: Mapping[str, str], option: str) -> str:
    return "\n".join(
        f'complete -c foveate -n "__foveate_{place} train {task}" {option} -a "{those}"'
        for task, those in words.items()
        if those
    )


def _fish_options() -> list[str]:
    return [
        f'complete -c foveate -n "__foveate_in {verb}" -l {name.removeprefix("--")}'
        for verb, names in OPTIONS.items()
        for name in names.split()
        if (verb, name) != ("train", "--model")
    ]
