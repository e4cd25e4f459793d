// What the management API asks of the format besides deleting a version: deprecating it and taking that back.

import { keyOf, missing } from "./delete.js";
import { shown } from "./records.js";
import { Failure } from "./sdk/failure.js";
import { unchanged } from "./sdk/repository.js";

export function markVersion(cx, id, state, reason) {
  if (state !== "" && state !== "deprecated") {
    const text = `A package's version can be deprecated, which Composer calls abandoned, not ${state}: it knows no other state`;
    throw new Failure(405, "not_supported", text);
  }
  if (Array.from(reason).length > 1000 || /[\x00-\x1f\x7f-\x9f]/.test(reason)) {
    throw Failure.invalid("A reason is one line of at most 1,000 characters");
  }
  const [repository, key] = [cx.target, keyOf(id.name, id.version)];
  repository.update("the same package", (change) => {
    const there = repository.get(key);
    if (there === null) throw missing(id.name, id.version);
    const record = { ...there.value, deprecated: state === "" ? undefined : reason };
    change.put(key, record, unchanged(there), [record.sha256]);
    change.show(shown(record));
  });
}
