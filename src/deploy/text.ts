import { stringify } from "yaml";

/** A rendered file: its path within the folder, its text, and whether it is a program. */
export interface RenderedFile {
  readonly path: string;
  readonly text: string;
  readonly executable?: true;
}

const note = "Rendered by durable-tape deploy from tape.yaml. Edit that file instead, and render again.";

/** YAML documents in one file. Lines are never folded, so that a difference shows only what has changed. */
export function yamlFile(path: string, documents: readonly object[]): RenderedFile {
  const texts = documents.map((document) => stringify(document, { lineWidth: 0, aliasDuplicateObjects: false }));
  return { path, text: `# ${note}\n${texts.join("---\n")}` };
}

/** A shell script that stops at the first failure. */
export function scriptFile(path: string, interpreter: "bash" | "sh", lines: readonly string[]): RenderedFile {
  const strict = interpreter === "bash" ? "set -euo pipefail" : "set -eu";
  return {
    ...{ path, executable: true },
    text: `#!/usr/bin/env ${interpreter}\n# ${note}\n${strict}\n\n${lines.join("\n")}\n`,
  };
}

export const plainFile = (path: string, lines: readonly string[]): RenderedFile => ({
  path,
  text: `# ${note}\n${lines.join("\n")}\n`,
});

/** A word for a shell, quoted unless it is plain. */
export const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** The variables in a text with `${NAME}`. */
export const variablesIn = (text: string): string[] => [
  ...new Set([...text.matchAll(/\$\{([A-Za-z_]\w*)(?::-[^}]*)?\}/g)].map(([, name]) => name!)),
];
