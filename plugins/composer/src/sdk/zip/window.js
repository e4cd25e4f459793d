// What a zip's readers read: bytes that must be there.

import { Window } from "../blob.js";
import { Refused } from "./refused.js";

/** Bytes that are read at once. */
const PIECE = 64 << 10;

export class ZipWindow extends Window {
  constructor(blob) {
    super(blob, PIECE);
  }

  /** Exactly these bytes, until the next reading; refused where the archive ends before. */
  get(offset, length) {
    const bytes = super.get(offset, length);
    if (bytes === null) throw new Refused("it ends too early");
    return bytes;
  }
}
