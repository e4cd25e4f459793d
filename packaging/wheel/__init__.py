"""Carries the program `packhouse`, a package repository server, and starts it."""

import os
import sys
from pathlib import Path
from typing import NoReturn


def program() -> Path:
    """The program's file; its plugins lie in the folder `plugins` beside it."""
    return Path(__file__).resolve().parent / "bin" / "packhouse"


def main() -> NoReturn:
    """Becomes the program: the process, its signals and its exit status are its own from here on."""
    path = program()
    try:
        os.execv(path, ["packhouse", *sys.argv[1:]])
    except PermissionError:
        sys.exit(f"packhouse: {path} may not be executed; is it on a file system that is mounted with noexec?")
