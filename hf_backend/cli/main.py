"""The `hf-backend` command.

Takes command line arguments; gives an exit status. Each subcommand lives in its own module, which says its arguments
(`add_parser(subparsers)`) and runs (`run(arguments)`). Imports neither torch nor vLLM before a subcommand that needs
them runs.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence

from hf_backend import __version__

COMMANDS = ("doctor", "check", "demo")
"""Modules of `hf_backend.cli`, each the subcommand of its name."""


def parser() -> argparse.ArgumentParser:
    """The command's argument parser; `run` of its result is a function from arguments to an exit status."""
    top = argparse.ArgumentParser(
        prog="hf-backend",
        description="Run any Hugging Face multimodal model in vLLM's Transformers backend.",
    )
    top.add_argument("--version", action="version", version=f"hf_backend {__version__}")
    subparsers = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in COMMANDS:
        command = importlib.import_module(f"hf_backend.cli.{name}")
        command.add_parser(subparsers)
        subparsers.choices[name].set_defaults(run=command.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with `argv` (default: the process's) and give its exit status."""
    arguments = parser().parse_args(argv)
    try:
        status: int = arguments.run(arguments)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130
    return status


if __name__ == "__main__":
    sys.exit(main())
