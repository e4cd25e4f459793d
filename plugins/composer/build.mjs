// Makes the component: `node build.mjs FILE`. `packhouse plugins build` and `just plugins` run it.
import { readFile, writeFile } from "node:fs/promises";
import { componentize } from "componentize-qjs";

const source = "src/lib.js";
const { component } = await componentize({
  witPath: "../../wit/v0.1",
  world: "plugin-with-all",
  jsPath: source,
  jsSource: await readFile(source, "utf8"),
  moduleRoot: "src",
  // The engine that is built for size, without what calls wait for each other by.
  optSize: true,
  sync: true,
  disableGc: true,
});
await writeFile(process.argv[2], component);
