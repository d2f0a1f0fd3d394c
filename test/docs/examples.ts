import { readFileSync } from "node:fs";

export interface Example {
  readonly file: string;
  readonly name: string;
  readonly source: string;
}

/** Fenced ts blocks of a page. The first line names them: `// example: <name>`. */
export function examplesIn(file: string): { named: Example[]; unnamed: string[] } {
  const named: Example[] = [];
  const unnamed: string[] = [];
  for (const [, body = ""] of readFileSync(file, "utf8").matchAll(/^```ts\n([\s\S]*?)^```/gm)) {
    const name = /^\/\/ example: (\S+)$/m.exec(body.split("\n")[0] ?? "")?.[1];
    if (name === undefined) unnamed.push(body);
    else named.push({ file, name, source: body });
  }
  return { named, unnamed };
}
