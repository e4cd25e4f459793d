// Deleting a version. Its number stays used.

import { isName } from "./name.js";
import { versionKey } from "./records.js";
import { Failure } from "./sdk/failure.js";
import { Intent } from "./sdk/intent.js";
import { ANYTHING, unchanged } from "./sdk/repository.js";
import { Response } from "./sdk/response.js";
import { Version } from "./version.js";

export function planDelete(_request, params) {
  return Intent.delete().subject(`${named(params)} ${params.version}`);
}

function named(params) {
  return `${params.vendor}/${params.package}`;
}

export function deleteFile(cx, _request, params) {
  remove(cx.target, named(params), params.version);
  return Response.noContent();
}

/** Removes a version. */
export function remove(repository, name, version) {
  const key = keyOf(name, version);
  repository.update("the same package", (change) => {
    const record = repository.get(key);
    if (record === null) throw missing(name, version);
    change.remove(key, unchanged(record));
    change.require(key.replace("v/", "d/"), ANYTHING);
    change.hide(name, record.value.version);
  });
}

/** The key of a version's record. */
export function keyOf(name, version) {
  const parsed = isName(name) ? Version.parse(version) : null;
  if (parsed === null) throw missing(name, version);
  return versionKey(name, parsed.key());
}

export function missing(name, version) {
  return Failure.notFound(`There is no version ${version} of ${name} in this repository`);
}
