import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { program, temporaryFolder } from "./stage.ts";

describe("durable-tape audit", () => {
  it("lists, exports, and shows what was changed behind its back", async () => {
    const file = join(await temporaryFolder(), "t.db");
    const store = ["--store", `sqlite:${file}`];
    const person = ["--by", "ada", "--reason", "drill"];
    expect((await program("token", "create", "ci", "--role", "reader", ...person, ...store)).code).toBe(0);
    expect((await program("store", "restored", ...person, ...store)).code).toBe(0);
    expect((await program("token", "create", "cd", "--role", "worker", ...person, ...store)).code).toBe(0);
    const listed = await program("audit", ...store);
    expect(listed.stdout).toMatch(/ada +token\.create +drill/);
    const exported = JSON.parse((await program("audit", "-o", "json", ...store)).stdout) as { n: number }[];
    expect(exported.map(({ n }) => n)).toEqual([2, 1]);
    const whole = await program("audit", "verify", ...store);
    expect(whole).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^2 entries, 0 faults\nnewest: 2 [0-9a-f]{64}/),
    });
    const database = new DatabaseSync(file);
    const all = database.prepare("select tenant, body from audit order by id").all() as {
      tenant: string;
      body: string;
    }[];
    // What concerns the whole store is no tenant's, and names who said so.
    expect(all.find(({ tenant }) => tenant === "")?.body).toMatch(/"who":"ada","action":"store\.restored"/);
    database.exec(`update audit set body = replace(body, 'drill', 'quiet') where tenant <> '' and n = 1`);
    database.close();
    const changed = await program("audit", "verify", ...store);
    expect(changed).toMatchObject({ code: 1, stdout: expect.stringContaining("entry 1 is not what was written") });
  });
});
