// Text and bytes. The engine has no TextDecoder and no TextEncoder, so the ways that run natively in it are taken: a loop over the bytes of a
// document costs fifty times as much.

/** The text of these bytes in UTF-8; null for what is not UTF-8. */
export function decode(bytes) {
  const latin = atob(bytes.toBase64());
  if (!/[\x80-\xff]/.test(latin)) return latin;
  try {
    return latin.replace(/[\x80-\xff]+/g, (run) => decodeURIComponent(escape(run)));
  } catch {
    return null;
  }
}

/** The bytes of a text in UTF-8. A surrogate by itself, which no bytes stand for, becomes U+FFFD. */
export function encode(text) {
  const latin = /[^\x00-\x7f]/.test(text)
    ? text.toWellFormed().replace(/[^\x00-\x7f]+/g, (run) => unescape(encodeURIComponent(run)))
    : text;
  return Uint8Array.fromBase64(btoa(latin));
}

/** How many bytes a text has in UTF-8. */
export function byteLength(text) {
  let extra = 0;
  for (const run of text.match(/[^\x00-\x7f]+/g) ?? []) {
    extra += encodeURIComponent(run.toWellFormed()).length / 3 - run.length;
  }
  return text.length + extra;
}

/** In the order of the bytes of UTF-8, as the host orders keys: below zero where `one` stands before `other`. */
export function compare(one, other) {
  const shorter = Math.min(one.length, other.length);
  for (let at = 0; at < shorter; at++) {
    const [a, b] = [one.charCodeAt(at), other.charCodeAt(at)];
    // Of two units that differ, one of a pair of surrogates stands for a larger number than any that is written with a single unit.
    if (a !== b) return isSurrogate(a) === isSurrogate(b) ? a - b : isSurrogate(a) ? 1 : -1;
  }
  return one.length - other.length;
}

/** These texts in the order of their bytes. The engine's own order, which is the faster by far, is the same but for surrogates. */
export function sorted(texts) {
  return /[\ud800-\udfff]/.test(texts.join("")) ? texts.sort(compare) : texts.sort();
}

function isSurrogate(unit) {
  return unit >= 0xd800 && unit < 0xe000;
}

/** A text as a message shows it: in quotation marks, with escapes. */
export function quoted(text) {
  return JSON.stringify(text);
}
