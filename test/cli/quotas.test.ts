import { join } from "node:path";
import { expect, it } from "vitest";
import { program, temporaryFolder } from "./stage.ts";

it("durable-tape quota sets, lists and takes back what tenants may have", async () => {
  const store = ["--store", `sqlite:${join(await temporaryFolder(), "t.db")}`];
  const person = ["--by", "ada", "--reason", "drill"];
  expect((await program("token", "create", "ci", "--role", "reader", ...person, ...store)).code).toBe(0);
  expect(await program("quota", "ls", ...store)).toMatchObject({ code: 0, stdout: expect.stringMatching(/no quotas/) });
  const unclear = await program("quota", "set", "acme", "--runs", "many", ...person, ...store);
  expect(unclear).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--runs is a whole number, none or default"),
  });
  expect((await program("quota", "set", "acme", ...person, ...store)).code).toBe(2);
  expect((await program("quota", "set", "--runs", "100", "--schedules", "5", ...person, ...store)).code).toBe(0);
  const set = await program("quota", "set", "acme", "--runs", "none", "--streams", "7", ...person, ...store);
  expect(set).toMatchObject({ code: 0, stdout: expect.stringMatching(/acme +0 of no limit +no limit +0 of 5 +7/) });
  const { stdout } = await program("quota", "ls", ...store);
  expect(stdout).toMatch(/\(all others\) +100 +no limit +5 +no limit\nacme /);
  const audited = await program("audit", ...store);
  expect(audited.stdout).toMatch(/ada +quota\.set +drill/); // the default is the business of who runs the store
  const taken = await program("quota", "unset", "acme", "-o", "json", ...person, ...store);
  expect(JSON.parse(taken.stdout)).toMatchObject({ tenant: "acme", limits: { runs: 100, streams: null } });
  // A start is refused with the code, and says what next.
  await program("quota", "set", "default", "--runs", "0", ...person, ...store);
  const refused = await program("start", "w", "--input", "1", ...store);
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/TAPE_QUOTA[\s\S]*durable-tape quota/) });
});
