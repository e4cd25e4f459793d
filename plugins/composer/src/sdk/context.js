// What a handler is handed: repositories, and the rest of what it may know of the world.

import { now } from "packhouse:format/host@0.1.0";
import { Fetch, Reply } from "packhouse:format/upstream@0.1.0";
import { Failure } from "./failure.js";
import { Repository } from "./repository.js";

export class Context {
  #target;
  #others;

  /** Over the host's handles; `target` is null where the request names no repository. */
  constructor(target, others) {
    this.#target = target === null ? null : new Repository(target);
    this.#others = others.map((other) => new Repository(other));
  }

  /** The repository that the request is for. */
  get target() {
    if (this.#target === null) throw Failure.internal("this request names no repository");
    return this.#target;
  }

  /** Where a read looks: in a group those of its members that may serve what is asked for, in order, perhaps none; else the target. */
  sources() {
    return this.target.kind === "group" ? this.#others : [this.target];
  }

  /** What the first of the sources answers that has it; null where none has. One that fails ends the search: what a later one has under the
   * same name may be something else. */
  first(ask) {
    for (const source of this.sources()) {
      const answer = ask(source);
      if (answer !== null) return answer;
    }
    return null;
  }

  /** Ms since 1970. An answer that depends on it is not kept: ask only when it is needed. */
  now() {
    return now();
  }
}

/** A request to a proxy's upstream, `GET` of this target with these options, and its answer, which came from `address`. What is not shown
 * as a file is metadata. */
export function fetchFrom(proxy, target, { limit, immutable = false, expect = null, showAs = null }) {
  const fetch = new Fetch("GET", target);
  fetch.limit(limit);
  if (immutable) fetch.fresh({ tag: "immutable" });
  if (expect !== null) fetch.expect(expect);
  if (showAs === null) fetch.metadata();
  else fetch.showAs(...showAs);
  const reply = Fetch.start(fetch, proxy.host);
  return {
    status: () => reply.status(),
    address: () => reply.address(),
    body: () => Reply.body(reply),
  };
}
