// Composer 2's minified metadata: the first version whole, of each further one what differs from the one before. A version is a map of its
// members' values, as JSON, by their names: so that two values are the same where their texts are, and each is written once.

/** The member that says so. */
export const FORM = "composer/2.0";
/** Stands for a member that the version before had. */
const UNSET = '"__unset"';

/** The members of an object as JSON. */
export function asJson(object) {
  const members = new Map();
  for (const name in object) members.set(name, JSON.stringify(object[name]));
  return members;
}

/** What is to be written of `now` behind `before`. */
export function difference(before, now) {
  const changed = new Map();
  now.forEach((json, name) => {
    if (before.get(name) !== json) changed.set(name, json);
  });
  before.forEach((_, name) => {
    if (!now.has(name)) changed.set(name, UNSET);
  });
  return changed;
}

/** Makes of `version` what is written of the next one. */
export function apply(version, changed) {
  changed.forEach((json, name) => {
    if (json === UNSET) version.delete(name);
    else version.set(name, json);
  });
}
