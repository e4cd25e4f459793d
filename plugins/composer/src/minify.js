// Composer 2's minified metadata: the first version whole, of each further one what differs from the one before. A version is a map of its
// members' values by their names.

/** The member that says so. */
export const FORM = "composer/2.0";
/** Stands for a member that the version before had. */
const UNSET = "__unset";

/** What objects and arrays are as JSON. Versions share most of theirs with the version before. */
const written = new WeakMap();

/** A value as JSON, which of an object is written once. */
export function jsonOf(value) {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  let json = written.get(value);
  if (json === undefined) {
    json = JSON.stringify(value);
    written.set(value, json);
  }
  return json;
}

function isSame(one, other) {
  return one === other || (typeof one === "object" && typeof other === "object" && jsonOf(one) === jsonOf(other));
}

/** What is to be written of `now` behind `before`. */
export function difference(before, now) {
  const changed = new Map();
  for (const [name, value] of now) if (!before.has(name) || !isSame(before.get(name), value)) changed.set(name, value);
  for (const name of before.keys()) if (!now.has(name)) changed.set(name, UNSET);
  return changed;
}

/** Makes of `version` what is written of the next one. */
export function apply(version, changed) {
  for (const [name, value] of changed) {
    if (value === UNSET) version.delete(name);
    else version.set(name, value);
  }
}
