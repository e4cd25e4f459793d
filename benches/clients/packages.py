"""Made-up packages of three formats that depend on each other, as files by their path at an upstream."""

import base64
import gzip
import hashlib
import io
import json
import random
import tarfile
import zipfile

VERSIONS = 10
"""Number of versions in each packument and of files on each page. The newest one is installed."""


def noise(seed, length):
    """Returns bytes that hardly compress, the same for the same seed."""
    return random.Random(seed).randbytes(length)


def dependencies_of(number, count):
    """Returns the numbers of the dependencies: a tree with three branches at each node."""
    return [below for below in range(3 * number + 1, 3 * number + 4) if below < count]


class File:
    """A file of the upstream."""

    def __init__(self, body, kind="application/octet-stream"):
        self.body, self.kind = body, kind
        self.etag = '"' + hashlib.sha256(body).hexdigest()[:32] + '"'


def tarball(manifest, seed):
    packed = io.BytesIO()
    files = {"package.json": json.dumps(manifest).encode(), "index.js": noise(seed, 6000).hex().encode(), "README.md": b"# bench\n" * 200}
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as zipped, tarfile.open(fileobj=zipped, mode="w") as archive:
        for path, body in files.items():
            entry = tarfile.TarInfo(f"package/{path}")
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))
    return packed.getvalue()


def npm(files, base, count):
    """Adds `count` packages. Returns name, version and integrity of each installed one."""
    installed = []
    for number in range(count):
        name, versions, times = f"bench-{number}", {}, {}
        for minor in range(VERSIONS):
            version = f"1.{minor}.0"
            manifest = {
                "name": name, "version": version, "description": "A package with a description of ordinary length",
                "main": "index.js", "license": "MIT", "engines": {"node": ">=18"}, "keywords": ["bench"],
                "dependencies": {f"bench-{below}": "^1.0.0" for below in dependencies_of(number, count)},
                "repository": {"type": "git", "url": f"git+ssh://git@example.com/bench/{name}.git"},
                "maintainers": [{"name": "somebody", "email": "somebody@example.com"}],
            }
            # Older versions are never fetched, so their metadata is enough.
            body = tarball(manifest, number) if minor == VERSIONS - 1 else noise(minor, 64)
            path = f"/{name}/-/{name}-{version}.tgz"
            if minor == VERSIONS - 1:
                files[path] = File(body)
                installed.append((name, version, "sha512-" + base64.b64encode(hashlib.sha512(body).digest()).decode()))
            dist = {
                "tarball": base + path, "shasum": hashlib.sha1(body).hexdigest(),
                "integrity": "sha512-" + base64.b64encode(hashlib.sha512(body).digest()).decode(),
            }
            versions[version], times[version] = dict(manifest, dist=dist), f"2020-01-{minor + 1:02}T00:00:00.000Z"
        document = {
            "_id": name, "name": name, "dist-tags": {"latest": f"1.{VERSIONS - 1}.0"}, "versions": versions,
            "time": dict(times, created="2020-01-01T00:00:00.000Z", modified="2020-01-10T00:00:00.000Z"), "readme": "# bench\n" * 100,
        }
        files[f"/{name}"] = File(json.dumps(document).encode(), "application/json")
    return installed


def wheel(name, version, requires, seed):
    """Returns a wheel and its METADATA."""
    info, packed = f"{name}-{version}.dist-info", io.BytesIO()
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Python: >=3.8\n"
    metadata += "".join(f"Requires-Dist: {other}\n" for other in requires)
    files = {
        f"{name}/__init__.py": b"#" + noise(seed, 10_000).hex().encode(), f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: bench\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digest = lambda body: base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()
    record = "".join(f"{path},sha256={digest(body)},{len(body)}\n" for path, body in files.items()) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, body in {**files, f"{info}/RECORD": record.encode()}.items():
            archive.writestr(zipfile.ZipInfo(path), body)
    return packed.getvalue(), metadata.encode()


def python(files, count):
    """Adds `count` projects with pages in JSON and HTML. Returns the installed projects."""
    for number in range(count):
        name, listed, anchors = f"bench{number}", [], ""
        for minor in range(VERSIONS):
            version = f"1.{minor}"
            body, metadata = wheel(name, version, [f"bench{below}" for below in dependencies_of(number, count)], number * VERSIONS + minor)
            file = f"{name}-{version}-py3-none-any.whl"
            files[f"/files/{file}"], files[f"/files/{file}.metadata"] = File(body), File(metadata)
            sums = {"sha256": hashlib.sha256(body).hexdigest()}
            listed.append({
                "filename": file, "url": f"/files/{file}", "hashes": sums, "requires-python": ">=3.8", "size": len(body),
                "upload-time": "2020-01-01T00:00:00Z", "core-metadata": {"sha256": hashlib.sha256(metadata).hexdigest()},
            })
            anchors += f'<a href="/files/{file}#sha256={sums["sha256"]}" data-requires-python="&gt;=3.8">{file}</a>\n'
        page = {"meta": {"api-version": "1.1"}, "name": name, "versions": [f"1.{minor}" for minor in range(VERSIONS)], "files": listed}
        files[f"/simple/{name}/"] = File(f"<!DOCTYPE html><html><body>{anchors}</body></html>".encode(), "text/html")
        files[f"/simple/{name}/+json"] = File(json.dumps(page).encode(), "application/vnd.pypi.simple.v1+json")
    projects = [{"name": f"bench{number}"} for number in range(count)]
    index = "".join(f'<a href="/simple/{one["name"]}/">{one["name"]}</a>\n' for one in projects)
    files["/simple/"] = File(f"<!DOCTYPE html><html><body>{index}</body></html>".encode(), "text/html")
    whole = json.dumps({"meta": {"api-version": "1.1"}, "projects": projects}).encode()
    files["/simple/+json"] = File(whole, "application/vnd.pypi.simple.v1+json")
    return [f"bench{number}" for number in range(count)]


def maven(files, count):
    """Adds `count` artifacts of `org.example`. Returns the installed artifacts."""
    def add(path, body, kind):
        files[path] = File(body, kind)
        for name in ("sha1", "md5"):
            files[f"{path}.{name}"] = File(hashlib.new(name, body).hexdigest().encode(), "text/plain")

    for number in range(count):
        name = f"bench-{number}"
        at = f"/org/example/{name}/1.0/{name}-1.0"
        dependencies = "".join(
            f"<dependency><groupId>org.example</groupId><artifactId>bench-{below}</artifactId><version>1.0</version></dependency>"
            for below in dependencies_of(number, count))
        pom = (f'<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId>'
               f"<artifactId>{name}</artifactId><version>1.0</version><dependencies>{dependencies}</dependencies></project>")
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF"), "Manifest-Version: 1.0\n")
            archive.writestr(zipfile.ZipInfo(f"{name}.bin"), noise(number, 20_000))
        add(f"{at}.pom", pom.encode(), "text/xml")
        add(f"{at}.jar", packed.getvalue(), "application/java-archive")
        metadata = (f"<metadata><groupId>org.example</groupId><artifactId>{name}</artifactId><versioning><release>1.0</release>"
                    f"<versions><version>1.0</version></versions><lastUpdated>20200101000000</lastUpdated></versioning></metadata>")
        add(f"/org/example/{name}/maven-metadata.xml", metadata.encode(), "text/xml")
    return [f"bench-{number}" for number in range(count)]
