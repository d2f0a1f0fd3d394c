import { join } from "node:path";
import { expect, it } from "vitest";
import { program, temporaryFolder } from "./stage.ts";

it("durable-tape quota sets, lists and removes quotas of tenants", async () => {
  const store = ["--store", `sqlite:${join(await temporaryFolder(), "t.db")}`];
  const operator = ["--by", "ada", "--reason", "drill"];
  expect((await program("token", "create", "ci", "--role", "reader", ...operator, ...store)).code).toBe(0);
  expect(await program("quota", "ls", ...store)).toMatchObject({ code: 0, stdout: expect.stringMatching(/no quotas/) });
  const invalid = await program("quota", "set", "acme", "--runs", "many", ...operator, ...store);
  expect(invalid).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--runs must be a whole number, none or default"),
  });
  expect((await program("quota", "set", "acme", ...operator, ...store)).code).toBe(2);
  expect((await program("quota", "set", "--runs", "100", "--schedules", "5", ...operator, ...store)).code).toBe(0);
  const set = await program("quota", "set", "acme", "--runs", "none", "--streams", "7", ...operator, ...store);
  expect(set).toMatchObject({ code: 0, stdout: expect.stringMatching(/acme +0 of no limit +no limit +0 of 5 +7/) });
  const { stdout } = await program("quota", "ls", ...store);
  expect(stdout).toMatch(/\(all others\) +100 +no limit +5 +no limit\nacme /);
  const audited = await program("audit", ...store);
  expect(audited.stdout).toMatch(/ada +quota\.set +drill/); // the default belongs to the tenant that operates the store
  const unset = await program("quota", "unset", "acme", "-o", "json", ...operator, ...store);
  expect(JSON.parse(unset.stdout)).toMatchObject({ tenant: "acme", limits: { runs: 100, streams: null } });
  // A rejected start names the code and what to do next.
  await program("quota", "set", "default", "--runs", "0", ...operator, ...store);
  const rejected = await program("start", "w", "--input", "1", ...store);
  expect(rejected).toMatchObject({ code: 1, stderr: expect.stringMatching(/TAPE_QUOTA[\s\S]*durable-tape quota/) });
});
