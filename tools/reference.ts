// Writes docs/api from the declarations and doc comments of the public exports; a test compares the two.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { reference } from "./reference/pages.ts";
import { root } from "./reference/syntax.ts";

const folder = join(root, "docs", "api");
mkdirSync(folder, { recursive: true });
const files = reference();
for (const old of readdirSync(folder)) if (!files.has(old)) rmSync(join(folder, old));
for (const [name, text] of files) writeFileSync(join(folder, name), text);
console.log(`wrote ${files.size} pages to docs/api`);
