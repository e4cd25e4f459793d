// `GET` of a version's file.

import { about, isName } from "./name.js";
import { proxiedFile } from "./proxy.js";
import { versionKey } from "./records.js";
import { Failure } from "./sdk/failure.js";
import { Intent } from "./sdk/intent.js";
import { Response } from "./sdk/response.js";
import { Version } from "./version.js";

export function planDist(_request, params) {
  return about(Intent.read(), named(params));
}

function named(params) {
  return `${params.vendor}/${params.package}`;
}

export function getDist(cx, _request, params) {
  const [name, file] = [named(params), params.file];
  const missing = () => Failure.notFound(`There is no file ${file} of ${name} in this repository`);
  const dot = file.lastIndexOf(".");
  if (dot < 0) throw missing();
  const [text, kind] = [file.slice(0, dot), file.slice(dot + 1)];
  const version = isName(name) ? Version.parse(text) : null;
  if (version === null) throw missing();
  const found = cx.first((repository) =>
    repository.isProxy ? proxiedFile(repository, name, version, kind) : hostedFile(repository, name, version, text, kind),
  );
  if (found === null) throw missing();
  return found;
}

function hostedFile(repository, name, version, text, kind) {
  const record = repository.get(versionKey(name, version.key()))?.value;
  if (record === undefined || kind !== "zip" || record.version !== text) return null;
  return Response.blob(repository.recordedBlob(record.sha256), "application/zip").modified(record.time).immutable();
}
