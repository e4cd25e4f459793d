// Bytes that the host holds, read in pieces.

/** What one call of the host's answers at most: 1 MiB. */
const PIECE = 1 << 20;

/** Exactly `length` bytes from `offset` on, which must be there. */
export function readExact(blob, offset, length) {
  const first = blob.read(offset, Math.min(length, PIECE));
  if (first.length === length) return first;
  const bytes = new Uint8Array(length);
  let at = 0;
  for (let piece = first; at < length; piece = blob.read(offset + at, Math.min(length - at, PIECE))) {
    if (piece.length === 0) throw new Error(`${length} bytes at ${offset}: past the end`);
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

/** All of it; null where that is more than `limit` bytes. */
export function readAll(blob, limit) {
  const size = blob.size();
  return size > limit ? null : readExact(blob, 0, size);
}

/** Small readings that follow one another, made from few large ones. */
export class Window {
  #blob;
  #piece;
  #start = 0;
  #held = new Uint8Array(0);

  /** A window that reads `piece` bytes at once, and more where more are wanted. */
  constructor(blob, piece) {
    this.#blob = blob;
    this.#piece = piece;
    this.size = blob.size();
  }

  /** Exactly these bytes, until the next reading; null where the blob ends before. */
  get(offset, length) {
    if (offset + length > this.size) return null;
    if (offset < this.#start || offset + length > this.#start + this.#held.length) {
      this.#held = readExact(this.#blob, offset, Math.min(Math.max(length, this.#piece), this.size - offset));
      this.#start = offset;
    }
    const from = offset - this.#start;
    return this.#held.subarray(from, from + length);
  }
}
