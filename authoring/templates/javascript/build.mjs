// Builds the component: `node build.mjs FILE`. `packhouse plugins build` runs this, and then removes all imports that are not part of the contract.
import { readFile, writeFile } from "node:fs/promises";
import { componentize } from "componentize-qjs";

const source = "app.js";
const { component } = await componentize({
  witPath: "packhouse/wit/v0.1",
  world: (await readFile("packhouse/world", "utf8")).trim(),
  jsPath: source,
  jsSource: await readFile(source, "utf8"),
  // Use the engine that is optimized for size, without support for asynchronous calls.
  optSize: true,
  sync: true,
});
await writeFile(process.argv[2], component);
