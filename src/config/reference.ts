/** Where a user's function is: the files that may have it, in order, and the exports that may be it. */
export interface FunctionReference {
  readonly files: readonly string[];
  readonly exports: readonly string[];
}

/** What a reference looks like, for messages. */
export const referenceForms =
  "FILE#EXPORT or MODULE:EXPORT, such as ./app/agent.ts#buildRunner or app.agent:build_runner";

const moduleForm = /^([A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*):([A-Za-z_$][\w$]*)$/;
/** Both forms, for the schema; it accepts what {@link parseReference} parses. */
export const referencePattern = /^(?:.+#[^#]+|[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*:[A-Za-z_$][\w$]*)$/;
const extensions = ["ts", "mts", "js", "mjs"];

/**
 * Parses `./app/agent.ts#buildRunner`, or the dotted form `app.agent:build_runner`. The dotted form names a file
 * `./app/agent.ts` (or `.mts`, `.js`, `.mjs`) and an export of that name or of its camel case. undefined: neither form.
 */
export function parseReference(text: string): FunctionReference | undefined {
  const cut = text.lastIndexOf("#");
  if (cut >= 0) {
    const [file, name] = [text.slice(0, cut), text.slice(cut + 1)];
    return file === "" || name === "" ? undefined : { files: [file], exports: [name] };
  }
  const match = moduleForm.exec(text);
  if (match === null) return undefined;
  const [, module, name] = match as unknown as [string, string, string];
  const path = `./${module.replaceAll(".", "/")}`;
  return {
    files: extensions.map((extension) => `${path}.${extension}`),
    exports: [...new Set([name, camelCase(name)])],
  };
}

const camelCase = (name: string): string =>
  name.replaceAll(/(?<=[^_])_+([a-z0-9])/g, (_all, next: string) => next.toUpperCase());
