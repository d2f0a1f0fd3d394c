import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { buildFirst } from "../../src/cli/commands/init.ts";
import { program, temporaryFolder } from "./stage.ts";

it("init suggests building a checkout first when it has no build yet", async () => {
  const checkout = await temporaryFolder();
  expect(buildFirst(checkout)).toBe(`npm run build --prefix ${checkout} && `);
  await mkdir(join(checkout, "dist"));
  await writeFile(join(checkout, "dist", "exports-index.js"), "");
  expect(buildFirst(checkout)).toBe("");
  const folder = join(await temporaryFolder(), "agent");
  const { stdout } = await program("init", folder);
  expect(stdout.split("\n")[1]).toMatch(/^ {2}(npm run build --prefix \S+ && )?cd \S+ && npm install$/);
});
