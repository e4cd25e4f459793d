// The contract's exports, over a format: what `export const { format, upkeep, … } = component({…})` hands to the host. What a format is made
// of (its description, its rows) is put together when the component is built, and lies in its memory from then on.

import { log } from "packhouse:format/host@0.1.0";
import { Intent as HostIntent } from "packhouse:format/http@0.1.0";
import { Context } from "./context.js";
import { Failure, described } from "./failure.js";
import { places } from "./places.js";
import { Request } from "./request.js";
import { Router } from "./router.js";

/** `describe` is an object as docs/PLUGINS.md lists it, `routes` fills a router; the others are functions as the contract has them, over a
 * context in place of handles. `readVersion` and `compareVersions` order versions. */
export function component({ describe, routes, deleteVersion, markVersion, presentVersion, judgeVersions, readVersion, compareVersions }) {
  const description = JSON.stringify(describe);
  const router = new Router();
  routes(router);
  return {
    format: {
      describe: () => description,
      route: guarded((_kind, host) => {
        const request = new Request(host);
        const { row, params } = router.find(request);
        return row.plan(request, params).toContract(HostIntent);
      }),
      check: () => {},
      handle: guarded((host, target, others) => {
        const request = new Request(host);
        const { row, params } = router.find(request);
        return row.handler(new Context(target, others), request, params).toContract();
      }),
    },
    upkeep: {
      deleteVersion: guarded((target, id) => deleteVersion(new Context(target, []), id)),
      markVersion: guarded((target, id, state, reason) => markVersion(new Context(target, []), id, state, reason)),
    },
    present: {
      presentVersion: guarded((target, id) => JSON.stringify(presentVersion(new Context(target, []), id))),
    },
    retention: {
      judgeVersions: guarded((target, ids) => JSON.stringify(judgeVersions(new Context(target, []), ids))),
      listUnshown: guarded(() => JSON.stringify({ items: [], next: null })),
    },
    versions: {
      compareVersions: (texts) => {
        try {
          return places(texts, readVersion, compareVersions);
        } catch (mistake) {
          log("error", described(mistake), []);
          throw mistake;
        }
      },
    },
  };
}

/** What is thrown becomes a failure of the contract's. What went wrong inside goes to the log; the answer does not tell it. In `route`, from
 * which nothing can be logged, to try it ends the call, and the host says what was to be logged. */
function guarded(work) {
  return (...given) => {
    try {
      return work(...given);
    } catch (thrown) {
      const failure = Failure.of(thrown);
      if (failure.internal !== null) log("error", failure.internal, []);
      throw failure.toContract();
    }
  };
}
