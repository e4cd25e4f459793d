"""Contains the program `packhouse`, a package repository server, and starts it."""

import os
import sys
from pathlib import Path
from typing import NoReturn


def program() -> Path:
    """Returns the file of the program. Its plugins are in the folder `plugins` beside it."""
    return Path(__file__).resolve().parent / "bin" / "packhouse"


def main() -> NoReturn:
    """Replaces this process with the program, which then receives its signals and sets its exit status."""
    path = program()
    try:
        os.execv(path, ["packhouse", *sys.argv[1:]])
    except PermissionError:
        sys.exit(f"packhouse: {path} cannot be executed; check whether its file system is mounted with noexec")
