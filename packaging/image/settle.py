#!/usr/bin/env python3
"""Removes the random container id and host name that buildah adds to a saved image:
packaging/image/settle.py SAVED.tar FILE.tar

The result has the form that `docker load` and `podman load` read: a manifest, the configuration and the layers, in order.
"""

import hashlib
import io
import json
import os
import sys
import tarfile


def main() -> None:
    when = int(os.environ["SOURCE_DATE_EPOCH"])
    with tarfile.open(sys.argv[1]) as saved, tarfile.open(sys.argv[2], "w", format=tarfile.GNU_FORMAT) as settled:

        def add(name: str, size: int, content) -> None:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = size, when, 0o644
            settled.addfile(entry, content)

        [manifest] = json.load(saved.extractfile("manifest.json"))
        config = json.load(saved.extractfile(manifest["Config"]))
        for member in ("container", "container_config"):
            config.pop(member, None)
        config["config"].pop("Hostname", None)
        text = json.dumps(config, sort_keys=True, separators=(",", ":")).encode()
        manifest["Config"] = hashlib.sha256(text).hexdigest() + ".json"
        listed = json.dumps([manifest], sort_keys=True, separators=(",", ":")).encode()
        add("manifest.json", len(listed), io.BytesIO(listed))
        add(manifest["Config"], len(text), io.BytesIO(text))
        for layer in manifest["Layers"]:
            add(layer, saved.getmember(layer).size, saved.extractfile(layer))


if __name__ == "__main__":
    main()
