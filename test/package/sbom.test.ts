import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { componentsOf, type Lock } from "../../tools/sbom.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as Lock;

describe("the bill of materials", () => {
  it("is printed offline, and lists installed and inlined packages with hashes", () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, ["tools/sbom.ts"], { cwd: root, encoding: "utf8" });
    expect([status, stderr]).toEqual([0, ""]);
    const bill = JSON.parse(stdout) as { bomFormat: string; components: ReturnType<typeof componentsOf> };
    expect(bill.bomFormat).toBe("CycloneDX");
    const names = bill.components.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["croner", "pg", "pg-pool", "pg-protocol", "yaml", "zod"]));
    for (const tool of ["vitest", "typescript", "playwright-core", "vite"]) expect(names).not.toContain(tool);
    for (const { name, version, purl, hashes, licenses } of bill.components) {
      expect(purl).toBe(`pkg:npm/${name}@${version}`);
      expect(hashes[0]?.content, name).toMatch(/^[0-9a-f]{128}$/);
      expect(licenses.length, name).toBe(1);
    }
  });

  it("a package that the lock file lacks is an error, not an omission", () => {
    const { "node_modules/pg-pool": _gone, ...packages } = lock.packages;
    expect(() => componentsOf({ packages }, ["pg"])).toThrow(/pg-pool is not in package-lock.json/);
  });
});
