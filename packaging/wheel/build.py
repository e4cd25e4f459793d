#!/usr/bin/env python3
"""Makes the Python wheel from the files that packaging/dist has gathered: packaging/wheel/build.py STAGE VERSION FOLDER

The wheel contains the program, its plugins with their compiled code, and a module that replaces Python with the program. The
platform tag is the oldest glibc with which the program runs, which is read from the symbols that it needs. The same files make
the same bytes, because names are sorted and all times are SOURCE_DATE_EPOCH.
"""

import base64
import hashlib
import os
import re
import subprocess
import sys
import time
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent

METADATA = """\
Metadata-Version: 2.4
Name: packhouse
Version: {version}
Summary: A package repository server for Maven, Python, npm and container images
License-Expression: Apache-2.0
License-File: LICENSE
License-File: THIRD-PARTY-LICENSES
Classifier: Environment :: Console
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: System :: Archiving :: Packaging
Requires-Python: >=3.9
Description-Content-Type: text/markdown

{readme}"""

WHEEL = "Wheel-Version: 1.0\nGenerator: packhouse\nRoot-Is-Purelib: false\nTag: {tag}\n"

ENTRY_POINTS = "[console_scripts]\npackhouse = packhouse:main\n"


def main() -> None:
    stage, version, folder = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    tag = f"py3-none-{platform_tag(stage / 'packhouse')}"
    info = f"packhouse-{version}.dist-info"
    files = {
        "packhouse/__init__.py": (HERE / "__init__.py").read_bytes(),
        "packhouse/__main__.py": (HERE / "__main__.py").read_bytes(),
        "packhouse/bin/packhouse": (stage / "packhouse").read_bytes(),
        f"{info}/METADATA": METADATA.format(version=version, readme=readme()).encode(),
        f"{info}/WHEEL": WHEEL.format(tag=tag).encode(),
        f"{info}/entry_points.txt": ENTRY_POINTS.encode(),
        f"{info}/licenses/LICENSE": (stage / "LICENSE").read_bytes(),
        f"{info}/licenses/THIRD-PARTY-LICENSES": (stage / "THIRD-PARTY-LICENSES").read_bytes(),
    }
    for plugin in (stage / "plugins").rglob("*.wasm"):
        files[f"packhouse/bin/plugins/{plugin.relative_to(stage / 'plugins')}"] = plugin.read_bytes()
    for code in (stage / "compiled").glob("*.cwasm"):
        files[f"packhouse/bin/compiled/{code.name}"] = code.read_bytes()
    for bill in (stage / "sbom").glob("*.json"):
        # PEP 770 defines this path for bills of materials.
        files[f"{info}/sboms/{bill.name}"] = bill.read_bytes()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"packhouse-{version}-{tag}.whl"
    pack(file, files, f"{info}/RECORD")
    print(file)


def platform_tag(program: Path) -> str:
    """Returns the tag of PEP 600: the newest version of glibc from which the program needs a symbol."""
    output = subprocess.run(["objdump", "-T", "-f", program], check=True, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    machine = re.search(r"architecture: i386:x86-64", output.stdout) and "x86_64"
    machine = machine or (re.search(r"architecture: aarch64", output.stdout) and "aarch64")
    if not machine:
        sys.exit(f"{program} has an unsupported architecture; supported are x86_64 and aarch64")
    versions = [tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_([0-9]+\.[0-9]+)", output.stdout)]
    # The lowest version for which wheels have tags.
    newest = max([*versions, (2, 17)])
    return f"manylinux_{newest[0]}_{newest[1]}_{machine}"


def readme() -> str:
    return (HERE / "README.md").read_text()


def pack(file: Path, files: dict[str, bytes], record: str) -> None:
    rows = [f"{name},{digest(content)},{len(content)}\n" for name, content in sorted(files.items())]
    content = "".join(rows) + f"{record},,\n"
    # The record comes last, for installers that read a wheel as a stream.
    ordered = [*sorted(files.items()), (record, content.encode())]
    when = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800))[:6]
    part = file.with_suffix(".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in ordered:
            entry = zipfile.ZipInfo(name, when)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, so that the modes count.
            entry.external_attr = (0o100755 if name == "packhouse/bin/packhouse" else 0o100644) << 16
            archive.writestr(entry, content)
    part.replace(file)


def digest(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


if __name__ == "__main__":
    main()
