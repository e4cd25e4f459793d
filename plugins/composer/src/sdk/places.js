// Where each of some versions stands among them.

/** The places of these texts in the order that `compare` has of what `read` makes of them, 0 the lowest: those that it holds equal have the
 * same place, and what `read` answers null for has none. */
export function places(texts, read, compare) {
  const known = texts.map((text, at) => ({ at, version: read(text) })).filter(({ version }) => version !== null);
  known.sort((one, other) => compare(one.version, other.version));
  const found = texts.map(() => null);
  let place = 0;
  for (const [index, { at, version }] of known.entries()) {
    if (index > 0 && compare(known[index - 1].version, version) !== 0) place += 1;
    found[at] = place;
  }
  return found;
}
