import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { Declarations } from "../../tools/build/declarations.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A folder of compiler output, given by path below src; `plain`: the members of `writtenOut`. */
function compiled(files: Readonly<Record<string, string>>, plain = ""): string {
  const folder = mkdtempSync(join(tmpdir(), "tape-declarations-"));
  folders.push(folder);
  const all = { ...files, "../tools/build/plain.d.ts": `export declare const writtenOut: { ${plain} };` };
  for (const [path, text] of Object.entries(all)) {
    mkdirSync(dirname(join(folder, "src", path)), { recursive: true });
    writeFileSync(join(folder, "src", path), text);
  }
  return folder;
}

/** Rolls up compiler output. */
function rolledUp(files: Readonly<Record<string, string>>, plain = "", packages: readonly string[] = []) {
  const folder = compiled(files, plain);
  const declarations = new Declarations(folder, ["src/index"], (specifier) => packages.includes(specifier));
  return { text: declarations.text(), entryPoint: declarations.entryPoint("src/index", "./types.js") };
}

it("keeps what an entry point reaches, with comments, and drops the rest", () => {
  const { text, entryPoint } = rolledUp({
    "index.d.ts": 'export { type A, b } from "./a.ts";',
    "a.d.ts": `import type { C } from "./c.ts";
/** Documents A. */
export interface A extends C<string> { readonly a: typeof hidden; }
declare const hidden: unique symbol;
export declare function b(a: A): void;
export declare function b(a: A, more: number): void;
export interface Unreached { readonly of: import("zod").ZodType; }
`,
    "c.d.ts": "export interface C<T> { readonly c: T; }",
  });
  expect(text).toContain("/** Documents A. */\ninterface A extends C<string>");
  expect(text).toContain("declare const hidden: unique symbol;");
  expect(text.match(/declare function b\(/g)).toHaveLength(2);
  expect(text).toContain("interface C<T>");
  expect(text).not.toMatch(/Unreached|zod|export interface/);
  expect(text).toMatch(/\nexport \{ A, b \};\n$/);
  expect(entryPoint).toBe('export {\n  type A,\n  b,\n} from "./types.js";\n');
});

it("makes names of different modules unique, also among global names", () => {
  const { text, entryPoint } = rolledUp({
    "index.d.ts": 'export type { Verdict } from "./a.ts"; export type { Request } from "./b.ts";',
    "a.d.ts":
      'import type { Verdict as Other } from "./b.ts"; export type Verdict = "mine" | Other | Response | Request;',
    "b.d.ts": 'export type Verdict = "other"; export interface Request { readonly verdict: Verdict; }',
  });
  expect(text).toContain('type Verdict = "mine" | Verdict2 | Response | Request;');
  expect(text).toContain('type Verdict2 = "other";');
  expect(text).toContain("interface Request2 { readonly verdict: Verdict2; }");
  expect(entryPoint).toContain("type Request2 as Request,");
});

it("follows namespace imports, inline imports and re-exports", () => {
  const { text } = rolledUp({
    "index.d.ts": 'export type { A } from "./a.ts";',
    "a.d.ts": `import * as b from "./b.ts";
export type A = b.B | import("./c.ts", { with: { "resolution-mode": "import" } }).C["c"];`,
    "b.d.ts": 'export type { D as B } from "./d.ts";',
    "c.d.ts": "export interface C { readonly c: 1; }",
    "d.d.ts": "export type D = 2;",
  });
  expect(text).toContain('type A = D | C["c"];');
  expect(text).toContain("type D = 2;");
});

it("replaces types derived from a schema by their expansion", () => {
  const { text } = rolledUp(
    {
      "index.d.ts": 'export type { DataOf, Kind } from "./a.ts";',
      "a.d.ts": `import type { z } from "zod"; declare const schemas: { a: z.ZodString };
export type Kind = keyof typeof schemas;
/** Data of a kind. */
export type DataOf<K extends Kind> = z.infer<(typeof schemas)[K]>;`,
    },
    'a: { Kind: "a" | "b"; DataOf: { a: string; b: { readonly c: number } } }',
  );
  expect(text).toContain('type Kind = "a" | "b";');
  expect(text).toContain(
    "/** Data of a kind. */\ntype DataOf<K extends Kind> = { a: string; b: { readonly c: number } }[K];",
  );
  expect(text).not.toContain("zod");
});

it("imports from packages that users have, and rejects others", () => {
  const files = {
    "index.d.ts": 'export type { A } from "./a.ts";',
    "a.d.ts": 'import type { Pool } from "pg"; export interface A { readonly pool: Pool; }',
  };
  expect(rolledUp(files, "", ["pg"]).text).toMatch(/^import \{ Pool \} from "pg";\n/);
  expect(() => rolledUp(files)).toThrow("Pool needs the types of pg, which users do not have");
});

it("imports what another text has from there, so that both mean the same type", () => {
  const folder = compiled({
    "index.d.ts": 'export type { A } from "./a.ts";',
    "a.d.ts": 'import type { Hidden } from "./b.ts"; export interface A { readonly hidden: Hidden; }',
    "b.d.ts": "export interface Hidden { readonly b: 1; }",
    "adapter.d.ts": 'export type { C } from "./c.ts";',
    "c.d.ts": `import type { Thing } from "framework/things"; import type { A } from "./a.ts";
import type { Hidden } from "./b.ts"; export declare class C extends Thing { readonly a: A; readonly of: Hidden; }`,
  });
  const common = new Declarations(folder, ["src/index"], () => false);
  const own = new Declarations(folder, ["src/adapter"], (specifier) => specifier === "framework/things", common);
  expect(common.text()).toMatch(/\nexport \{ A, Hidden \};\n$/);
  expect(common.text()).not.toContain("framework");
  expect(own.text()).toBe(
    `${['A } from "./types.js"', 'Hidden } from "./types.js"', 'Thing } from "framework/things"'].map((line) => `import { ${line};\n`).join("")}` +
      "declare class C extends Thing { readonly a: A; readonly of: Hidden; }\nexport { C };\n",
  );
});
