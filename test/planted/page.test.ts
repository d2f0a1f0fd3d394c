import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { bugs } from "./bugs/index.ts";
import { page, written } from "./page.ts";

describe("docs/planted-bugs.md", () => {
  it("describes every planted bug as it is defined", () => {
    const text = readFileSync(page, "utf8");
    expect(text, "run node test/planted/page.ts").toBe(written(text));
    for (const { name } of bugs) expect(text).toContain(`| ${name} |`);
  });
});
