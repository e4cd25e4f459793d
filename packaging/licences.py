#!/usr/bin/env python3
"""Prints the licences of every library that is linked into the program and the plugins: packaging/licences.py > THIRD-PARTY-LICENSES

Each text is printed once, unchanged, with its copyright lines and the names of the libraries that contain it. Texts in
subfolders of a library count too, for example those of C sources. Fails if a licence is not in ACCEPTED.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGETS = ("x86_64-unknown-linux-gnu", "wasm32-unknown-unknown")
ACCEPTED = set(tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]["allow"])
FILE = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)([-._].*)?$", re.IGNORECASE)
CODE = re.compile(r"\.(rs|c|h|go|py|sh|json|toml|html)$", re.IGNORECASE)
# Folders with tests and tools, which are not linked.
NOT_LINKED = {"tests", "test", "benches", "examples", "fuzz", "tools", "target", ".git"}
RULE = "=" * 100


def main() -> None:
    packages = linked()
    texts: dict[str, list[str]] = defaultdict(list)
    without = []
    for package in packages:
        name = f"{package['name']} {package['version']} ({package['license'] or 'see below'})"
        if not accepted(package["license"] or ""):
            sys.exit(f"licences: {name} has a licence that is not in the list of accepted ones (deny.toml)")
        found = {file.read_text(errors="replace").strip() for file in files(Path(package["manifest_path"]).parent)}
        if not found:
            without.append(name)
        for text in sorted(found):
            texts[text].append(name)
    print("The program packhouse and its plugins are linked with the libraries below. The licence of each follows its name.")
    print("They also contain Rust's standard library (MIT or Apache-2.0).")
    for text, names in sorted(texts.items(), key=lambda item: item[1]):
        print(f"\n{RULE}", *names, "-" * len(RULE), text, sep="\n")
    if without:
        print(f"\n{RULE}\nThese libraries state their licence but do not include its text. The file LICENSE contains the Apache License:")
        print(*without, sep="\n")


def linked() -> list[dict]:
    """Returns the packages of crates.io in the program and the plugins, without build and test dependencies."""
    found = {}
    for target in TARGETS:
        words = ["cargo", "metadata", "--locked", "--format-version=1", f"--filter-platform={target}"]
        metadata = json.loads(subprocess.run(words, cwd=ROOT, check=True, capture_output=True).stdout)
        packages = {package["id"]: package for package in metadata["packages"]}
        nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
        folders = {ROOT / name for name in (("plugins", "policies") if target.startswith("wasm") else ("host/server",))}
        waiting = [id for id in metadata["workspace_members"] if folders.intersection(Path(packages[id]["manifest_path"]).parents)]
        visited = set()
        while waiting:
            id = waiting.pop()
            if id in visited:
                continue
            visited.add(id)
            if packages[id]["source"]:
                found[(packages[id]["name"], packages[id]["version"])] = packages[id]
            waiting += [dep["pkg"] for dep in nodes[id]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
    return [package for _, package in sorted(found.items())]


def files(folder: Path):
    for at, folders, names in os.walk(folder):
        folders[:] = [] if len(Path(at).relative_to(folder).parts) > 3 else sorted(set(folders) - NOT_LINKED)
        yield from (Path(at, name) for name in sorted(names) if FILE.match(name) and not CODE.search(name))


def accepted(expression: str) -> bool:
    """Returns True if one side of each OR and all parts of each AND are accepted. Parentheses may only enclose an OR."""
    while match := re.search(r"\(([^()]*)\)", expression):
        inner = "MIT" if accepted(match[1]) else "refused"
        expression = expression[: match.start()] + inner + expression[match.end() :]
    either = re.split(r"\s+OR\s+|/", expression)
    return any(all(part.strip() in ACCEPTED for part in re.split(r"\s+AND\s+", side)) for side in either)


if __name__ == "__main__":
    main()
