// Files under any path: `PUT` stores a file, `GET` fetches it, `DELETE` removes it.

import { log, now } from "packhouse:format/host@0.1.0";
import { Intent, ResponseOptions } from "packhouse:format/http@0.1.0";
import { Transaction } from "packhouse:format/records@0.1.0";

const LARGEST = 1 << 30;

// The engine has neither TextDecoder nor TextEncoder.
const textOf = (bytes) => decodeURIComponent(escape(atob(bytes.toBase64())));
const bytesOf = (text) => Uint8Array.fromBase64(btoa(unescape(encodeURIComponent(text))));

/** A refusal with the format's own code and message. Throw it to send it as the response. */
function failure(status, code, message, headers = []) {
  return { status, headers, problems: [{ code, message, detail: "" }] };
}

const missing = () => failure(404, "not_found", "There is no such file");

/** Turns any other exception, which is a bug in this plugin, into a log entry and a response with status 500. */
function guarded(work) {
  return (...given) => {
    try {
      return work(...given);
    } catch (thrown) {
      if (thrown?.problems) throw thrown;
      log("error", `${thrown}\n${thrown?.stack ?? ""}`, []);
      throw failure(500, "internal_error", "Internal error. The server log has details");
    }
  };
}

export const format = {
  describe() {
    const curl = "curl --fail --user {email}:{token} ";
    return JSON.stringify({
      format: "my-format",
      version: "0.1.0",
      clients: [
        { client: "curl", purpose: "publish", language: "shell", template: `${curl}--upload-file FILE {address}FILE` },
        { client: "curl", purpose: "read", language: "shell", template: `${curl}--remote-name {address}FILE` },
      ],
    });
  },

  route: guarded((kind, request) => {
    const path = request.path().join("/");
    if (!path) throw missing();
    switch (request.method()) {
      case "GET":
      case "HEAD":
        return new Intent("read", path);
      case "PUT": {
        const intent = new Intent("publish", path);
        intent.body(LARGEST);
        return intent;
      }
      case "DELETE":
        return new Intent("delete", path);
      default: {
        const allow = [{ name: "allow", value: "DELETE, GET, HEAD, PUT" }];
        throw failure(405, "method_not_allowed", "This method is not supported for files", allow);
      }
    }
  }),

  check() {},

  handle: guarded((request, repository) => {
    const path = request.path().join("/");
    switch (request.method()) {
      case "PUT":
        return store(request, repository, path);
      case "DELETE":
        return remove(repository, path);
      default:
        return fetchFile(repository, path);
    }
  }),
};

function fetchFile(repository, path) {
  const entry = repository.get(path);
  if (!entry) throw missing();
  const stored = JSON.parse(textOf(entry.value));
  const options = new ResponseOptions();
  options.modified(stored.putAt);
  const headers = [
    { name: "cache-control", value: "no-cache" },
    { name: "content-type", value: "application/octet-stream" },
  ];
  return { status: 200, headers, content: { tag: "blob", val: repository.blob(stored.digest) }, options };
}

function store(request, repository, path) {
  const body = request.takeBody();
  const digest = repository.keep(body);
  const stored = bytesOf(JSON.stringify({ digest, putAt: now() }));
  const change = repository.begin();
  change.put(path, stored, { tag: "anything" }, [digest]);
  const files = [{ path, digest, size: body.size() }];
  change.show({ name: path, version: "latest", files, published: null, summary: "", properties: [], state: "" });
  commit(change);
  return { status: 201, headers: [], content: { tag: "none" }, options: null };
}

function remove(repository, path) {
  const change = repository.begin();
  change.remove(path, { tag: "present" });
  change.hide({ name: path, version: "latest" });
  commit(change);
  return { status: 204, headers: [], content: { tag: "none" }, options: null };
}

function commit(change) {
  if (Transaction.commit(change).tag !== "applied") throw missing();
}
