import { strict as assert } from "node:assert";
import { checkAudit } from "../../src/store/audit.ts";
import { acquired, type Cases, record, refused, request, step, tenant, unique } from "./frame.ts";
import { begin, ended, holdItem, intent, unchanged } from "./holder.ts";

const info = { by: "ann", reason: "drill" };
const newToken = (of = tenant, more: { expiresInMs?: number } = {}) => ({
  id: unique("token"),
  tenant: of,
  name: "ci",
  role: "worker",
  hash: "hash of a secret",
  ...more,
});

/** API tokens and the audit log. */
export const apiTokens: Cases = ({ it }, fresh) => {
  it("a token is created once, found by id, listed for its tenant, and revoked once", async () => {
    const { store, another } = fresh();
    const [ours, theirs] = [newToken(tenant, { expiresInMs: 60_000 }), newToken("globex")];
    const made = await store.intake.putToken(ours, info);
    const { createdAt, expiresAt, revokedAt, usedAt } = made;
    const { expiresInMs, ...rest } = ours;
    assert.deepEqual(made, { ...rest, createdAt, expiresAt: createdAt + expiresInMs!, revokedAt: null, usedAt: null });
    assert.ok(Math.abs(createdAt - (await store.read.now())) < 60_000);
    assert.deepEqual([expiresAt! > createdAt, revokedAt, usedAt], [true, null, null]);
    const foreign = await store.intake.putToken(theirs, info);
    assert.equal(foreign.expiresAt, null);
    const { read } = await another();
    assert.deepEqual([await read.token(ours.id), await read.token(theirs.id)], [made, foreign]);
    assert.deepEqual(await read.tokens(tenant), [made]);
    assert.deepEqual((await read.tokens()).map(({ id }) => id).sort(), [ours.id, theirs.id].sort());
    assert.equal(await read.token("nobody"), undefined);
    assert.deepEqual(await store.intake.putToken(ours, info), made, "the same again");
    await refused("TAPE_BAD_INPUT", store.intake.putToken({ ...ours, hash: "another" }, info));
    await refused("TAPE_BAD_INPUT", store.intake.putToken({ ...ours, tenant: "globex" }, info));
    await refused("TAPE_NOT_FOUND", store.intake.revokeToken(tenant, theirs.id, info));
    await refused("TAPE_NOT_FOUND", store.intake.revokeToken(undefined, "nobody", info));
    assert.deepEqual(await read.token(theirs.id), foreign);
    const revoked = await store.intake.revokeToken(tenant, ours.id, info);
    assert.deepEqual({ ...revoked, revokedAt: null }, made);
    assert.ok(revoked.revokedAt! >= createdAt);
    assert.deepEqual(await store.intake.revokeToken(undefined, ours.id, info), revoked, "the first revocation stands");
    assert.deepEqual(await read.token(ours.id), revoked);
    const entries = await read.audit(tenant);
    assert.deepEqual(
      entries.map(({ action, by, reason, detail, subject, tenant: of }) => ({
        action,
        by,
        reason,
        detail,
        subject,
        of,
      })),
      ["token.revoke", "token.create"].map((action) => ({
        action,
        by: "ann",
        reason: "drill",
        detail: { tenant, token: ours.id, name: "ci", role: "worker" },
        subject: null,
        of: tenant,
      })),
    );
  });

  it("a page after another tenant's token equals the page after an unknown one", async () => {
    const { store } = fresh();
    const id = unique("token"); // tokens created within one millisecond are listed by id
    const theirs = { ...newToken("globex"), id: `${id}-1` };
    for (const token of [theirs, { ...newToken(), id: `${id}-2` }, { ...newToken(), id: `${id}-3` }]) {
      await store.intake.putToken(token, info);
    }
    const [first, second] = await store.read.tokens(tenant);
    assert.deepEqual(await store.read.tokens(tenant, { above: first!.id }), [second]);
    assert.deepEqual(await store.read.tokens(tenant, { above: theirs.id }), []);
    assert.deepEqual(await store.read.tokens(tenant, { above: "nobody" }), []);
    assert.deepEqual(await store.read.tokens(undefined, { above: theirs.id }), [first, second]);
  });

  it("a token shows its last use, accurate to a minute", async () => {
    const { store } = fresh();
    const token = newToken();
    await store.intake.putToken(token, info);
    await store.intake.touchToken(token.id);
    const first = (await store.read.token(token.id))?.usedAt;
    assert.ok(typeof first === "number" && Math.abs(first - (await store.read.now())) < 60_000);
    await store.intake.touchToken(token.id);
    assert.equal((await store.read.token(token.id))?.usedAt, first);
    await store.intake.touchToken("nobody");
    assert.equal(await store.read.token("nobody"), undefined);
  });

  it("a token without a name, operator or reason is refused, and leaves nothing", async () => {
    const { store } = fresh();
    const token = newToken();
    await unchanged(store, async () => {
      for (const field of ["id", "tenant", "name", "role", "hash"]) {
        await refused("TAPE_BAD_INPUT", store.intake.putToken({ ...token, [field]: "" }, info));
      }
      await refused("TAPE_BAD_INPUT", store.intake.putToken({ ...token, expiresInMs: 0 }, info));
      await refused("TAPE_BAD_INPUT", store.intake.putToken(token, { by: "ann", reason: "" }));
      await refused("TAPE_BAD_INPUT", store.intake.putToken(token, undefined as never));
      await refused("TAPE_BAD_INPUT", store.intake.revokeToken("", token.id, info));
      await refused("TAPE_BAD_INPUT", store.intake.revokeToken(tenant, token.id, { by: "", reason: "r" }));
      await refused("TAPE_BAD_INPUT", store.intake.prune(tenant, 1, 1, { by: "", reason: "r" }));
    });
    assert.deepEqual(await store.read.tokens(), []);
    assert.deepEqual(await store.read.audit(undefined), []);
  });
};

export const audit: Cases = ({ it }, fresh) => {
  it("the audit log lists operator actions of one tenant, newest first", async () => {
    const { store } = fresh();
    const acted = (action: string, detail?: unknown) =>
      record("operator.action", { by: "ann", action, reason: "r", ...(detail === undefined ? {} : { detail }) });
    const run = await begin(store);
    await run.write(step(0), acted("redrive", { odd: "a\0b", n: 1n }), intent(1, { dispatch: "outbox" }));
    const item = await holdItem(store, run.id, 1);
    await item.write(acted("resolve"));
    const name = unique("lease");
    await store.claim.pause(tenant, name, true, "bob", "it hangs");
    await store.claim.pause("globex", name, true, "eve", "mine");
    await store.intake.putToken(newToken(), info);
    await store.intake.putToken(newToken("globex"), info);
    const over = await begin(store);
    await over.write(ended("COMPLETED", { outcome: 1 }));
    assert.equal(await store.intake.prune(tenant, (await store.read.now()) + 60_000, 5, info), 1);
    await store.claim.restored("a backup", "bob", undefined, tenant);
    const short = (entries: Awaited<ReturnType<typeof store.read.audit>>) =>
      entries.map(({ by, action, subject, tenant: of }) => `${by} ${action} ${subject} ${of}`);
    const ours = [
      `bob store.restored null ${tenant}`,
      `ann runs.prune null ${tenant}`,
      `ann token.create null ${tenant}`,
      `bob lease.pause ${name} ${tenant}`,
      `ann resolve ${run.id} ${tenant}`,
      `ann redrive ${run.id} ${tenant}`,
    ];
    const entries = await store.read.audit(tenant);
    assert.deepEqual(short(entries), ours);
    assert.deepEqual(
      entries.map(({ cursor }) => cursor),
      ["6", "5", "4", "3", "2", "1"],
      "a tenant's own numbers: shared ones would reveal how much others do",
    );
    assert.deepEqual(entries[5]!.detail, { odd: "a\0b", n: 1n });
    assert.equal(Object.hasOwn(entries[4]!, "detail"), false);
    assert.deepEqual(entries.map(({ journal }) => journal).slice(4), [item.journal, run.journal]);
    assert.deepEqual(short(await store.read.audit("globex")), [
      "ann token.create null globex",
      `eve lease.pause ${name} globex`,
    ]);
    const all = await store.read.audit(undefined);
    assert.equal(all.length, 8);
    assert.deepEqual(short(all)[0], `bob store.restored null ${tenant}`);
    assert.equal((all[0]!.detail as { ended: number }).ended, 2);
    assert.deepEqual(await store.read.audit("initech"), []);
    // Pages of any size give the same list.
    for (const limit of [1, 2, 3]) {
      const paged = [];
      for (let before: string | undefined; ; ) {
        const page = await store.read.audit(tenant, { limit, ...(before === undefined ? {} : { before }) });
        assert.ok(page.length <= limit);
        paged.push(...page);
        before = page.at(-1)?.cursor;
        if (before === undefined) break;
      }
      assert.deepEqual(paged, entries);
    }
    await refused("TAPE_BAD_INPUT", store.read.audit(tenant, { before: "nowhere" }));
    await refused("TAPE_BAD_INPUT", store.read.audit("" as never));
  });

  it("the audit log does not contain refused actions", async () => {
    const { store } = fresh();
    const held = await acquired(store, request({ name: unique("lease") }));
    const one = record("operator.action", { by: "ann", action: "a", reason: "r" });
    await refused("TAPE_NOT_HEAD", store.fenced.append(held.fence, { after: held.head + 5, records: [one] }));
    await refused("TAPE_NOT_FOUND", store.intake.revokeToken(tenant, "nobody", info));
    assert.deepEqual(await store.read.audit(undefined), []);
  });

  it("health reads from the store, and lists no problem if there is none", async () => {
    const { store } = fresh();
    assert.deepEqual(await store.health(), {});
  });

  it("audit entries outlive their runs, and name the credential", async () => {
    const { store } = fresh();
    const via = { token: "t-1", name: "ops", role: "operator", address: "10.0.0.7", request: "r-9" };
    const run = await begin(store);
    await run.write(record("operator.action", { by: "ann", action: "redrive", reason: "r", via }));
    await run.write(ended("COMPLETED", { outcome: 1 }));
    const before = await store.read.audit(tenant);
    assert.deepEqual(
      before.map(({ by, subject, via: credential }) => ({ by, subject, via: credential })),
      [{ by: "ann", subject: run.id, via }],
    );
    assert.equal(await store.intake.prune(tenant, (await store.read.now()) + 60_000, 5, { ...info, via }), 1);
    assert.equal(await store.read.run(tenant, run.id), undefined);
    const [pruned, ...kept] = await store.read.audit(tenant);
    assert.deepEqual(kept, before);
    assert.deepEqual([pruned?.action, pruned?.via], ["runs.prune", via]);
  });

  it("the audit log contains what operators send to runs, not what programs send", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const as = (role: string) => ({ by: role, via: { token: role, name: role, role } });
    for (const role of ["starter", "worker", "operator", "admin"]) {
      await store.intake.signal(tenant, run.id, { name: "go", value: 1, key: role, ...as(role) });
      await store.intake.signal(tenant, run.id, { name: "go", value: 1, key: role, ...as(role) });
    }
    await store.intake.signal(tenant, run.id, { name: "go", value: 1, by: "embedded" });
    await store.intake.cancel(tenant, run.id, { reason: "enough", ...as("operator") });
    const entries = (await store.read.audit(tenant)).map(({ by, action, subject, reason }) => [
      by,
      action,
      subject,
      reason,
    ]);
    assert.deepEqual(entries, [
      ["operator", "run.cancel", run.id, "enough"],
      ["admin", "run.signal", run.id, "signal go"],
      ["operator", "run.signal", run.id, "signal go"],
    ]);
  });

  it("audit entries form a chain per tenant that reveals changes, gaps and insertions", async () => {
    const { store, another } = fresh();
    const other = await another();
    await Promise.all(
      Array.from({ length: 6 }, (_one, k) =>
        (k % 2 === 0 ? store : other).intake.recordAudit(tenant, `action-${k}`, info, {
          k,
          big: 2n ** 70n,
          odd: "a\0b",
        }),
      ),
    );
    await store.intake.recordAudit("globex", "action", info);
    const entries = (await store.read.audit(tenant)).toReversed();
    assert.deepEqual(
      entries.map(({ n }) => n),
      [1, 2, 3, 4, 5, 6],
    );
    const whole = checkAudit(entries);
    assert.deepEqual([whole.checked, whole.unsealed, whole.faults], [6, 0, []]);
    assert.deepEqual(whole.head, { n: 6, hash: entries[5]!.hash });
    assert.deepEqual(checkAudit(await store.read.audit("globex")).faults, []);
    const changed = entries.map((entry) => (entry.n === 3 ? { ...entry, by: "eve" } : entry));
    assert.deepEqual(checkAudit(changed).faults, ["entry 3 is not what was written"]);
    const cut = entries.filter(({ n }) => n !== 3);
    assert.deepEqual(checkAudit(cut).faults, ["entries 3 to 3 are missing", "entry 4 is not what was written"]);
    assert.equal(checkAudit([...entries.slice(0, 3), ...entries.slice(2)]).faults[0], "entry 3 is there twice");
  });
};
