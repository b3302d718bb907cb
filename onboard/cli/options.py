"""What the verbs share: parsing a typed configuration, JSON results, lines for people."""

import inspect
import json
import sys
import termios
from pathlib import Path
from typing import Any, TypeVar

import tyro

from onboard.configs.errors import ConfigError

ArgsT = TypeVar("ArgsT")


def parse(kind: type[ArgsT], verb: str, description: str, argv: list[str]) -> ArgsT:
    """Command line to a typed object; `--help` explains it and ends the program."""
    return tyro.cli(kind, prog=f"onboard {verb}", description=inspect.cleandoc(description), args=argv)


def write_json(path: str, result: dict[str, Any]) -> None:
    """Write a machine-readable result; `-` is standard output.

    Raises:
        ConfigError: the file can't be written.
    """
    text = json.dumps(result, indent=2, allow_nan=False) + "\n"
    if path == "-":
        sys.stdout.write(text)
        return
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--json {path}: can't be written ({error.strerror})") from error


def say(line: str) -> None:
    """One line for a person, on standard error, so that standard output stays for results."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def ask(prompt: str) -> str:
    """Ask a person for one line, on standard error as everything for people.

    What was typed before the question came is thrown away: it was no answer to it.

    Raises:
        EOFError: standard input has ended.
    """
    if sys.stdin.isatty():
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
    sys.stderr.write(prompt)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line
