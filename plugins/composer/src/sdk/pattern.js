// Matches a path against a row's pattern: `/` for the address itself, else words and `{name}` for exactly one segment that is not empty.

/** What a pattern takes from a path, by name; null where it does not match. */
export function matches(pattern, path) {
  const wanted = pattern === "/" ? [] : pattern.slice(1).split("/");
  if (wanted.length !== path.length) return null;
  const params = Object.create(null);
  for (const [at, word] of wanted.entries()) {
    const name = word.startsWith("{") && word.endsWith("}") ? word.slice(1, -1) : null;
    if (name === null ? word !== path[at] : path[at] === "") return null;
    if (name !== null) params[name] ??= path[at];
  }
  return params;
}
