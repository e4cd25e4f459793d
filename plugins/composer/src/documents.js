// `packages.json`, by which Composer finds everything else, and the lists.

import { ALL_VERSIONS } from "./records.js";
import { Intent } from "./sdk/intent.js";
import { stringify } from "./sdk/json.js";
import { Response } from "./sdk/response.js";
import { sorted } from "./sdk/text.js";

/** Names that `packages.json` lists; where there are more, Composer asks for each. */
const LISTED = 5_000;
/** Bytes of what Composer says that it installed. */
const NOTE = 1 << 20;

export function planMany() {
  return Intent.read().manyPackages();
}

export function planNotify() {
  return Intent.read().manyPackages().body(NOTE);
}

/** `GET` of the address itself: what tells that a credential works. */
export function root(_cx, request) {
  return Response.text(`A Composer repository: composer config repositories.NAME composer ${request.address}/\n`);
}

/** `GET /packages.json`. */
export function packages(cx, request) {
  const document = {
    packages: [],
    "metadata-url": request.link("p2/%package%.json"),
    "notify-batch": request.link("downloads"),
    search: request.link("search.json?q=%query%&type=%type%"),
    list: request.link("packages/list.json"),
  };
  if (!cx.sources().some((source) => source.isProxy)) {
    const names = packageNames(cx);
    if (names.length <= LISTED) document["available-packages"] = names;
  }
  return Response.json(stringify(document)).revalidate();
}

/** Names of all packages, in their order; a proxy's are those of which it has a file. */
function packageNames(cx) {
  const found = new Set();
  for (const repository of cx.sources()) {
    const prefix = repository.isProxy ? "p/" : ALL_VERSIONS;
    const own = [];
    for (const vendor of repository.keys(prefix, "/")) {
      for (const key of repository.keys(vendor, "/")) own.push(key.slice(prefix.length).replace(/\/+$/, ""));
    }
    const withheld = repository.isProxy ? repository.withheld(own) : new Set();
    for (const name of own) if (!withheld.has(name)) found.add(name);
  }
  return sorted([...found]);
}

/** `GET /packages/list.json`, with a pattern in `filter`. */
export function list(cx, request) {
  const filter = request.query("filter");
  const names = packageNames(cx).filter((name) => filter === null || fits(filter, name));
  return Response.json(stringify({ packageNames: names })).revalidate();
}

/** Whether a name is as a pattern says, in which `*` stands for any text. */
export function fits(pattern, name) {
  const [first, ...parts] = pattern.split("*");
  if (parts.length === 0) return first === name;
  if (!name.startsWith(first)) return false;
  const last = parts.pop();
  let rest = name.slice(first.length);
  for (const part of parts) {
    const at = rest.indexOf(part);
    if (at < 0) return false;
    rest = rest.slice(at + part.length);
  }
  return rest.endsWith(last);
}

/** `GET /search.json?q=`. */
export function search(cx, request) {
  const names = new Set();
  let total = 0;
  for (const repository of cx.sources()) {
    const matches = repository.search(request.query("q") ?? "", 0, 100);
    total += matches.total;
    const withheld = repository.isProxy ? repository.withheld(matches.names) : new Set();
    for (const name of matches.names) if (!withheld.has(name)) names.add(name);
  }
  const results = [...names].map((name) => ({ name, url: "", repository: "", downloads: 0, favers: 0 }));
  return Response.json(stringify({ results, total })).revalidate();
}

/** `POST /downloads`: what Composer installed. The host counts what it sends, so that nothing is to be noted. */
export function notify(_cx, request) {
  request.takeBody();
  return Response.json(stringify({ status: "success" }));
}
