#!/usr/bin/env python3
"""Prints the licences of every library that is linked into the program and the plugins: packaging/licences.py > THIRD-PARTY-LICENSES

Each text once, under the names of the libraries that came with it, as the authors wrote it and with their copyright lines; what lies
deeper in a library, as sources in C do, counts as well. It fails on a licence that is not among ACCEPTED.
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
# Sources of tests and tools lie there, nothing that is linked.
NOT_LINKED = {"tests", "test", "benches", "examples", "fuzz", "tools", "target", ".git"}
RULE = "=" * 100


def main() -> None:
    packages = linked()
    texts: dict[str, list[str]] = defaultdict(list)
    without = []
    for package in packages:
        name = f"{package['name']} {package['version']} ({package['license'] or 'see below'})"
        if not accepted(package["license"] or ""):
            sys.exit(f"licences: {name} has a licence that is not accepted here")
        found = {file.read_text(errors="replace").strip() for file in files(Path(package["manifest_path"]).parent)}
        if not found:
            without.append(name)
        for text in sorted(found):
            texts[text].append(name)
    print("The program packhouse and its plugins are linked with the libraries below, each under the licence that follows its name.")
    print("They contain Rust's standard library besides (MIT or Apache-2.0).")
    for text, names in sorted(texts.items(), key=lambda item: item[1]):
        print(f"\n{RULE}", *names, "-" * len(RULE), text, sep="\n")
    if without:
        print(f"\n{RULE}\nThese say which licence they are under, and bring no text of it along; the Apache License stands in LICENSE:")
        print(*without, sep="\n")


def linked() -> list[dict]:
    """The packages of crates.io that the program and the plugins are built of, without what only builds or tests them."""
    found = {}
    for target in TARGETS:
        words = ["cargo", "metadata", "--locked", "--format-version=1", f"--filter-platform={target}"]
        metadata = json.loads(subprocess.run(words, cwd=ROOT, check=True, capture_output=True).stdout)
        packages = {package["id"]: package for package in metadata["packages"]}
        nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
        folders = {ROOT / name for name in (("plugins", "policies") if target.startswith("wasm") else ("host/server",))}
        waiting = [id for id in metadata["workspace_members"] if folders.intersection(Path(packages[id]["manifest_path"]).parents)]
        seen = set()
        while waiting:
            id = waiting.pop()
            if id in seen:
                continue
            seen.add(id)
            if packages[id]["source"]:
                found[(packages[id]["name"], packages[id]["version"])] = packages[id]
            waiting += [dep["pkg"] for dep in nodes[id]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
    return [package for _, package in sorted(found.items())]


def files(folder: Path):
    for at, folders, names in os.walk(folder):
        folders[:] = [] if len(Path(at).relative_to(folder).parts) > 3 else sorted(set(folders) - NOT_LINKED)
        yield from (Path(at, name) for name in sorted(names) if FILE.match(name) and not CODE.search(name))


def accepted(expression: str) -> bool:
    """Whether one side of each OR is accepted; the parts of an AND all have to be. Of brackets those around an OR are understood."""
    while match := re.search(r"\(([^()]*)\)", expression):
        inner = "MIT" if accepted(match[1]) else "refused"
        expression = expression[: match.start()] + inner + expression[match.end() :]
    either = re.split(r"\s+OR\s+|/", expression)
    return any(all(part.strip() in ACCEPTED for part in re.split(r"\s+AND\s+", side)) for side in either)


if __name__ == "__main__":
    main()
