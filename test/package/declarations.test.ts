import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { Declarations } from "../../tools/build/declarations.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** What the compiler would have put out, by path below src, rolled up; `plain`: the members of what is written out. */
function rolledUp(files: Readonly<Record<string, string>>, plain = "", packages: readonly string[] = []) {
  const folder = mkdtempSync(join(tmpdir(), "tape-declarations-"));
  folders.push(folder);
  const all = { ...files, "../tools/build/plain.d.ts": `export declare const writtenOut: { ${plain} };` };
  for (const [path, text] of Object.entries(all)) {
    mkdirSync(dirname(join(folder, "src", path)), { recursive: true });
    writeFileSync(join(folder, "src", path), text);
  }
  const declarations = new Declarations(folder, ["src/door"], (specifier) => packages.includes(specifier));
  return { text: declarations.text(), door: declarations.door("src/door", "./types.js") };
}

it("takes what a door can reach, with its comments, and leaves the rest", () => {
  const { text, door } = rolledUp({
    "door.d.ts": 'export { type A, b } from "./a.ts";',
    "a.d.ts": `import type { C } from "./c.ts";
/** Says what A is. */
export interface A extends C<string> { readonly a: typeof hidden; }
declare const hidden: unique symbol;
export declare function b(a: A): void;
export declare function b(a: A, more: number): void;
export interface Unreached { readonly of: import("zod").ZodType; }
`,
    "c.d.ts": "export interface C<T> { readonly c: T; }",
  });
  expect(text).toContain("/** Says what A is. */\ninterface A extends C<string>");
  expect(text).toContain("declare const hidden: unique symbol;");
  expect(text.match(/declare function b\(/g)).toHaveLength(2);
  expect(text).toContain("interface C<T>");
  expect(text).not.toMatch(/Unreached|zod|export interface/);
  expect(text).toMatch(/\nexport \{ A, b \};\n$/);
  expect(door).toBe('export {\n  type A,\n  b,\n} from "./types.js";\n');
});

it("keeps names of different modules apart, and apart from the language's own", () => {
  const { text, door } = rolledUp({
    "door.d.ts": 'export type { Verdict } from "./a.ts"; export type { Request } from "./b.ts";',
    "a.d.ts":
      'import type { Verdict as Other } from "./b.ts"; export type Verdict = "mine" | Other | Response | Request;',
    "b.d.ts": 'export type Verdict = "other"; export interface Request { readonly verdict: Verdict; }',
  });
  expect(text).toContain('type Verdict = "mine" | Verdict2 | Response | Request;');
  expect(text).toContain('type Verdict2 = "other";');
  expect(text).toContain("interface Request2 { readonly verdict: Verdict2; }");
  expect(door).toContain("type Request2 as Request,");
});

it("follows a module taken as a whole, a type that is imported in place, and what a module hands on", () => {
  const { text } = rolledUp({
    "door.d.ts": 'export type { A } from "./a.ts";',
    "a.d.ts": `import * as b from "./b.ts";
export type A = b.B | import("./c.ts", { with: { "resolution-mode": "import" } }).C["c"];`,
    "b.d.ts": 'export type { D as B } from "./d.ts";',
    "c.d.ts": "export interface C { readonly c: 1; }",
    "d.d.ts": "export type D = 2;",
  });
  expect(text).toContain('type A = D | C["c"];');
  expect(text).toContain("type D = 2;");
});

it("puts what was written out in place of what came from a schema", () => {
  const { text } = rolledUp(
    {
      "door.d.ts": 'export type { DataOf, Kind } from "./a.ts";',
      "a.d.ts": `import type { z } from "zod"; declare const schemas: { a: z.ZodString };
export type Kind = keyof typeof schemas;
/** What a kind holds. */
export type DataOf<K extends Kind> = z.infer<(typeof schemas)[K]>;`,
    },
    'a: { Kind: "a" | "b"; DataOf: { a: string; b: { readonly c: number } } }',
  );
  expect(text).toContain('type Kind = "a" | "b";');
  expect(text).toContain(
    "/** What a kind holds. */\ntype DataOf<K extends Kind> = { a: string; b: { readonly c: number } }[K];",
  );
  expect(text).not.toContain("zod");
});

it("imports from packages that users have, and refuses others", () => {
  const files = {
    "door.d.ts": 'export type { A } from "./a.ts";',
    "a.d.ts": 'import type { Pool } from "pg"; export interface A { readonly pool: Pool; }',
  };
  expect(rolledUp(files, "", ["pg"]).text).toMatch(/^import \{ Pool \} from "pg";\n/);
  expect(() => rolledUp(files)).toThrow("users have no types of pg: Pool");
});
