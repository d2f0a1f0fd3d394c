import type { SourceFile } from "../files.ts";

export interface Manifest {
  name?: string;
  license?: string;
  engines?: Record<string, string>;
  scripts?: Record<string, string>;
  gypfile?: boolean;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
}

/** The oldest Node of each line without a known vulnerability that a request can reach: src/base/node-version.ts. */
const engines = "^22.22.2 || ^24.14.1 || >=25.8.2";
const installScripts = ["preinstall", "install", "postinstall"];

export function manifestRules(manifest: Manifest, lock: string): string[] {
  const findings: string[] = [];
  if (manifest.engines?.node !== engines) findings.push(`package.json: engines.node must be "${engines}"`);
  if (manifest.license !== "Apache-2.0") findings.push('package.json: license must be "Apache-2.0"');
  for (const script of [...installScripts, "prepare"]) {
    if (manifest.scripts?.[script]) {
      findings.push(
        `package.json: script ${script} would run where scripts are blocked; use prepack, or do it at run time`,
      );
    }
  }
  for (const [name, version] of Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })) {
    if (isExact(version)) continue;
    findings.push(`package.json: ${name} is "${version}"; pin the exact version`);
  }
  if (/"resolved": "http/.test(lock)) {
    findings.push("package-lock.json records download addresses; write it with omit-lockfile-registry-resolved=true");
  }
  return [...findings, ...lockedByHash(lock)];
}

/** A package without a hash could be replaced between the lock and the install. */
export function lockedByHash(lock: string): string[] {
  const findings: string[] = [];
  const { packages } = JSON.parse(lock) as { packages: Readonly<Record<string, LockedPackage>> };
  for (const [path, { integrity, link, inBundle }] of Object.entries(packages)) {
    if (!path.includes("node_modules/") || link === true || inBundle === true) continue;
    if (!/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? "")) {
      findings.push(`package-lock.json: ${path} has no sha512 integrity; remove it and run npm install`);
    }
  }
  return findings;
}

interface LockedPackage {
  readonly integrity?: string;
  readonly link?: boolean;
  readonly inBundle?: boolean;
}

function isExact(version: string): boolean {
  return /^(file:[\w./-]+|(npm:(@[\w-]+\/)?[\w.-]+@)?\d+\.\d+\.\d+(-[\w.]+)?)$/.test(version);
}

/** `docs` is docs/dependencies.md: one table row per dependency, beginning with its name in backticks. */
export function dependencyReasons(manifest: Manifest, docs: string): string[] {
  const names = Object.keys({ ...manifest.dependencies, ...manifest.devDependencies });
  const rows = [...docs.matchAll(/^\| `([^`]+)`/gm)].map((found) => found[1]!);
  return difference(
    names,
    rows,
    (name) => `${name} has no row in docs/dependencies.md; begin one with "| \`${name}\`" and say why we need it`,
    (name) => `docs/dependencies.md explains ${name}, which package.json does not have; remove the row`,
  );
}

/** `docs` is docs/errors.md: one section per code of the error table. */
export function errorSections(codes: string[], docs: string): string[] {
  const sections = [...docs.matchAll(/^## (TAPE_.*)$/gm)].map((found) => found[1]!);
  return difference(
    codes,
    sections,
    (code) => `${code} has no section in docs/errors.md; add "## ${code}"`,
    (code) => `docs/errors.md has a section ${code}, which src/model/errors.ts does not know; remove it`,
  );
}

function difference(
  wanted: string[],
  found: string[],
  missing: (name: string) => string,
  extra: (name: string) => string,
): string[] {
  const twice = found.filter((name, index) => found.indexOf(name) !== index);
  return [
    ...wanted.filter((name) => !found.includes(name)).map(missing),
    ...found.filter((name) => !wanted.includes(name)).map(extra),
    ...twice.map((name) => `${name} is explained twice; keep one`),
  ];
}

/** Finds an installed package as Node would from the folder `from`; undefined when it is not installed. */
export type Lookup = (
  name: string,
  from: string,
) => { folder: string; manifest: Manifest; compiles: boolean } | undefined;

/** A dependency that needs an install script breaks where scripts are blocked, so the package may not bring one. */
export function publishedInstallScripts(manifest: Manifest, root: string, lookup: Lookup): string[] {
  const findings: string[] = [];
  const seen = new Set<string>();
  const visit = (parent: Manifest, from: string, trail: string[]): void => {
    const names = Object.keys({ ...parent.dependencies, ...parent.optionalDependencies });
    for (const name of names) {
      const installed = lookup(name, from);
      const path = [...trail, name];
      if (!installed) {
        const optional = parent.optionalDependencies?.[name] !== undefined;
        if (!optional) findings.push(`${path.join(" > ")} is not installed; run npm install`);
        continue;
      }
      if (seen.has(installed.folder)) continue;
      seen.add(installed.folder);
      const script = installScripts.find((key) => installed.manifest.scripts?.[key]);
      if (script || installed.compiles) {
        findings.push(`${path.join(" > ")} has an install script (${script ?? "binding.gyp"}); choose one without`);
      }
      visit(installed.manifest, installed.folder, path);
    }
  };
  visit(manifest, root, []);
  return findings;
}

const machinePath = /(?<![\w.@~-])\/(work|root|home)\/[a-z][\w./-]*/;
const registryHost = /\b(registry|npm|mirror|artifactory|nexus|verdaccio)\.[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z]{2,}\b/i;

/** No path or registry of one machine: other machines do not have these folders, and use their own registry. */
export function foreignPlaces(files: SourceFile[]): string[] {
  return files
    .filter(({ path, text }) => !path.endsWith("package-lock.json") && !text.includes("\0"))
    .flatMap(({ path, text }) =>
      text.split("\n").flatMap((line, index) => {
        const at = `${path}:${index + 1}`;
        const place = machinePath.exec(line)?.[0];
        const host = registryHost.exec(line)?.[0];
        return [
          ...(place ? [`${at} names ${place}, a path of one machine; use one relative to the repository`] : []),
          ...(host ? [`${at} names ${host}, a package registry; leave the registry to the user's npm settings`] : []),
        ];
      }),
    );
}
