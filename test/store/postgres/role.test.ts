import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, expect, inject, it } from "vitest";
import { Tape } from "../../../src/host/tape.ts";
import { effect } from "../../../src/sdk/effect.ts";
import { gate } from "../../../src/sdk/gate.ts";
import { createRunner, workflow } from "../../../src/sdk/workflow.ts";
import { grantsFor } from "../../../src/store/postgres/grants.ts";
import { openPostgres } from "../../../src/store/postgres/open.ts";
import { checkProjection } from "../../../testkit/projection.ts";
import { codeOf, type Scene, sceneOn } from "./scene.ts";

/** A role that owns nothing runs Tape in a schema that its owner has migrated. */
let scene: Scene;
let url: string;
const role = `runs_tape_${randomBytes(6).toString("hex")}`;

beforeEach(async () => {
  scene = await sceneOn(inject("postgres18"));
  await scene.admin.query(`revoke execute on all functions in schema tape from public; create role ${role} login`);
  const address = new URL(scene.url);
  address.username = role;
  url = address.href;
});
afterEach(async () => {
  await scene.admin.query(`drop owned by ${role}; drop role ${role}`);
  await scene.close();
});

const grant = () => scene.admin.query(grantsFor("tape", role).join("\n"));

it("with the printed grants, a role can do all that Tape does and change no table", async () => {
  await grant();
  const go = gate<number>("go");
  const compensated: number[] = [];
  const pay = effect("pay", async (n: number) => n, {
    semantics: "idempotent",
    compensate: (n) => void compensated.push(n),
  });
  const child = workflow("child", async (tape, n: number) => {
    await tape.sleep("10ms");
    return n * 2;
  });
  const all = workflow("all", async (tape, fails: boolean) => {
    await tape.step("first", () => 1);
    await pay(7);
    const answer = await tape.gate(go);
    const kid = await tape.spawn(child, answer.status === "received" ? answer.value : 0);
    if (fails) throw new Error("on purpose");
    return kid.result();
  });
  const app = await Tape.open({ store: url, runner: createRunner({ workflows: [all, child], effects: [pay] }) });
  const [good, bad] = [await app.start(all, false, { id: "good" }), await app.start(all, true, { id: "bad" })];
  await Promise.all(["good", "bad"].map((id) => app.signal(id, go, 21)));
  expect(await good.result()).toBe(42);
  await expect(bad.result()).rejects.toMatchObject({ details: { status: "COMPENSATED" } });
  expect(compensated).toEqual([7]);
  const lease = await app.leases.acquire("lead", { ttl: "30s" });
  await lease.release();
  await app.close();

  const store = await openPostgres({ url });
  await store.intake.putValue("default", "key", 1, "unconditional");
  // Transactions of other databases hold the feed back for a moment.
  await expect.poll(() => checkProjection(store, ["default"]), { timeout: 10_000 }).toEqual([]);
  expect((await store.claim.restored("drill")).epoch).toBe(1);
  await store.intake.prune("default", 0, 100);
  await store.close();

  const { rows } = await scene.admin.query(
    `select has_table_privilege($1, 'tape.leases', 'truncate') as empties, has_schema_privilege($1, 'tape', 'create') as makes,
      has_table_privilege($1, 'tape.migrations', 'update') as rewrites`,
    [role],
  );
  expect(rows).toEqual([{ empties: false, makes: false, rewrites: false }]);
}, 30_000);

it.each([
  ["the schema", () => `revoke usage on schema tape from ${role}`, /permission denied for schema tape/],
  [
    "a table",
    () => `revoke update on tape.leases from ${role}`,
    /lacks privileges \(leases\): grant select, insert, update, delete/,
  ],
  [
    "a function",
    () => `revoke execute on function tape.on_timeline from ${role}`,
    /on_timeline.*grant execute on all functions/,
  ],
  ["a schema that is up to date", () => "delete from tape.migrations", /has to be migrated, and this role may not/],
])("without %s it is refused at the start, with a code and what is missing", async (_, revoke, says) => {
  await grant();
  await scene.admin.query(revoke());
  const refusal = await openPostgres({ url }).catch((error: unknown) => error);
  expect(refusal).toMatchObject({ code: "TAPE_STORE_FORBIDDEN", retry: "no", message: expect.stringMatching(says) });
});

it("a privilege revoked at run time is not reported as a busy store", async () => {
  await grant();
  const store = await openPostgres({ url });
  await scene.admin.query(`revoke select, insert on tape.vals from ${role}`);
  expect(await codeOf(store.read.values("acme", ""))).toBe("TAPE_STORE_FORBIDDEN");
  expect(await codeOf(store.intake.putValue("acme", "key", 1, "unconditional"))).toBe("TAPE_STORE_FORBIDDEN");
  await store.close();
});

it("an invalid role name is not put into a statement", () => {
  expect(() => grantsFor("tape", 'x"; drop schema tape')).toThrow(/TAPE_BAD_INPUT/);
});
