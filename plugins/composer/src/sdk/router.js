// A protocol's requests as a table: method, path, plan, handler.

import { Failure } from "./failure.js";
import { matches } from "./pattern.js";

/** The table. The first row whose method and pattern fit a request has it; `HEAD` goes to the rows of `GET`. */
export class Router {
  #rows = [];

  get(pattern, plan, handler) {
    this.row("GET", pattern, plan, handler);
  }

  put(pattern, plan, handler) {
    this.row("PUT", pattern, plan, handler);
  }

  post(pattern, plan, handler) {
    this.row("POST", pattern, plan, handler);
  }

  delete(pattern, plan, handler) {
    this.row("DELETE", pattern, plan, handler);
  }

  row(method, pattern, plan, handler) {
    this.#rows.push({ method, pattern, plan, handler });
  }

  /** The row that fits, with what its pattern took. An unknown path is 404; a known one with another method 405 with `Allow`. */
  find(request) {
    const method = request.method === "HEAD" ? "GET" : request.method;
    const allow = new Set();
    for (const row of this.#rows) {
      const params = matches(row.pattern, request.path);
      if (params === null) continue;
      if (row.method === method) return { row, params };
      allow.add(row.method);
    }
    if (allow.size === 0) throw Failure.notFound("Nothing is served at this address");
    if (allow.has("GET")) allow.add("HEAD");
    throw Failure.methodNotAllowed([...allow].sort().join(", "));
  }
}
