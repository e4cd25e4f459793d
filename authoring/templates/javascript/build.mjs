// Makes the component: `node build.mjs FILE`. `packhouse plugins build` runs it.
import { readFile, writeFile } from "node:fs/promises";
import { componentize } from "@bytecodealliance/componentize-js";

const { component } = await componentize({
  sourcePath: "app.js",
  witPath: "packhouse/wit/v0.1",
  worldName: (await readFile("packhouse/world", "utf8")).trim(),
  // Nothing of the world outside: what is left of WASI is for `console` and the engine itself.
  disableFeatures: ["http", "fetch-event"],
});
await writeFile(process.argv[2], component);
