// An answer, built by what it is meant to be.

import { ResponseOptions } from "packhouse:format/http@0.1.0";
import { encode } from "./text.js";

export class Response {
  #modified = null;

  constructor(status, content = { tag: "none" }) {
    this.status = status;
    this.headers = [];
    this.content = content;
  }

  static noContent() {
    return new Response(204);
  }

  /** A blob, whole. */
  static blob(blob, mediaType) {
    return Response.of({ tag: "blob", val: blob }, mediaType);
  }

  static text(text) {
    return Response.of({ tag: "inline", val: encode(text) }, "text/plain; charset=utf-8");
  }

  /** A document that is written already, of at most 1 MiB. */
  static json(text) {
    return Response.of({ tag: "inline", val: encode(text) }, "application/json");
  }

  /** Of this content, as the contract has it. */
  static of(content, mediaType) {
    return new Response(200, content).header("content-type", mediaType);
  }

  withStatus(status) {
    this.status = status;
    return this;
  }

  header(name, value) {
    this.headers.push({ name, value });
    return this;
  }

  /** What is served under this address never changes: clients may keep it for a year. */
  immutable() {
    return this.header("cache-control", "private, max-age=31536000, immutable");
  }

  /** It may change at any time: clients ask again whenever they use it. */
  revalidate() {
    return this.header("cache-control", "no-cache");
  }

  /** When what is served was last changed, in ms since 1970. */
  modified(at) {
    this.#modified = at;
    return this;
  }

  toContract() {
    const { status, headers, content } = this;
    let options = null;
    if (this.#modified !== null) {
      options = new ResponseOptions();
      options.modified(this.#modified);
    }
    return { status, headers, content, options };
  }
}
