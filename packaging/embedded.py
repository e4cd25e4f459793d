#!/usr/bin/env python3
"""Prints the bill of materials of a plugin in JavaScript: packaging/embedded.py plugins/NAME > NAME.cdx.json

What is in its component is said by the folder's `embedded.json`: the engine and what that is made of, which a tool from npm brings along.
"""

import json
import os
import sys
import uuid
from datetime import datetime, timezone
from pathlib import Path


def embedded(folder: Path) -> list[dict]:
    """What the component is made of, each with its name and licence, its version where that is known, and its copyright."""
    found = json.loads((folder / "embedded.json").read_text())["embedded"]
    locked = json.loads((folder / "package-lock.json").read_text())["packages"]
    for part in found:
        if part.pop("locked", False):
            part["version"] = locked[f"node_modules/{part['name']}"]["version"]
    return found


def component(part: dict) -> dict:
    version = part.get("version")
    purl = part["purl"] + (f"@{version}" if version else "")
    described = {"type": "library", "bom-ref": purl, "name": part["name"], "purl": purl, "licenses": [{"expression": part["license"]}]}
    return described | ({"version": version} if version else {})


def main() -> None:
    folder = Path(sys.argv[1])
    own = json.loads((folder / "package.json").read_text())
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "library",
                "bom-ref": f"pkg:generic/{own['name']}@{own['version']}",
                "name": own["name"],
                "version": own["version"],
                "description": own["description"],
                "licenses": [{"expression": own["license"]}],
            },
        },
        "components": [component(part) for part in embedded(folder)],
    }
    bill["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bill, sort_keys=True))}"
    json.dump(bill, sys.stdout, separators=(",", ":"))


if __name__ == "__main__":
    main()
