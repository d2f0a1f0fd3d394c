// Builds the published files. Node rejects TypeScript under node_modules, so dist has JavaScript and declarations, in few
// files because npm's time depends on their number, and the dashboard as files that a browser loads.
import { spawnSync } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { eventsJsonSchema } from "../src/events/schema.ts";
import { adapters } from "./build/adapters.ts";
import { bundle } from "./build/bundle.ts";
import { commonText, Declarations } from "./build/declarations.ts";
import { inlined } from "./build/inlined.ts";
import { licences } from "./build/licences.ts";
import { bundledName } from "./build/places.ts";
import { buildIfStale } from "./dashboard.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");
const subpaths = ["index", "ai", "kafka", "mcp", "nats", "push", "redis"];
const entryPoints = [...subpaths.map((name) => `src/exports/${name}`), "testkit/index"];

rmSync(dist, { recursive: true, force: true });
try {
  const files = await bundle(root, dist);
  writeDeclarations();
  for (const entryPoint of [...entryPoints, ...adapters.map((name) => `src/exports/${name}`)])
    writeRequired(entryPoint);
  mkdirSync(join(dist, "config"));
  copyFileSync(join(root, "src", "config", "tape.schema.json"), join(dist, "config", "tape.schema.json"));
  writeFileSync(join(dist, "events.schema.json"), `${JSON.stringify(eventsJsonSchema())}\n`);
  await buildIfStale();
  cpSync(join(root, "dashboard", "dist"), join(dist, "dashboard"), { recursive: true });
  writeFileSync(join(dist, "THIRD-PARTY-LICENCES.txt"), licences(root, inlined));
  console.log(`built dist: ${files} files of JavaScript, declarations, the dashboard`);
} catch (error) {
  // bin/durable-tape.js would find a half-built dist and ignore the sources.
  rmSync(dist, { recursive: true, force: true });
  throw error;
}

function writeDeclarations(): void {
  const typescript = dirname(createRequire(import.meta.url).resolve("typescript/package.json"));
  const flags = ["--project", join(root, "tsconfig.build.json")];
  const { status } = spawnSync(process.execPath, [join(typescript, "bin", "tsc"), ...flags], {
    cwd: root,
    stdio: "inherit",
  });
  if (status !== 0) throw new Error("the sources do not compile");
  const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Record<
    "dependencies" | "peerDependencies",
    object
  >;
  const isInstalled = (specifier: string): boolean => specifier.startsWith("node:") || specifier in dependencies;
  const isPeer = (specifier: string): boolean => /^(@[^/]+\/)?[^/]+/.exec(specifier)![0] in peerDependencies;
  const compiled = join(dist, ".declarations");
  const common = new Declarations(compiled, entryPoints, isInstalled);
  for (const name of adapters) {
    const own = new Declarations(
      compiled,
      [`src/exports/${name}`],
      (specifier) => isInstalled(specifier) || isPeer(specifier),
      common,
    );
    writeFileSync(join(dist, `types-${name}.d.ts`), own.text());
    write(own, `src/exports/${name}`, `./types-${name}.js`);
  }
  rmSync(compiled, { recursive: true });
  for (const entryPoint of entryPoints) write(common, entryPoint, commonText);
  writeFileSync(join(dist, "types.d.ts"), common.text());
}

function write(declarations: Declarations, entryPoint: string, text: string): void {
  const file = bundledName(`${entryPoint}.ts`).replace(/\.js$/, ".d.ts");
  writeFileSync(join(dist, file), declarations.entryPoint(entryPoint, text));
}

/** For `require`: a Node that cannot load an ES module this way gets the same sentence about its version. */
function writeRequired(entryPoint: string): void {
  const module = bundledName(`${entryPoint}.ts`);
  const text = `"use strict";\nrequire("../bin/node-version.cjs").assertCanRun();\nmodule.exports = require("./${module}");\n`;
  writeFileSync(join(dist, module.replace(/\.js$/, ".cjs")), text);
}
