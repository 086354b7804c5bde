# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Words to commands. What a command needs is imported when it is asked for."""

import argparse
import difflib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

import veo_exporter
from veo_exporter.config import flag_name, load_settings, sections, setting_places
from veo_exporter.errors import VeoError

USAGE_ERROR: Final = 2


class _Parser(argparse.ArgumentParser):
    """Names the nearest right word where a wrong one was written."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # An abbreviated flag means something else as soon as a new flag is added.
        self.allow_abbrev = False

    def parse_args(self, words: Any = None, namespace: Any = None) -> Any:
        parsed, unknown = self.parse_known_args(words, namespace)
        if unknown:
            parsed.parser.refuse(unknown)
        return parsed

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        flag = unknown[0].partition("=")[0]
        close = difflib.get_close_matches(flag, list(self._option_string_actions), n=1, cutoff=0.5)
        self.error(f"{flag}: no such flag" + (f"; the nearest is {close[0]}" if close else ""))


def build_parser() -> argparse.ArgumentParser:
    """All commands and flags."""
    parser = _Parser(prog="veo-exporter", description=veo_exporter.__doc__)
    parser.add_argument(
        "--version", action="version", version=f"veo-exporter {veo_exporter.__version__}"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    serve = _command(commands, "serve", "watch this node and serve /metrics")
    _add_settings(serve)

    demo = _command(commands, "demo", "the same on a simulated node; every page says so")
    _add_settings(demo)
    demo.add_argument(
        "--scenario",
        default="busy",
        help="a shipped scenario's name or a file's path (default: busy)",
    )
    demo.add_argument(
        "--list-scenarios", action="store_true", help="name the shipped scenarios and end"
    )

    check = _command(commands, "check", "check what is written, without running it")
    checked = check.add_subparsers(dest="what", required=True, metavar="WHAT")
    config = _command(checked, "config", "read the configuration and print what holds")
    _add_settings(config)

    show = _command(commands, "show", "print what the exporter knows")
    shown = show.add_subparsers(dest="what", required=True, metavar="WHAT")
    for what, help in (("metrics", "every metric, label and unit"), ("settings", "every setting")):
        printed = _command(shown, what, help)
        printed.add_argument("--format", choices=("markdown", "json"), default="markdown")

    probe = _command(commands, "probe", "judge the frame timing of video files")
    _add_settings(probe)
    probe.add_argument("files", nargs="+", type=Path, metavar="FILE")
    form = probe.add_mutually_exclusive_group()
    form.add_argument("--json", dest="form", action="store_const", const="json", default="table")
    form.add_argument("--jsonl", dest="form", action="store_const", const="jsonl")
    probe.add_argument(
        "--expect", metavar="EXPECTATION", help="what was asked for, as fps=24,duration=6.2"
    )

    doctor = _command(commands, "doctor", "look at driver, rights and tools, and say what helps")
    _add_settings(doctor)
    return parser


def _command(commands: Any, name: str, help: str) -> _Parser:
    parser: _Parser = commands.add_parser(
        name, help=help, description=help[0].upper() + help[1:] + "."
    )
    parser.set_defaults(parser=parser)
    return parser


def _add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config.file",
        dest="config_file",
        type=Path,
        metavar="FILE",
        help="YAML file with settings",
    )
    group = parser.add_argument_group(
        "settings", "each overrides the environment, which overrides the file"
    )
    for section, name in setting_places():
        description = sections()[section].model_fields[name].description
        group.add_argument(
            flag_name((section, name)),
            dest=f"{section}.{name}",
            metavar="VALUE",
            help=(description or "").replace("%", "%%"),
        )


def settings_flags(arguments: argparse.Namespace) -> dict[tuple[str, ...], str]:
    """The settings that were given as flags."""
    given = vars(arguments)
    return {
        place: given[".".join(place)]
        for place in setting_places()
        if given.get(".".join(place)) is not None
    }


def main(words: Sequence[str] | None = None) -> int:
    """Run a command; gives the exit status."""
    arguments = build_parser().parse_args(words)
    try:
        status = _run(arguments)
        # Now, so that a reader who has gone is noticed here and not while Python ends.
        print(end="", flush=True)
        return status
    except VeoError as error:
        print(f"veo-exporter {arguments.command}: {error}", file=sys.stderr)
        return USAGE_ERROR
    except BrokenPipeError:
        # The reader has gone, as with "| head". What is still buffered has to go somewhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(arguments: argparse.Namespace) -> int:
    match arguments.command:
        case "serve":
            from veo_exporter.cli.serve import serve

            return serve(arguments.config_file, settings_flags(arguments))
        case "demo":
            from veo_exporter.cli.serve import demo

            return demo(
                arguments.config_file,
                settings_flags(arguments),
                arguments.scenario,
                list_only=arguments.list_scenarios,
            )
        case "check":
            from veo_exporter.cli.check import check_config

            return check_config(arguments.config_file, settings_flags(arguments))
        case "show":
            from veo_exporter.cli.show import show

            return show(arguments.what, arguments.format)
        case "probe":
            from veo_exporter.cli.probe import probe

            settings = load_settings(arguments.config_file, os.environ, settings_flags(arguments))
            return probe(
                arguments.files, settings.video, form=arguments.form, expect=arguments.expect
            )
        case "doctor":
            from veo_exporter.cli.doctor import doctor

            return doctor(arguments.config_file, settings_flags(arguments))
    raise AssertionError(arguments.command)
