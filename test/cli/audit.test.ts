import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { program, temporaryFolder } from "./stage.ts";

describe("durable-tape audit", () => {
  it("lists and exports entries, and verify detects a changed one", async () => {
    const file = join(await temporaryFolder(), "t.db");
    const store = ["--store", `sqlite:${file}`];
    const operator = ["--by", "ada", "--reason", "drill"];
    expect((await program("token", "create", "ci", "--role", "reader", ...operator, ...store)).code).toBe(0);
    expect((await program("store", "restored", ...operator, ...store)).code).toBe(0);
    expect((await program("token", "create", "cd", "--role", "worker", ...operator, ...store)).code).toBe(0);
    const listed = await program("audit", ...store);
    expect(listed.stdout).toMatch(/ada +token\.create +drill/);
    const exported = JSON.parse((await program("audit", "-o", "json", ...store)).stdout) as { n: number }[];
    expect(exported.map(({ n }) => n)).toEqual([3, 2, 1]);
    const intact = await program("audit", "verify", ...store);
    expect(intact).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^3 entries, 0 faults\nnewest: 3 [0-9a-f]{64}/),
    });
    const database = new DatabaseSync(file);
    const all = database.prepare("select tenant, body from audit order by id").all() as {
      tenant: string;
      body: string;
    }[];
    // A store-wide action is in the audit log of the tenant that operates the store, with the operator's name.
    expect(all[1]).toMatchObject({ tenant: all[0]?.tenant });
    expect(all[1]?.body).toMatch(/"by":"ada","action":"store\.restored"/);
    database.exec("update audit set body = replace(body, 'drill', 'quiet') where n = 1");
    database.close();
    const changed = await program("audit", "verify", ...store);
    expect(changed).toMatchObject({ code: 1, stdout: expect.stringContaining("entry 1 is not what was written") });
  });
});
