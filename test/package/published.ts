import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { adapters } from "../../tools/build/adapters.ts";

/** Files below a folder, with forward slashes, except a linked node_modules. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(folder.length + 1)
        .replaceAll("\\", "/"),
    )
    .filter((path) => !path.startsWith("node_modules/"));
}

const isOfAdapter = (path: string): boolean => adapters.some((name) => path.includes(`-${name}.`));

/** Packages that the published code and declarations import, without adapters, or those of adapters alone. */
export function packagesImported(folder: string, ofAdapters = false): string[] {
  const found = filesBelow(join(folder, "dist"))
    .filter((path) => /^[\w-]+\.(js|d\.ts)$/.test(path) && isOfAdapter(path) === ofAdapters)
    .flatMap((path) => {
      const text = readFileSync(join(folder, "dist", path), "utf8");
      const statements = text.matchAll(/^(?:import|export)\b[^;"]*?"([^"\n]+)";|\bimport\("([^"]+)"\)/gm);
      return [...statements].map(([, from, loaded]) => (from ?? loaded)!);
    });
  return [...new Set(found.filter((specifier) => !/^(\.|node:)/.test(specifier)))].sort();
}

/** Node modules and packages that a published file loads before its first line runs. */
export function loadedBy(folder: string, file: string, seen = new Set<string>()): string[] {
  if (seen.has(file)) return [];
  seen.add(file);
  const text = readFileSync(join(folder, "dist", file), "utf8");
  const specifiers = [...text.matchAll(/^(?:import|export)\b[^;"]*?"([^"\n]+)";/gm)].map(([, specifier]) => specifier!);
  return specifiers.flatMap((specifier) =>
    specifier.startsWith("./") ? loadedBy(folder, specifier.slice(2), seen) : specifier,
  );
}

/** A user's program that uses every entry point, and types that the sources derive from zod. */
export const program = `import { type JournalRecord, openRemote, type RecordData, Tape, type TapeOptions } from "durable-tape";
import { type ChatRoutes, durableModel, durableTools, type ToolPolicy } from "durable-tape/ai";
import { kafkaSink } from "durable-tape/kafka";
import { natsSink } from "durable-tape/nats";
import { redisSink } from "durable-tape/redis";
import { VirtualTape } from "durable-tape/testing";

export function pos(record: JournalRecord): number | undefined {
  return record.kind === "step.done" ? record.data.pos : undefined;
}
export const taken: RecordData<"notes.taken"> = { through: 3 };
// @ts-expect-error it is a number
export const wrong: RecordData<"notes.taken"> = { through: "3" };
export async function secretOf(url: string): Promise<string> {
  const { remote } = await openRemote(url);
  // @ts-expect-error there is no such call
  await remote.call("tokens.guess", {});
  const { secret } = await remote.call("tokens.create", { body: { name: "ci", role: "reader", reason: "a test" } });
  return secret satisfies string;
}
export const open = (options: TapeOptions): Promise<Tape> => Tape.open(options);
export type Kit = typeof VirtualTape;
const model = { specificationVersion: "v4", provider: "a", modelId: "b", doGenerate: async () => 1, doStream: async () => 2 };
export const agent = () => durableModel(model, { price: { b: { input: 1, output: 2 } } }) satisfies typeof model;
const pay = { description: "pays", execute: async (input: { invoice: string }) => input.invoice };
const policy: ToolPolicy<{ invoice: string }> = { businessKey: (input) => input.invoice, allowUnsafe: "a test" };
export const kit = () => durableTools("bank", { pay }, { pay: policy }).tools.pay satisfies typeof pay;
export type Routes = ChatRoutes;
export const sinks = () => [natsSink({ servers: "nats://a" }), redisSink({ url: "redis://a" }), kafkaSink({ brokers: ["a"] })];
`;
