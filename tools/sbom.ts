// Prints the packages of a release as CycloneDX: installed dependencies and inlined ones, from package-lock.json alone.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { inlined } from "./build/inlined.ts";

interface LockedPackage {
  readonly version?: string;
  readonly integrity?: string;
  readonly license?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

export interface Lock {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

export interface Component {
  readonly type: "library";
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly scope: "required" | "optional";
  readonly hashes: readonly { readonly alg: "SHA-512"; readonly content: string }[];
  readonly licenses: readonly { readonly expression: string }[];
}

const purlOf = (name: string, version: string): string => `pkg:npm/${name.replace("@", "%40")}@${version}`;

/** Path of `name` for the package at `from`: in the nearest node_modules above it. */
function resolvePath(lock: Lock, name: string, from: string): string | undefined {
  for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf("node_modules/") - 1))) {
    const path = at === "" ? `node_modules/${name}` : `${at}/node_modules/${name}`;
    if (path in lock.packages) return path;
    if (at === "") return undefined;
  }
}

/** These packages with all their dependencies. A package that is missing in the lock file is an error. */
export function componentsOf(lock: Lock, names: readonly string[]): Component[] {
  const seen = new Map<string, Component>();
  const take = (name: string, from: string, optional: boolean): void => {
    const path = resolvePath(lock, name, from);
    if (path === undefined || seen.has(path)) {
      if (path === undefined && !optional) throw new Error(`${name} is not in package-lock.json: run npm install`);
      return;
    }
    const {
      version = "",
      integrity = "",
      license,
      dependencies = {},
      optionalDependencies = {},
    } = lock.packages[path]!;
    const content = Buffer.from(integrity.replace(/^sha512-/, ""), "base64").toString("hex");
    seen.set(path, {
      ...{ type: "library", name, version, purl: purlOf(name, version), scope: optional ? "optional" : "required" },
      hashes: [{ alg: "SHA-512", content }],
      licenses: license === undefined ? [] : [{ expression: license }],
    });
    for (const dependency of Object.keys(dependencies)) take(dependency, path, optional);
    for (const dependency of Object.keys(optionalDependencies)) take(dependency, path, true);
  };
  for (const name of names) take(name, "", false);
  return [...seen.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

export function billOf(lock: Lock): Record<string, unknown> {
  const { version = "0.0.0", license, dependencies = {} } = lock.packages[""]!;
  const component = { type: "library", name: "durable-tape", version, purl: purlOf("durable-tape", version) };
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: { ...component, licenses: license === undefined ? [] : [{ license: { id: license } }] } },
    components: componentsOf(lock, [...Object.keys(dependencies), ...inlined]),
  };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const lock = JSON.parse(readFileSync(new URL("../package-lock.json", import.meta.url), "utf8")) as Lock;
  process.stdout.write(`${JSON.stringify(billOf(lock), null, 2)}\n`);
}
