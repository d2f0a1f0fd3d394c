import type { SourceFile } from "../files.ts";
import { importsOf, isNode, lineOf, type Node, nameOf, parse, walk } from "../syntax.ts";

const clock = "take a Clock (src/base/clock.ts) as a parameter; for leases and timers ask the store's time";
const timer = "take a Clock (src/base/clock.ts) as a parameter: after, sleep or soon";
const chance = "take a Random (src/base/random.ts) as a parameter";

/** Globals by name; `queueMicrotask` is not here because it neither waits nor measures. */
const bannedGlobals: Record<string, string> = {
  setTimeout: timer,
  setInterval: timer,
  setImmediate: timer,
};

const bannedMembers: Record<string, string> = {
  "Date.now": clock,
  "performance.now": clock,
  "performance.timeOrigin": clock,
  "process.hrtime": clock,
  "process.uptime": clock,
  "AbortSignal.timeout": timer,
  "Math.random": chance,
  "crypto.randomUUID": chance,
  "crypto.randomBytes": chance,
  "crypto.randomInt": chance,
  "crypto.randomFillSync": chance,
  "crypto.getRandomValues": chance,
};

const bannedModules: Record<string, string> = {
  timers: timer,
  "timers/promises": timer,
  perf_hooks: clock,
};

/** Time and chance come in as parameters, or a simulation cannot own them. src/base is where the real ones live. */
export function seams(files: SourceFile[]): string[] {
  return files.filter((file) => !file.path.startsWith("src/base/")).flatMap(seamsOf);
}

function seamsOf(file: SourceFile): string[] {
  const findings: string[] = [];
  const report = (line: number, what: string, instead: string) => {
    findings.push(`${file.path}:${line} uses ${what}; ${instead}`);
  };
  const cryptoNames = new Set(["crypto"]);
  for (const { specifier, line, names } of importsOf(file)) {
    const module = specifier.replace(/^node:/, "");
    if (Object.hasOwn(bannedModules, module)) report(line, specifier, bannedModules[module]!);
    if (module !== "crypto") continue;
    for (const { imported, local } of names) {
      const instead = bannedMembers[`crypto.${imported}`];
      if (instead) report(line, `crypto.${imported}`, instead);
      if (imported === "*" || imported === "default") cryptoNames.add(local);
    }
  }
  walk(parse(file), (node, parent, key) => {
    const name = nameOf(node);
    if (node.type === "Identifier" && name && Object.hasOwn(bannedGlobals, name) && isReference(parent, key)) {
      report(lineOf(file, node), name, bannedGlobals[name]!);
    }
    if (node.type === "MemberExpression") {
      const object = objectName(node.object);
      const member = `${object && cryptoNames.has(object) ? "crypto" : object}.${nameOf(node.property)}`;
      if (Object.hasOwn(bannedMembers, member)) report(lineOf(file, node), member, bannedMembers[member]!);
      const global = isGlobalObject(node.object) ? bannedGlobals[nameOf(node.property) ?? ""] : undefined;
      if (global) report(lineOf(file, node), nameOf(node.property)!, global);
    }
    if (isArgumentlessDate(node)) report(lineOf(file, node), "the current Date", clock);
  });
  return findings;
}

export function consoleOnlyInCli(files: SourceFile[]): string[] {
  const findings: string[] = [];
  for (const file of files.filter(({ path }) => !path.startsWith("src/cli/"))) {
    walk(parse(file), (node, parent, key) => {
      if (node.type !== "Identifier" || node.name !== "console" || !isReference(parent, key)) return;
      findings.push(`${file.path}:${lineOf(file, node)} uses console; take a Log (src/base/log.ts) as a parameter`);
    });
  }
  return findings;
}

/** An identifier that stands for a variable, not for the name of a property or of a type's member. */
function isReference(parent: Node | undefined, key: string): boolean {
  if (!parent) return true;
  if (parent.type === "TSTypeQuery" || parent.type === "ImportSpecifier") return false;
  const namesProperty = (key === "property" || key === "key") && parent.computed !== true;
  return !namesProperty;
}

function isGlobalObject(node: unknown): boolean {
  return nameOf(node) === "globalThis" || nameOf(node) === "global";
}

/** `Date` for both `Date` and `globalThis.Date`. */
function objectName(node: unknown): string | undefined {
  if (isNode(node) && node.type === "MemberExpression") {
    return isGlobalObject(node.object) ? nameOf(node.property) : undefined;
  }
  return nameOf(node);
}

function isArgumentlessDate(node: Node): boolean {
  if (node.type === "CallExpression") return objectName(node.callee) === "Date";
  const bare = Array.isArray(node.arguments) && node.arguments.length === 0;
  return node.type === "NewExpression" && bare && objectName(node.callee) === "Date";
}
