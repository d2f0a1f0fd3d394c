import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

interface Manifest {
  readonly workflows: Readonly<Record<string, Readonly<Record<string, { workflowId: string }>>>>;
}

const file = import.meta.resolve("@workflow/world-testing/dist/.well-known/workflow/v1/manifest.json");
const { workflows } = JSON.parse(readFileSync(fileURLToPath(file), "utf8")) as Manifest;

/** A workflow of the framework's suite, as its compiler leaves a function with "use workflow". */
export const compiled = (file: string, name: string): { workflowId: string } =>
  workflows[`workflows/${file}.ts`]![name]!;

export const addition = compiled("addition", "addition");
