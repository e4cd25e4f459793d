// What a package says of itself: its composer.json, as far as it is of use to others.

import { bad } from "./archive.js";
import { isName } from "./name.js";
import { isObject, parseObject } from "./sdk/json.js";
import { decode, quoted } from "./sdk/text.js";

/** What reaches the metadata. What counts for a root package alone stays out. */
const MEMBERS = new Set([
  "abandoned",
  "authors",
  "autoload",
  "bin",
  "conflict",
  "description",
  "extra",
  "funding",
  "homepage",
  "include-path",
  "keywords",
  "license",
  "provide",
  "replace",
  "require",
  "require-dev",
  "suggest",
  "support",
  "target-dir",
  "type",
]);
/** Maps of names to texts. */
const LINKS = ["require", "require-dev", "conflict", "replace", "provide", "suggest"];

/** Reads a composer.json: `{name, version, members}`, where `version` is null where it says none itself. 400 `invalid_package` in a sentence
 * for whoever made it. */
export function readPackage(bytes) {
  const all = parseObject(decode(bytes));
  if (all === null) throw bad("Its composer.json is no JSON object");
  const text = (member) => (typeof all[member] === "string" ? all[member] : null);
  const name = text("name");
  if (name === null) throw bad("Its composer.json says no name");
  if (!isName(name)) {
    throw bad(`Its composer.json says name ${quoted(name)}, and a name is vendor/package in lower case`);
  }
  for (const member of LINKS) {
    if (!isLinks(all[member])) throw bad(`In its composer.json ${member} is no map of names to texts`);
  }
  const known = Object.entries(all).filter(([member, value]) => MEMBERS.has(member) && !isEmpty(value));
  return { name, version: text("version"), members: Object.fromEntries(known) };
}

function isLinks(value) {
  if (value === undefined) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isObject(value) && Object.values(value).every((link) => typeof link === "string");
}

/** PHP writes an empty map as an empty list, so that neither is worth anything. */
function isEmpty(value) {
  if (Array.isArray(value)) return value.length === 0;
  return value === null || (isObject(value) && Object.keys(value).length === 0);
}
