// Names of packages: `vendor/package`, in lower case.

/** Bytes of each half. */
const LONGEST = 100;
const HALF = /^[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?$/;

/** Whether a package may be called that. */
export function isName(text) {
  const halves = text.split("/");
  return halves.length === 2 && halves.every(isHalf);
}

function isHalf(text) {
  return text.length <= LONGEST && HALF.test(text) && !text.includes("..");
}

/** Says which package an intent is about. */
export function about(intent, name) {
  intent.subject(name);
  return isName(name) ? intent.aboutPackage(name) : intent;
}
