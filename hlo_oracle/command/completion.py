"""hlo completion: a script for the shell that completes subcommands, options and their values.

eval "$(hlo completion bash)"       in ~/.bashrc
eval "$(hlo completion zsh)"        in ~/.zshrc, after compinit
hlo completion fish | source        in ~/.config/fish/config.fish
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from shlex import quote


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=tuple(_SHELLS), help="the shell that it is for")
    parser.add_argument("--json", action="store_true", help="the script in a JSON object")


def main(options: argparse.Namespace) -> int:
    import json

    from hlo_oracle.command.main import parser

    text = "\n".join(_SHELLS[options.shell](parser()[1]))
    print(json.dumps({"shell": options.shell, "script": text}) if options.json else text)
    return 0


Subcommands = Mapping[str, argparse.ArgumentParser]


def _options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if action.option_strings]


def _choices(action: argparse.Action) -> list[str]:
    return [str(choice) for choice in action.choices or ()]


def _values(parser: argparse.ArgumentParser) -> list[str]:
    """List the fixed values that a positional argument may have, besides files."""
    found = (action for action in parser._actions if not action.option_strings)
    return [choice for action in found for choice in _choices(action)]


def _bash(subcommands: Subcommands) -> Iterator[str]:
    yield "_hlo() {"
    yield '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words=""'
    yield '    if [ "$COMP_CWORD" -eq 1 ]; then'
    yield f'        COMPREPLY=($(compgen -W "{" ".join(subcommands)} --version --help" -- "$word"))'
    yield "        return"
    yield "    fi"
    yield '    case "${COMP_WORDS[1]}:$before" in'
    for name, parser in subcommands.items():
        for action in _options(parser):
            if action.choices:
                places = "|".join(f"{name}:{text}" for text in action.option_strings)
                values = " ".join(_choices(action))
                yield f"        {places})"
                yield f'            COMPREPLY=($(compgen -W "{values}" -- "$word")); return ;;'
    for name, parser in subcommands.items():
        texts = [text for action in _options(parser) for text in action.option_strings]
        yield f'        {name}:*) words="{" ".join([*_values(parser), *texts])}" ;;'
    yield "    esac"
    yield '    COMPREPLY=($(compgen -W "$words" -- "$word"))'
    yield '    if [[ "$word" != -* ]]; then COMPREPLY+=($(compgen -f -- "$word")); fi'
    yield "}"
    yield "complete -o filenames -F _hlo hlo"


def _zsh(subcommands: Subcommands) -> Iterator[str]:
    yield "#compdef hlo"
    yield "_hlo() {"
    yield "    if (( CURRENT == 2 )); then"
    yield f"        compadd -- {' '.join(subcommands)} --version --help"
    yield "        return"
    yield "    fi"
    yield '    case "$words[2]" in'
    for name, parser in subcommands.items():
        yield f"        {name}) _arguments \\"
        for action in _options(parser):
            for text in action.option_strings:
                yield f"            {quote(_zsh_option(text, action))} \\"
        values = " ".join(_values(parser))
        yield f"            {quote(f'*:value:({values})' if values else '*:file:_files')} ;;"
    yield "    esac"
    yield "}"
    yield "compdef _hlo hlo"


def _zsh_option(text: str, action: argparse.Action) -> str:
    """Format an option as ``_arguments`` takes it: ``*--seed[help]:value:(choices)``."""
    about = _plain(action.help)
    if action.nargs == 0:
        return f"*{text}[{about}]"
    values = f"({' '.join(_choices(action))})" if action.choices else "_files"
    return f"*{text}[{about}]:{action.dest}:{values}"


def _plain(text: str | None) -> str:
    """Reduce a help text to its characters without a meaning for shells, shortened."""
    short = (text or "").replace("%%", "%").partition("(default")[0]
    return "".join(c if c.isalnum() or c in " -_,." else " " for c in short)[:60].strip()


def _fish(subcommands: Subcommands) -> Iterator[str]:
    names = " ".join(subcommands)
    yield f"complete -c hlo -n 'not __fish_seen_subcommand_from {names}' -f -a '{names}'"
    for name, parser in subcommands.items():
        seen = f"complete -c hlo -n '__fish_seen_subcommand_from {name}'"
        if _values(parser):
            yield f"{seen} -f -a '{' '.join(_values(parser))}'"
        for action in _options(parser):
            longs = [t[2:] for t in action.option_strings if t.startswith("--")]
            shorts = [t[1:] for t in action.option_strings if not t.startswith("--")]
            flags = [f"-l {text}" for text in longs] + [f"-s {text}" for text in shorts]
            values = f" -x -a '{' '.join(_choices(action))}'" if action.choices else " -r"
            taken = "" if action.nargs == 0 else values
            yield f"{seen} {' '.join(flags)}{taken} -d {quote(_plain(action.help))}"


_SHELLS: Mapping[str, Callable[[Subcommands], Iterator[str]]] = {
    "bash": _bash,
    "zsh": _zsh,
    "fish": _fish,
}
