// A document that is put together piece by piece: inline while it is small, else through a blob.

import { Writer } from "packhouse:format/blobs@0.1.0";
import { encode } from "./text.js";

/** Bytes that need not be a blob, and that are handed to one at a time. */
const INLINE = 1 << 20;
/** Units of text after which they are turned into bytes: each becomes three at most. */
const PENDING = 256 << 10;

export class Output {
  #texts = [];
  #pending = 0;
  #pieces = [];
  #size = 0;
  #writer = null;

  /** Adds text as it is. */
  push(text) {
    this.#texts.push(text);
    this.#pending += text.length;
    if (this.#pending > PENDING) this.#encode();
  }

  /** All of it, as an answer's content. */
  finish() {
    this.#encode();
    if (this.#writer === null) return { tag: "inline", val: this.#joined() };
    this.#write();
    return { tag: "blob", val: Writer.finish(this.#writer) };
  }

  #encode() {
    const piece = encode(this.#texts.join(""));
    if (this.#size + piece.length > INLINE) {
      this.#writer ??= new Writer();
      this.#write();
    }
    this.#pieces.push(piece);
    this.#size += piece.length;
    [this.#texts, this.#pending] = [[], 0];
  }

  #write() {
    for (const piece of this.#pieces) this.#writer.write(piece);
    [this.#pieces, this.#size] = [[], 0];
  }

  #joined() {
    if (this.#pieces.length === 1) return this.#pieces[0];
    const bytes = new Uint8Array(this.#size);
    let at = 0;
    for (const piece of this.#pieces) {
      bytes.set(piece, at);
      at += piece.length;
    }
    return bytes;
  }
}
