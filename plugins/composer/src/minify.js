// Composer 2's minified metadata: the first version whole, of each further one what differs from the one before. A version is a map of its
// members' values by their names; one that is to be written, of those values as JSON: then two are the same where their texts are, and each
// is made once.

/** The member that says so. */
export const FORM = "composer/2.0";
/** Stands for a member that the version before had. */
const UNSET = "__unset";
const UNSET_JSON = JSON.stringify(UNSET);

/** A version's members as JSON. */
export function asJson(version) {
  const written = new Map();
  version.forEach((value, name) => written.set(name, JSON.stringify(value)));
  return written;
}

/** What is to be written of `now` behind `before`, all of it as JSON. */
export function difference(before, now) {
  const changed = new Map();
  now.forEach((json, name) => {
    if (before.get(name) !== json) changed.set(name, json);
  });
  before.forEach((_, name) => {
    if (!now.has(name)) changed.set(name, UNSET_JSON);
  });
  return changed;
}

/** Makes of `version` what is written of the next one. */
export function apply(version, changed) {
  changed.forEach((value, name) => {
    if (value === UNSET) version.delete(name);
    else version.set(name, value);
  });
}
