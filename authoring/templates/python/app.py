"""Files under any path: `PUT` stores a file, `GET` fetches it, `DELETE` removes it."""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import host, records
from wit_world.imports.http import (
    Content_Blob,
    Content_None_,
    Failure,
    Intent,
    Problem,
    Request,
    Response,
    ResponseOptions,
)
from wit_world.imports.types import Header

LARGEST = 1 << 30


def failure(status, code, message, headers=()):
    """A refusal with the format's own code and message."""
    return Err(Failure(status, list(headers), [Problem(code, message, "")]))


def missing():
    return failure(404, "not_found", "There is no such file")


class Format(exports.Format):
    def describe(self):
        curl = "curl --fail --user {email}:{token} "
        return json.dumps({
            "format": "my-format",
            "version": "0.1.0",
            "clients": [
                {"client": "curl", "purpose": "publish", "language": "shell", "template": curl + "--upload-file FILE {address}FILE"},
                {"client": "curl", "purpose": "read", "language": "shell", "template": curl + "--remote-name {address}FILE"},
            ],
        })

    def route(self, kind, request):
        path = "/".join(request.path())
        match request.method():
            case _ if not path:
                raise missing()
            case "GET" | "HEAD":
                return Intent("read", path)
            case "PUT":
                intent = Intent("publish", path)
                intent.body(LARGEST)
                return intent
            case "DELETE":
                return Intent("delete", path)
            case _:
                allow = [Header("allow", "DELETE, GET, HEAD, PUT")]
                raise failure(405, "method_not_allowed", "This method is not supported for files", allow)

    def check(self, request, target, others):
        pass

    def handle(self, request, target, others):
        path = "/".join(request.path())
        match request.method():
            case "PUT":
                return store(request, target, path)
            case "DELETE":
                return remove(target, path)
            case _:
                return fetch(target, path)


def fetch(repository, path):
    entry = repository.get(path)
    if entry is None:
        raise missing()
    stored = json.loads(entry.value)
    options = ResponseOptions()
    options.modified(stored["put_at"])
    headers = [Header("cache-control", "no-cache"), Header("content-type", "application/octet-stream")]
    return Response(200, headers, Content_Blob(repository.blob(stored["digest"])), options)


def store(request, repository, path):
    body = request.take_body()
    digest = repository.keep(body)
    stored = json.dumps({"digest": digest, "put_at": host.now()}).encode()
    change = repository.begin()
    change.put(path, stored, records.Expectation_Anything(), [digest])
    file = records.File(path, digest, body.size())
    change.show(records.Version(path, "latest", [file], None, "", [], ""))
    commit(change)
    return Response(201, [], Content_None_(), None)


def remove(repository, path):
    change = repository.begin()
    change.remove(path, records.Expectation_Present())
    change.hide(records.VersionId(path, "latest"))
    commit(change)
    return Response(204, [], Content_None_(), None)


def commit(change):
    match records.Transaction.commit(change):
        case records.Outcome_Applied():
            pass
        case _:
            raise missing()
