import { entryPoints } from "./entry-points.ts";
import type { Page } from "./model.ts";

/** An example of a doc comment. */
export interface ApiExample {
  readonly page: string;
  readonly name: string;
  /** The file of its entry point, from the root of the repository. */
  readonly file: string;
  readonly text: string;
}

export function examplesOf(pages: readonly Page[]): ApiExample[] {
  return pages.flatMap(({ page, specifier, exports }) => {
    const { file } = entryPoints.find((entryPoint) => entryPoint.specifier === specifier)!;
    return exports.flatMap(({ name, doc, members }) => [
      ...(doc.example === undefined ? [] : [{ page, name: `${page}.${name}`, file, text: doc.example }]),
      ...members.flatMap((member) =>
        member.doc.example === undefined
          ? []
          : [{ page, name: `${page}.${name}.${member.name}`, file, text: member.doc.example }],
      ),
    ]);
  });
}

/** Names that a module exports, by its path as the example imports it. */
export type NamedModule = readonly [path: string, names: readonly string[]];

/** The example as a module that imports each name it uses from the first of these modules that has it. */
export function moduleOf({ text }: ApiExample, modules: readonly NamedModule[]): string {
  const lines = text.split("\n");
  const code = lines.map((line) => line.replace(/(^|\s)\/\/ .*$/, "")).join("\n");
  const uses = (name: string): boolean => new RegExp(`(?<![.\\w"'\`-])${name}\\b(?!["'\`]|: )`).test(code);
  const declares = (name: string): boolean => new RegExp(`\\b(?:const|function|using) ${name}\\b`).test(code);
  const known = new Set<string>();
  const imports = modules.map(([path, names]) => {
    const own = names.filter((name) => !known.has(name) && uses(name) && !declares(name));
    for (const name of own) known.add(name);
    return `import { ${own.join(", ")} } from "${path}";`;
  });
  const isImport = (line: string): boolean => line.startsWith("import ");
  const body = lines.filter((line) => !isImport(line)).map((line) => `  ${line.replace(/^export /, "")}`);
  return [...imports, ...lines.filter(isImport), `export async function example() {\n${body.join("\n")}\n}`, ""].join(
    "\n",
  );
}
