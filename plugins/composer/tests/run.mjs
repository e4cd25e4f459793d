// Runs the tests of `js/` in the engine that the component has: `node tests/run.mjs`, in the plugin's folder. The tool that makes the component
// reads all sources in that engine, so a test that fails is one whose sources cannot be read.
import { readFile, readdir } from "node:fs/promises";
import { componentize } from "componentize-qjs";

async function seeds(target) {
  const folder = `tests/seeds/${target}`;
  const files = (await readdir(folder)).sort();
  return Promise.all(files.map(async (file) => [file, [...(await readFile(`${folder}/${file}`))]]));
}

const files = (await readdir("tests/js")).filter((file) => file.endsWith(".test.js")).sort();
const given = JSON.stringify({ package: await seeds("package"), upstream: await seeds("upstream") });
const jsSource = [
  `globalThis.seeds = ${given};`,
  ...files.map((file, at) => `import * as suite${at} from "./js/${file}";`),
  'import { run } from "./js/testing.js";',
  `run({ ${files.map((file, at) => `${JSON.stringify(file)}: suite${at}`).join(", ")} });`,
].join("\n");

try {
  const options = { witPath: "../../wit/v0.1", world: "plugin-with-all", optSize: true, sync: true };
  await componentize({ ...options, jsSource, jsPath: "tests/run.mjs", moduleRoot: "." });
  console.log(`${files.length} files of tests hold`);
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
