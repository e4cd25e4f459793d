#!/usr/bin/env python3
"""Copies the documentation that every package ships, laid out as in the checkout: packaging/docs.py FOLDER

Pages link to tests and sources too, which no package has. Such a link is left as its text, so that every link of a shipped page leads somewhere.
"""

import os
import re
import shutil
import sys
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = (
    "LICENSE", "README.md", "SECURITY.md", "packhouse.example.toml", "docs/*", "docs/formats/*", "docs/monitoring/*",
    "deploy/proxies/*", "plugins/README.md", "policies/README.md", "wit/*v*/*.wit",
)
# For those who change the program itself; they have the checkout.
OF_THE_SOURCES = {"docs/ARCHITECTURE.md", "docs/CONTRACT-WALK.md", "docs/TESTING.md"}
LINK = re.compile(r"!?\[([^\]]*)\]\(([^)\s]+)\)")


def main() -> None:
    folder = Path(sys.argv[1])
    files = {path.relative_to(ROOT).as_posix() for pattern in SHIPPED for path in ROOT.glob(pattern) if path.is_file()}
    files -= OF_THE_SOURCES
    there = files | {parent.as_posix() for file in files for parent in PurePosixPath(file).parents}
    for name in sorted(files):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".md"):
            target.write_text(linked((ROOT / name).read_text(), PurePosixPath(name).parent, there))
        else:
            shutil.copyfile(ROOT / name, target)
        target.chmod(0o644)


def linked(page: str, folder: PurePosixPath, there: set[str]) -> str:
    """The page without links to what is not there; what stands in blocks of code is left alone."""

    def keep(link: re.Match[str]) -> str:
        target = link[2].split("#")[0]
        is_elsewhere = not target or ":" in target
        return link[0] if is_elsewhere or os.path.normpath(folder / target) in there else link[1]

    parts = page.split("```")
    parts[::2] = [LINK.sub(keep, part) for part in parts[::2]]
    return "```".join(parts)


if __name__ == "__main__":
    main()
