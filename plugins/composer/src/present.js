// What people are shown of a version: the packages that it needs.

import { keyOf, missing } from "./delete.js";
import { fetchedKey, links } from "./records.js";
import { Version } from "./version.js";

export function presentVersion(cx, id) {
  const repository = cx.target;
  const key = keyOf(id.name, id.version);
  const record = repository.isProxy
    ? repository.get(fetchedKey(id.name, Version.parse(id.version).key()))
    : repository.get(key);
  if (record === null) throw missing(id.name, id.version);
  const dependencies = dependenciesOf(repository.isProxy ? record.value.metadata : record.value.members);
  return dependencies.length > 0 ? { dependencies } : {};
}

function dependenciesOf(members) {
  const groups = [
    ["require", ""],
    ["require-dev", "dev"],
    ["suggest", "suggest"],
  ];
  return groups.flatMap(([member, group]) =>
    links(members, member).map(([name, asked]) => ({
      name,
      requirement: typeof asked === "string" ? asked : "",
      group,
    })),
  );
}
