"""An upstream on loopback that serves made-up packages and counts the requests."""

import collections
import http.server
import threading
import urllib.parse


class Upstream:
    """Serves files by path. `counts` includes all requests since `reset_counts`."""

    def __init__(self):
        self.files, self.counts = {}, collections.Counter()
        upstream = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def log_message(self, *_):
                pass

            def do_HEAD(self):
                self.do_GET()

            def do_GET(self):
                path = urllib.parse.unquote(self.path.split("?")[0])
                wants_json = path.startswith("/simple/") and "json" in self.headers.get("Accept", "")
                file = upstream.files.get(path + "+json" if wants_json else path)
                status = 404 if file is None else 304 if self.headers.get("If-None-Match") == file.etag else 200
                upstream.counts["304" if status == 304 else "other"] += 1
                body = file.body if status == 200 else b"nothing" if status == 404 else b""
                self.send_response(status)
                if status != 304:
                    self.send_header("Content-Length", str(len(body)))
                if file is not None:
                    self.send_header("Content-Type", file.kind)
                    self.send_header("ETag", file.etag)
                    self.send_header("Last-Modified", "Wed, 01 Jan 2020 00:00:00 GMT")
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def reset_counts(self):
        self.counts.clear()
