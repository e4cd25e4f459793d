// What retention asks of the format: which versions are pre-releases.

import { Version } from "./version.js";

export function judgeVersions(_cx, ids) {
  return ids.map((id) => {
    const version = Version.parse(id.version);
    return version === null ? {} : { prerelease: version.isPrerelease() };
  });
}
