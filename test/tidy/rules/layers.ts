import { posix } from "node:path";
import type { SourceFile } from "../files.ts";
import { type Import, importsOf, nameOf, parse } from "../syntax.ts";

/** Lowest first. Folders of one layer do not know each other. */
export const layers: readonly (readonly string[])[] = [
  ["base"],
  ["model"],
  ["sdk", "protocol"],
  ["agent"],
  ["store", "connector", "lease"],
  ["adk", "langgraph", "openai-agents"], // adapters of agent frameworks
  ["client", "alarm", "seal"], // stores too: over the wire, with alarms ahead of writes, with sealed payloads
  ["retention"], // archives of ended runs
  ["engine", "guard", "config", "mcp"],
  ["operator", "deploy"],
  ["reactor", "events", "server"],
  ["host"],
  ["push", "a2a", "ai", "mcp-tools", "world"],
  ["mastra"], // an adapter too; its models are those of the AI SDK
  ["cli"],
  ["exports"],
  ["testkit"], // beside src, published as durable-tape/testing
  ["simulation"], // beside src, not published
];

/** The same within src/engine, by folder; "" are the files beside these folders. */
export const engineLayers: readonly (readonly string[])[] = [
  ["replay"],
  ["journal"],
  ["core"],
  ["effects"],
  ["context"],
  ["drive"],
  ["item", ""],
];

/** Only the composition root may choose one of these; all other code uses the contract. */
const concreteStores = ["src/store/sqlite", "src/store/postgres", "src/store/spanner"];

const layerOf = (folder: string) => layers.findIndex((layer) => layer.includes(folder));
const order = layers.map((layer) => layer.join(", ")).join(" < ");
const engineLayerOf = (folder: string) => engineLayers.findIndex((layer) => layer.includes(folder));

/** The folder below src, or the one beside it. */
function roomOf(path: string): string {
  const [top, below] = path.split("/");
  return (top === "src" ? below : top) ?? "";
}

/** The folder below src/engine; undefined: it is not there. */
function engineRoomOf(path: string): string | undefined {
  const [top, room, folder, file] = path.split("/");
  if (top !== "src" || room !== "engine") return undefined;
  return file === undefined ? "" : folder;
}

/** src and testkit are published; src imports nothing beside it. */
function mayReach(path: string, target: string): boolean {
  if (target.startsWith("src/")) return true;
  return !path.startsWith("src/") && ["testkit", "simulation"].includes(roomOf(target));
}

export function importOrder(files: SourceFile[]): string[] {
  const findings: string[] = [];
  for (const file of files) {
    const folder = roomOf(file.path);
    if (layerOf(folder) < 0) {
      findings.push(`${file.path}: ${folder} has no place in the order (${order}); put the file into one of these`);
      continue;
    }
    for (const { specifier, line } of importsOf(file)) {
      if (!specifier.startsWith(".")) continue;
      const target = resolve(file, specifier);
      const at = `${file.path}:${line} imports ${target}`;
      if (!mayReach(file.path, target)) {
        findings.push(`${at}, which is not published; move what it needs into src`);
        continue;
      }
      const other = roomOf(target);
      if (other !== folder && layerOf(other) >= layerOf(folder)) {
        findings.push(`${at}, but ${folder} may import only from lower layers (${order}); move the shared part down`);
      }
      const [inner, otherInner] = [engineRoomOf(file.path), engineRoomOf(target)];
      if (inner !== undefined && otherInner !== undefined && inner !== otherInner) {
        if (engineLayerOf(otherInner) >= engineLayerOf(inner)) {
          findings.push(`${at}, but within the engine ${inner || "a file"} may import only from lower folders`);
        }
      }
      const store = concreteStores.find((path) => target.startsWith(`${path}/`));
      if (store && folder !== "host" && !file.path.startsWith(`${store}/`)) {
        findings.push(`${at}, but only src/host knows concrete stores; take the store contract as a parameter`);
      }
    }
  }
  return findings;
}

const compositionRoot = "src/host/reactors.ts";
const reactorFactories = ["recovery", "reconciler", "outbox", "timers", "compensation", "customReactor"];
const composed = new Set([...reactorFactories, "ReactorLoop", "*"]);

/** Two compositions would drift apart. */
export function reactorsComposedOnce(files: SourceFile[]): string[] {
  return files
    .filter(({ path }) => path !== compositionRoot && !path.startsWith("src/reactor/"))
    .flatMap((file) =>
      importsOf(file)
        .filter(({ specifier }) => resolve(file, specifier).startsWith("src/reactor/"))
        .flatMap(({ names, line, specifier }) => {
          const found = names.length === 0 ? [specifier] : names.map(({ imported }) => imported);
          return found
            .filter((name) => name === specifier || composed.has(name))
            .map((name) => `${file.path}:${line} imports ${name}; reactors are composed in ${compositionRoot} alone`);
        }),
    );
}

/** sdk/validate.ts rejects a bad duration. The others only test whether a text is one. */
const durationReaders = ["src/sdk/validate.ts", "src/sdk/outcomes.ts", "src/cli/commands/runs.ts"];

/** Code that parses a duration on its own tends to fall back to a default in silence. */
export function durationsRefused(files: SourceFile[]): string[] {
  return files
    .filter(({ path }) => !durationReaders.includes(path))
    .flatMap((file) =>
      importsOf(file)
        .filter(({ specifier }) => resolve(file, specifier) === "src/base/duration.ts")
        .filter(({ names }) => names.some(({ imported }) => imported === "durationMs" || imported === "*"))
        .map(({ line }) => `${file.path}:${line} imports durationMs; take durationOrThrow of src/sdk/validate.ts`),
    );
}

/** Types that the manifests of `src/deploy` are written with. They are erased, and no published declaration has them. */
const typedManifests = /^(kubernetes-models|@kubernetes-models\/[\w-]+|@googleapis\/run)$/;
/** Loads optional packages, whose names it is given. */
const peerLoader = "src/model/peer.ts";

/** The published package must bring everything that src imports from npm. */
export function publishedImports(files: SourceFile[], dependencies: string[]): string[] {
  const erased = (file: SourceFile, { specifier, typesOnly }: Import): boolean =>
    typesOnly && file.path.startsWith("src/deploy/") && typedManifests.test(packageOf(specifier));
  const ours = files.filter(({ path }) => path !== peerLoader);
  return ours.flatMap((file) =>
    importsOf(file)
      .filter((one) => !erased(file, one))
      .filter(({ specifier }) => !specifier.startsWith(".") && !specifier.startsWith("node:"))
      .filter(({ specifier }) => !dependencies.includes(packageOf(specifier)))
      .map(
        ({ specifier, line }) =>
          `${file.path}:${line} imports ${specifier}, which users would not get; ` +
          "add it to dependencies (with its reason in docs/dependencies.md), or write node: in front of a built-in",
      ),
  );
}

function packageOf(specifier: string): string {
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}

function resolve(file: SourceFile, specifier: string): string {
  return posix.normalize(posix.join(posix.dirname(file.path), specifier));
}

export function importCycles(files: SourceFile[]): string[] {
  const targets = new Map(
    files.map((file) => [file.path, importsOf(file).map((found) => resolve(file, found.specifier))]),
  );
  const findings: string[] = [];
  const done = new Set<string>();
  const visit = (path: string, trail: string[]): void => {
    const start = trail.indexOf(path);
    if (start >= 0) {
      const cycle = [...trail.slice(start), path].join(" -> ");
      findings.push(`import cycle ${cycle}; move what both need into a file of its own`);
      return;
    }
    if (done.has(path)) return;
    for (const next of targets.get(path) ?? []) visit(next, [...trail, path]);
    done.add(path);
  };
  for (const path of targets.keys()) visit(path, []);
  return findings;
}

export function reexportsOnly(files: SourceFile[]): string[] {
  return files
    .filter((file) => file.path.startsWith("src/exports/") || file.path === "testkit/index.ts")
    .filter((file) => !(parse(file).body as { source?: unknown; type: string }[]).every(isReexport))
    .map(
      (file) =>
        `${file.path}: src/exports and testkit/index.ts hold nothing but \`export … from\`; move the code to its own folder`,
    );
}

function isReexport(statement: { source?: unknown; type: string }): boolean {
  const exporting = statement.type === "ExportAllDeclaration" || statement.type === "ExportNamedDeclaration";
  return exporting && nameOf(statement.source) !== undefined;
}
