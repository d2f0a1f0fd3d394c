import { strict as assert } from "node:assert";
import { readFileSync } from "node:fs";
import { describe, it } from "vitest";
import { coverageMarks } from "../../simulation/coverage.ts";

const page = readFileSync(new URL("../../docs/simulation.md", import.meta.url), "utf8");

describe("docs/simulation.md", () => {
  it("lists exactly the coverage marks", () => {
    const table = page.slice(page.indexOf("| about | marks |")).split("\n").slice(2);
    const rows = table.slice(
      0,
      table.findIndex((line) => !line.startsWith("|")),
    );
    const listed = rows.flatMap((row) =>
      row
        .split("|")[2]!
        .split("·")
        .map((mark) => mark.trim()),
    );
    assert.deepEqual([...listed].sort(), Object.keys(coverageMarks).sort());
  });
});
