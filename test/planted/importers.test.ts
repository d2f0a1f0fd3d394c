import { expect, it } from "vitest";
import { importersOf, reachedBy } from "./importers.ts";

const sources: Record<string, string> = {
  "/simulation/suite.ts": `import { judge } from "./judge.ts";\nimport { open } from "../src/store/sqlite/open.ts";`,
  "/simulation/judge.ts": `export { fold } from "../src/model/fold.ts";`,
  "/src/model/fold.ts": `import { strict } from "node:assert";`,
  "/src/store/sqlite/open.ts": `import { Statements } from "./statements.ts";\nawait import("./lazy.ts");`,
  "/src/store/sqlite/statements.ts": "",
  "/src/store/sqlite/lazy.ts": "",
};
const importers = importersOf(["/simulation/suite.ts"], (file) => sources[file]!);
const reached = (...changed: string[]): string[] => [...reachedBy(changed, importers)].sort();

it("reaches what imports a changed module, directly or not", () => {
  expect([...importers.keys()].sort()).toEqual(Object.keys(sources).sort());
  expect(reached("/src/model/fold.ts")).toEqual(["/simulation/judge.ts", "/simulation/suite.ts", "/src/model/fold.ts"]);
  expect(reached("/src/store/sqlite/lazy.ts")).toEqual([
    "/simulation/suite.ts",
    "/src/store/sqlite/lazy.ts",
    "/src/store/sqlite/open.ts",
  ]);
  expect(reached()).toEqual([]);
});

it("reaches the modules beside a folder of statements", () => {
  expect(reached("/src/store/sqlite/sql/leases.sql")).toEqual([
    "/simulation/suite.ts",
    "/src/store/sqlite/lazy.ts",
    "/src/store/sqlite/open.ts",
    "/src/store/sqlite/statements.ts",
  ]);
});

it("refuses a file that the simulation does not use", () => {
  expect(() => reached("/src/cli/main.ts")).toThrow("no module of the simulation uses /src/cli/main.ts");
  expect(() => reached("/src/store/postgres/sql/leases.sql")).toThrow("no module");
});
