#!/usr/bin/env python3
"""Copies the documentation that every package ships, laid out as in the checkout: packaging/docs.py FOLDER

Pages also link to tests and sources, which no package contains. Such a link is replaced with its text, so that all links of
shipped pages work.
"""

import os
import re
import shutil
import sys
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = (
    "LICENSE", "README.md", "SECURITY.md", "CHANGELOG.md", "packhouse.example.toml", "docs/*", "docs/*/*",
    "deploy/proxies/*", "plugins/README.md", "policies/README.md", "wit/*v*/*.wit",
)
# For contributors, who have the checkout.
FOR_CONTRIBUTORS = "docs/internals/"
LINK = re.compile(r"!?\[([^\]]*)\]\(([^)\s]+)\)")


def main() -> None:
    folder = Path(sys.argv[1])
    files = {path.relative_to(ROOT).as_posix() for pattern in SHIPPED for path in ROOT.glob(pattern) if path.is_file()}
    files = {file for file in files if not file.startswith(FOR_CONTRIBUTORS)}
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
    """Returns the page without links to files that are not shipped. Code blocks are not changed."""

    def keep(link: re.Match[str]) -> str:
        target = link[2].split("#")[0]
        is_elsewhere = not target or ":" in target
        return link[0] if is_elsewhere or os.path.normpath(folder / target) in there else link[1]

    parts = page.split("```")
    parts[::2] = [LINK.sub(keep, part) for part in parts[::2]]
    return "```".join(parts)


if __name__ == "__main__":
    main()
