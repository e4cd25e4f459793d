// Composer repositories as a format plugin: `packages.json`, the metadata of each package in Composer 2's minified form, and the zips that
// it names.
//
// What a package says of itself is read from the `composer.json` of its zip. docs/formats/composer.md says what is served and what was
// decided. `sdk/` is what any format in JavaScript needs, and knows nothing of Composer.

import { clients, install } from "./clients.js";
import { planDelete, deleteFile, remove } from "./delete.js";
import { getDist, planDist } from "./dists.js";
import { list, notify, packages, planMany, planNotify, root, search } from "./documents.js";
import { FILE_LIMIT, FORM_LIMIT } from "./limits.js";
import { getMetadata, planMetadata } from "./metadata.js";
import { presentVersion } from "./present.js";
import { judgeVersions } from "./retention.js";
import { component } from "./sdk/component.js";
import { markVersion } from "./upkeep.js";
import { planFile, planNamed, planUpload, upload } from "./upload.js";
import { Version } from "./version.js";

const describe = {
  format: "composer",
  version: "0.1.0",
  ecosystem: "Packagist",
  purl: { type: "composer", joint: "/" },
  kinds: ["hosted", "proxy", "group"],
  open_requests: [],
  upstream_credentials: ["basic", "bearer"],
  name_folding: "lowercase",
  clients,
  install,
  limits: { max_file_bytes: FILE_LIMIT, max_body_bytes: FORM_LIMIT },
};

function routes(router) {
  router.get("/", planMany, root);
  router.put("/", planUpload, upload);
  router.post("/", planUpload, upload);
  router.get("/packages.json", planMany, packages);
  router.get("/p2/{vendor}/{file}", planMetadata, getMetadata);
  router.get("/packages/list.json", planMany, list);
  router.get("/search.json", planMany, search);
  router.post("/downloads", planNotify, notify);
  router.get("/dists/{vendor}/{package}/{file}", planDist, getDist);
  router.put("/packages/upload/{vendor}/{package}/{version}", planNamed, upload);
  router.put("/{file}", planFile, upload);
  router.delete("/packages/{vendor}/{package}/{version}", planDelete, deleteFile);
}

export const { format, upkeep, present, retention, versions } = component({
  describe,
  routes,
  deleteVersion: (cx, id) => remove(cx.target, id.name, id.version),
  markVersion,
  presentVersion,
  judgeVersions,
  // A branch is in no range, before or after any version.
  readVersion: Version.parseNumbered,
  compareVersions: Version.compare,
});
