// What the format remembers: the keys of its records, and what stands in them.
//
// | key | what |
// | --- | --- |
// | `v/<vendor>/<package>/<key>` | a version, under the text that is the same for all spellings of it: what it says of itself, its zip |
// | `d/<vendor>/<package>/<key>` | that this version was published: the record stays when the version goes |
// | `p/<vendor>/<package>/<key>` | a proxy's: a version whose zip was fetched, as the upstream had it |
//
// A version: `{name, version, members, sha256, sha1, size, time, deprecated}`. `version` is as its publisher spells it, `members` are of its
// composer.json, `sha1` is in hex, which is what Composer compares, `time` in ms since 1970. `deprecated` says why nobody should use it any
// more, and is not there where nothing is said; the reason may be empty.
//
// A version whose file a proxy fetched: `{version, url, kind, sha1, published, metadata, withdrawn}`. `url` is where the upstream has it,
// `kind` `zip` or `tar`, `sha1` null where the upstream does not tell, `published` ms since 1970 or null, `metadata` the whole as it was
// offered, `withdrawn` whether the upstream lists it no longer.

import { isObject } from "./sdk/json.js";

export const ALL_VERSIONS = "v/";

export function versionsOf(name) {
  return `v/${name}/`;
}

export function versionKey(name, key) {
  return `v/${name}/${key}`;
}

export function usedKey(name, key) {
  return `d/${name}/${key}`;
}

export function allFetched(name) {
  return `p/${name}/`;
}

export function fetchedKey(name, key) {
  return `p/${name}/${key}`;
}

/** Where a version's file is served. */
export function filePath(name, version, kind) {
  return `dists/${name}/${version}.${kind}`;
}

/** What people see of a version's record, with its file. */
export function shown(record) {
  const { name, version, members, sha256: digest, size, deprecated } = record;
  const properties = [];
  for (const member of ["type", "license", "homepage", "keywords"]) {
    const value = short(texts(members[member]));
    if (value !== "") properties.push([member, value]);
  }
  if (deprecated) properties.push(["reason", deprecated]);
  return {
    name,
    version,
    files: [{ path: filePath(name, version, "zip"), digest, size }],
    summary: short(typeof members.description === "string" ? members.description : ""),
    properties,
    state: isDeprecated(record) ? "deprecated" : "",
  };
}

export function isDeprecated(record) {
  return (record.deprecated ?? null) !== null;
}

function texts(value) {
  if (Array.isArray(value)) return value.filter((one) => typeof one === "string").join(" ");
  return typeof value === "string" ? value : "";
}

/** The first 400 characters that are no control characters. */
function short(text) {
  return Array.from(text.replace(/[\x00-\x1f\x7f-\x9f]/g, "")).slice(0, 400).join("");
}

/** The links of a member as `require`, by the names of packages; none where it is no object. */
export function links(members, member) {
  return isObject(members[member]) ? Object.entries(members[member]) : [];
}
