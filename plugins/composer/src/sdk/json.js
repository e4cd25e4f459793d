// JSON that comes from outside, and that is stored: numbers stay as they are written, whatever a number of JavaScript can hold, and members
// are written in the order of their names, so that the same value always is the same text.

import { sorted } from "./text.js";

/** How deep arrays and objects may lie in each other. The engine reads a document by calling itself, and its stack is not large. */
const DEEPEST = 127;
/** A number that may not come back as it was written, or what looks like one within a text. */
const EXACT = /[:[,]\s*(?:-?(?:\d{16}|\d+[.eE])|-0)/;
/** The same in what is stored, where nothing stands between the marks. Of each pass over a record, which costs as much as reading it does,
 * the simplest expression is the fastest. */
const STORED_EXACT = /[:[,](?:-?(?:\d{16}|\d+[.eE])|-0)/;
/** A surrogate that is written as an escape: the only way in which one comes without the other. */
const ESCAPED_SURROGATE = /\\u[dD][89a-fA-F]/;

/** The value of a document. A SyntaxError for what is none, for one that lies too deep, and for text that no UTF-8 stands for. */
export function parse(text) {
  if (!isShallow(text)) throw new SyntaxError("JSON that lies too deep");
  const checks = ESCAPED_SURROGATE.test(text);
  if (!checks && !EXACT.test(text)) return JSON.parse(text);
  return JSON.parse(text, function (name, value, context) {
    if (checks && !(name.isWellFormed() && (typeof value !== "string" || value.isWellFormed()))) {
      throw new SyntaxError("JSON with half a character");
    }
    return exact(value, context.source);
  });
}

/** The value of a record, which [`stringify`] wrote or another writer of JSON that knows no half characters. */
export function parseStored(text) {
  return STORED_EXACT.test(text) ? JSON.parse(text, (_, value, { source }) => exact(value, source)) : JSON.parse(text);
}

/** The same of an object's document, else null. */
export function parseObject(text) {
  try {
    const value = text === null ? null : parse(text);
    return isObject(value) ? value : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** A value that is no number stays. */
function exact(value, source) {
  if (typeof value !== "number") return value;
  if (!Number.isFinite(value)) throw new SyntaxError("JSON with a number out of range");
  return String(value) === source ? value : JSON.rawJSON(source);
}

/** Whether nothing in a document lies deeper than is allowed. */
function isShallow(text) {
  // Each opening bracket makes it one deeper at most.
  if (text.split("[").length + text.split("{").length - 2 <= DEEPEST) return true;
  const brackets = text.replace(/"[^"\\]*(?:\\.[^"\\]*)*"?|[^"[\]{}]+/g, "");
  let depth = 0;
  for (let at = 0; at < brackets.length; at++) {
    const opens = brackets[at] === "[" || brackets[at] === "{";
    depth += opens ? 1 : -1;
    if (depth > DEEPEST) return false;
  }
  return true;
}

/** Whether a value is an object of JSON, not an array. */
export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value);
}

/** A value as JSON, the members of each object in the order of their names' bytes. */
export function stringify(value) {
  if (Array.isArray(value)) return `[${value.map(stringify).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const names = sorted(Object.keys(value)).filter((name) => value[name] !== undefined);
  return `{${names.map((name) => `${JSON.stringify(name)}:${stringify(value[name])}`).join(",")}}`;
}
