import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { rolldown } from "rolldown";
import { afterAll, expect, it } from "vitest";
import { places } from "../../tools/build/places.ts";

const folder = mkdtempSync(join(tmpdir(), "tape-places-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Bundles `main.ts` of some sources. Returns its text, and the names of all files. */
async function bundled(files: Readonly<Record<string, string>>): Promise<{ text: string; names: string[] }> {
  const src = join(mkdtempSync(join(folder, "a-")), "src");
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(src, path)), { recursive: true });
    writeFileSync(join(src, path), text);
  }
  const build = await rolldown({ input: join(src, "main.ts"), platform: "node", plugins: [places(src)] });
  const dist = join(src, "../dist");
  const { output } = await build.write({ dir: dist, entryFileNames: "[name].js" });
  await build.close();
  return { text: readFileSync(join(dist, "main.js"), "utf8"), names: output.map(({ fileName }) => fileName) };
}

it("turns SQL files into text and a program into an entry, and locates the rest from dist", async () => {
  const { text, names } = await bundled({
    "main.ts": 'export { sql, program, template, page } from "./deep/er/a.ts";',
    "deep/er/a.ts": `declare function sqlFiles(folder: URL): ReadonlyMap<string, string>;
export const sql = sqlFiles(new URL("sql/", import.meta.url));
export const program = new URL("../child.ts", import.meta.url);
export const template = new URL("../../../template/", import.meta.url);
export const page = new URL("../../page/", import.meta.url);`,
    "deep/er/sql/b.sql": "-- read\nselect 2",
    "deep/er/sql/a.sql": "-- read\nselect 1",
    "deep/er/sql/notes.md": "ignored",
    "deep/child.ts": "console.log(1);",
  });
  expect(text).toMatch(/new Map\(\[\["a\.sql", "-- read\\nselect 1"\], \["b\.sql", "-- read\\nselect 2"\]\]\)/);
  for (const place of ["deep-child.js", "../template/", "page/"])
    expect(text).toContain(`new URL("${place}", import.meta`);
  expect(names.sort()).toEqual(["deep-child.js", "main.js"]);
});

it.each([
  ["new URL(process.argv[2], import.meta.url)", "main.ts uses import.meta.url in a form"],
  ['new URL("sql/", import.meta.url)', "main.ts refers to sql/, which is not published"],
])("rejects %s, which it cannot resolve", async (place, error) => {
  const files = { "main.ts": `export const place = ${place};`, "sql/a.sql": "-- read\nselect 1" };
  await expect(bundled(files)).rejects.toThrow(error);
});
