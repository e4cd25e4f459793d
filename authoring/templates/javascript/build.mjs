// Makes the component: `node build.mjs FILE`. `packhouse plugins build` runs it, and takes out of the component what is not of the contract.
import { readFile, writeFile } from "node:fs/promises";
import { componentize } from "componentize-qjs";

const source = "app.js";
const { component } = await componentize({
  witPath: "packhouse/wit/v0.1",
  world: (await readFile("packhouse/world", "utf8")).trim(),
  jsPath: source,
  jsSource: await readFile(source, "utf8"),
  // The engine that is built for size, without what calls wait for each other by.
  optSize: true,
  sync: true,
});
await writeFile(process.argv[2], component);
