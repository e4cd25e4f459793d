// Addresses: text as it stands in one, and those of an upstream's documents made absolute (RFC 3986, section 5). Where they may lead is the
// host's to judge.

/** Percent-encodes all but letters, digits, `-`, `.`, `_` and `~`: one segment of a path, or a value in a query. */
export function percentEncode(text) {
  if (/^[\w.~-]*$/.test(text)) return text;
  const more = (symbol) => `%${symbol.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(text.toWellFormed()).replace(/[!'()*]/g, more);
}

/** The absolute address of `reference` in a document that came from `base`, without its fragment. Null for another scheme than http and
 * https, and for what holds what no address may. */
export function join(base, reference) {
  const target = reference.trim().split("#")[0];
  if (/[\s\x00-\x1f\x7f-\x9f]/.test(target)) return null;
  const start = base.indexOf("://");
  if (start < 0) return null;
  const [scheme, rest] = [base.slice(0, start), base.slice(start + 3)];
  const [host, afterHost] = cut(rest, "/");
  if (target.startsWith("//")) return `${scheme}://${target.slice(2)}`;
  const other = /^([^/?]*?):/.exec(target);
  if (other !== null) return /^https?$/i.test(other[1]) ? target : null;
  const [path, query] = cut(target, "?");
  const document = (afterHost ?? "").split(/[?#]/)[0];
  const folder = document.slice(0, Math.max(document.lastIndexOf("/"), 0));
  let merged = folder === "" ? path : `${folder}/${path}`;
  if (path.startsWith("/")) merged = path.slice(1);
  return `${scheme}://${host}/${withoutDots(merged)}${query === null ? "" : `?${query}`}`;
}

/** The same address as a target below the upstream's own, where it is one: there the host shows the credentials that it was given. */
export function below(upstream, address) {
  const start = `${upstream.replace(/\/+$/, "")}/`;
  const rest = address.startsWith(start) ? address.slice(start.length) : "";
  return rest === "" || rest.startsWith("/") || rest.includes("://") ? address : rest;
}

/** What stands before the first mark and what behind it; null behind it where there is no mark. */
function cut(text, mark) {
  const at = text.indexOf(mark);
  return at < 0 ? [text, null] : [text.slice(0, at), text.slice(at + mark.length)];
}

function withoutDots(path) {
  const all = path.split("/");
  const segments = [];
  for (const segment of all) {
    if (segment === "..") segments.pop();
    else if (segment !== ".") segments.push(segment);
  }
  const last = all.at(-1);
  if (last === "." || last === "..") segments.push("");
  return segments.join("/");
}
