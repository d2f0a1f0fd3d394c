import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { adapters } from "../../tools/build/adapters.ts";
import { examplesOf, moduleOf, type NamedModule } from "../../tools/reference/examples.ts";
import { readPages } from "../../tools/reference/model.ts";
import { exportsOf, root } from "../../tools/reference/syntax.ts";

/** What a page's examples find around them, besides the exports of its entry point. */
const stages: Readonly<Record<string, readonly string[]>> = {
  testing: ["test/docs/stage/testing.ts", "src/exports/index.ts"],
  ai: ["test/docs/stage/agents.ts", "src/exports/index.ts"],
  mcp: ["test/docs/stage/agents.ts", "src/exports/index.ts"],
};
const usual = ["src/exports/index.ts", "test/docs/stage/main.ts"];

/**
 * Writes the examples of doc comments as modules for the compiler, and returns their number. Those of frameworks need
 * packages that only `npm run outside` installs; it executes the examples of their guides.
 */
export async function writeApiExamples(folder: string): Promise<number> {
  const to = "../../../../";
  const named = (file: string): NamedModule => [`${to}${file}`, exportsOf(join(root, file))];
  const examples = examplesOf(readPages()).filter(({ page }) => !adapters.includes(page));
  await mkdir(join(folder, "api"));
  for (const example of examples) {
    const modules = [example.file, ...(stages[example.page] ?? usual)].map(named);
    await writeFile(join(folder, "api", `${example.name}.ts`), moduleOf(example, modules));
  }
  return examples.length;
}
