// An upstream's `packages.json` and the metadata of a package. What they say is a stranger's word: what cannot be understood of it is left out,
// version by version.

import { FORM, apply, asJson } from "./minify.js";
import { join } from "./sdk/address.js";
import { isObject, parseObject } from "./sdk/json.js";
import { parseRfc3339 } from "./sdk/timestamp.js";
import { Version } from "./version.js";

/** Units of text of all versions of a package, each written out: each takes a byte or more. */
const EXPANDED = 24 << 20;

/** Reads `packages.json` that came from `base`: `{template}` with an address of documents that has `%package%` for the name, `{template: null}`
 * where all packages stand in this document itself, as a small Satis writes it. Null for what is none. */
export function readRoot(text, base) {
  const document = parseObject(text);
  if (document === null) return null;
  const template = document["metadata-url"];
  if (typeof template === "string" && template.includes("%package%")) {
    const address = join(base, template);
    return address === null ? null : { template: address };
  }
  return isObject(document.packages) ? { template: null } : null;
}

/** What an upstream's document that came from `base` lists of a package: `{listed}`, which is null where it has no such package, or `{fault}` for
 * what is no such document.
 *
 * Each is `{version, text, dist, published, members}`: `text` is the version as it is spelt, `dist` `{url, kind, sha1}` or null for what has no
 * file, as a metapackage, `published` ms since 1970 or null, `members` all of it but where its file is, as JSON. */
export function readListed(text, base, name) {
  const document = parseObject(text);
  if (document === null) return { fault: "no JSON object" };
  if (!isObject(document.packages)) return { fault: "no packages" };
  if (!Object.hasOwn(document.packages, name)) return { listed: null };
  const versions = document.packages[name];
  if (!Array.isArray(versions) && !isObject(versions)) return { fault: "a package that is no list of versions" };
  const listed = [];
  let [whole, size] = [new Map(), 0];
  for (const version of Object.values(versions)) {
    if (!isObject(version)) continue;
    const said = asJson(version);
    if (document.minified === FORM) apply(whole, said);
    else whole = said;
    const one = readVersion(new Map(whole), base, name);
    if (one === null) continue;
    one.members.forEach((json, member) => (size += member.length + json.length));
    if (size > EXPANDED) return { fault: "more than 24 MiB of one package's versions" };
    listed.push(one);
  }
  return { listed };
}

function readVersion(members, base, name) {
  const text = textOf(members, "version");
  const version = text === null || textOf(members, "name") !== name ? null : Version.parse(text);
  if (version === null) return null;
  const time = textOf(members, "time");
  const published = time === null ? null : parseRfc3339(time);
  members.delete("notification-url");
  const dist = readDist(members, base);
  return { version, text, dist, published, members };
}

/** Where a version's file is; what is left of the member says nothing of that. */
function readDist(members, base) {
  const said = members.has("dist") ? JSON.parse(members.get("dist")) : null;
  members.delete("dist");
  if (!isObject(said)) return null;
  const { type: kind, url, shasum } = said;
  const address = typeof url === "string" ? join(base, url) : null;
  if ((kind !== "zip" && kind !== "tar") || address === null) return null;
  const sha1 = typeof shasum === "string" && /^[0-9a-fA-F]{40}$/.test(shasum) ? shasum.toLowerCase() : null;
  const left = ["reference", "shasum", "type"].filter((member) => Object.hasOwn(said, member));
  members.set("dist", JSON.stringify(Object.fromEntries(left.map((member) => [member, said[member]]))));
  return { url: address, kind, sha1 };
}

/** A member that is a text; null where it is none. */
function textOf(members, member) {
  const json = members.get(member);
  return json?.startsWith('"') ? JSON.parse(json) : null;
}
