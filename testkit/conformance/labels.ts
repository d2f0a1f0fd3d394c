import { strict as assert } from "node:assert";
import { defaultLimits } from "../../src/model/limits.ts";
import type { NewRecord } from "../../src/model/records.ts";
import type { RunFilter, Store } from "../../src/store/contract/store.ts";
import { checkProjection } from "../projection.ts";
import { type Cases, forged, record, refused, spec, tenant, unique } from "./frame.ts";
import { begin, dispatched, ended, hold, intent, settled, unchanged, viewOf } from "./holder.ts";

const labels = (pos: number, set: Record<string, string>, unset: string[] = []): NewRecord =>
  record("labels.set", { pos, set, unset });
const list = async (store: Store, filter: RunFilter, of = tenant): Promise<string[]> =>
  (await store.read.runs(of, filter)).map(({ id }) => id);
const many = (n: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: n }, (_, k) => [`key ${k}`, "value"]));
const long = "x".repeat(defaultLimits.labelLength + 1);

export const labelled: Cases = ({ it }, fresh) => {
  it("a run changes its labels, and lists follow at once [INV-9]", async () => {
    const { store } = fresh();
    const run = await begin(store, { labels: { customer: "acme", stage: "open" } });
    const bare = await begin(store);
    const stage = (value: string): Promise<string[]> => list(store, { labels: { stage: value } });
    assert.deepEqual(await stage("open"), [run.id]);
    await run.write(labels(0, { stage: "paid", region: "eu" }, ["draft"]));
    await bare.write(labels(0, { stage: "paid" }));
    assert.deepEqual(await stage("open"), []);
    assert.deepEqual((await stage("paid")).sort(), [run.id, bare.id].sort());
    assert.deepEqual((await viewOf(store, run.id)).labels, { customer: "acme", stage: "paid", region: "eu" });
    await run.write(labels(1, {}, ["customer", "stage"]));
    assert.deepEqual(await stage("paid"), [bare.id]);
    assert.deepEqual(await list(store, { labels: { customer: "acme" } }), []);
    assert.deepEqual((await viewOf(store, run.id)).labels, { region: "eu" });
    await run.write(ended("COMPLETED", { outcome: 1 }));
    assert.deepEqual(await list(store, { labels: { region: "eu" } }), [run.id], "it has ended");
    assert.deepEqual(await checkProjection(store, [tenant]), []);
  });

  it("a list by several labels finds the runs with all of them, newest first", async () => {
    const { store } = fresh();
    const stages = ["paid", "sent", "lost"];
    const specs = Array.from({ length: 9 }, (_, k) =>
      spec({
        workflow: k % 2 === 0 ? "even" : "odd",
        labels: { customer: k < 6 ? "acme" : "other", stage: stages[k % 3]! },
      }),
    );
    for (const one of specs) await store.intake.createRuns(tenant, [one]);
    await store.intake.createRuns("globex", [spec({ labels: { customer: "acme", stage: "paid" } })]);
    const ids = (...of: number[]): string[] => of.map((k) => specs[k]!.id);
    const table: [RunFilter, string[]][] = [
      [{ labels: { customer: "acme" } }, ids(5, 4, 3, 2, 1, 0)],
      [{ labels: { customer: "acme", stage: "paid" } }, ids(3, 0)],
      [{ labels: { stage: "paid", customer: "acme" } }, ids(3, 0)],
      [{ labels: { customer: "acme", stage: ["paid", "sent"] } }, ids(4, 3, 1, 0)],
      [{ labels: { customer: ["acme", "other"], stage: ["sent", "sent"] } }, ids(7, 4, 1)],
      [{ labels: { customer: "acme" }, label: { key: "stage", value: "lost" } }, ids(5, 2)],
      [{ labels: { customer: "acme" }, workflow: "odd" }, ids(5, 3, 1)],
      [{ labels: { customer: "acme", stage: "none" } }, []],
      [{ labels: { customer: "acme", none: "paid" } }, []],
      [{ labels: {}, workflow: "odd" }, ids(7, 5, 3, 1)],
    ];
    for (const [filter, expected] of table) {
      assert.deepEqual(await list(store, filter), expected, JSON.stringify(filter));
      for (const limit of [1, 2, 5]) {
        const seen: string[] = [];
        for (let before: number | undefined; ; ) {
          const page = await store.read.runs(tenant, { ...filter, limit, ...(before !== undefined && { before }) });
          if (page.length === 0) break;
          seen.push(...page.map(({ id }) => id));
          before = page.at(-1)!.journal;
        }
        assert.deepEqual(seen, expected, `${JSON.stringify(filter)} by ${limit}`);
      }
    }
  });

  it("labels combine with status, times, prefix, doubt and descendants", async () => {
    const { store, elapse } = fresh();
    const prefix = unique("order");
    const labelledBy = { labels: { customer: "acme" } };
    const running = await begin(store, { id: `${prefix}-1`, ...labelledBy });
    const over = await begin(store, { id: `${prefix}-2`, ...labelledBy });
    const unsure = await begin(store, { id: unique("x"), ...labelledBy });
    await unsure.write(
      intent(0, { semantics: "non_idempotent" }),
      dispatched(0),
      settled(0, "UNKNOWN", { reason: "ack_lost" }),
    );
    const plain = await begin(store, { id: `${prefix}-3` });
    await elapse(5);
    await over.write(ended("FAILED", { outcome: "no" }));
    const child = unique("child");
    await running.write(
      record("child.started", { pos: 0, id: child, workflow: "w", input: 1, inputHash: "h", ...labelledBy }),
    );
    const { endedAt } = await viewOf(store, over.id);
    const { createdAt } = await viewOf(store, running.id);
    const table: [RunFilter, string[]][] = [
      [{ ...labelledBy, status: ["FAILED"] }, [over.id]],
      [{ ...labelledBy, status: ["RUNNING"] }, [unsure.id, running.id]],
      [{ ...labelledBy, status: ["RUNNABLE"] }, [child]],
      [{ ...labelledBy, status: ["FAILED", "WAITING", "COMPLETED"] }, [over.id]],
      [{ ...labelledBy, prefix }, [over.id, running.id]],
      [{ ...labelledBy, prefix, inDoubt: true }, []],
      [{ ...labelledBy, inDoubt: true }, [unsure.id]],
      [{ ...labelledBy, endedSince: endedAt! }, [over.id]],
      [{ ...labelledBy, endedUntil: endedAt! }, []],
      [{ ...labelledBy, startedUntil: createdAt }, []],
      [{ ...labelledBy, startedSince: createdAt, status: ["FAILED"] }, [over.id]],
      [{ ...labelledBy, below: running.journal }, [child]],
      [{ labels: { customer: "none" }, below: running.journal }, []],
    ];
    for (const [filter, expected] of table) {
      assert.deepEqual(await list(store, filter), expected, JSON.stringify(filter));
    }
    assert.ok((await list(store, { prefix })).includes(plain.id));
  });

  it("too many labels, or ones that are too long, are refused and nothing is written", async () => {
    const { store } = fresh();
    const max = defaultLimits.labels;
    const run = await begin(store, { labels: many(max - 1) });
    await run.write(labels(0, { last: "one" }));
    for (const bad of [many(max + 1), { [long]: "x" }, { key: long }, { "": "x" }]) {
      const [result] = await store.intake.createRuns(tenant, [spec({ labels: bad })]);
      const code = "" in bad ? "TAPE_BAD_INPUT" : "TAPE_TOO_LARGE";
      assert.equal(result?.ok === false && result.error.code, code, JSON.stringify(bad));
      await run.refused(code, labels(1, bad as Record<string, string>));
    }
    await unchanged(store, () => refused("TAPE_TOO_LARGE", run.write(labels(1, { more: "x" }))));
    await refused("TAPE_BAD_INPUT", run.write(labels(1, { last: "two" }, ["last"])));
    await refused("TAPE_TOO_LARGE", run.write(labels(1, {}, [long])));
    await run.write(labels(1, { more: "x" }, ["last"]));
    assert.deepEqual(await list(store, { labels: { more: "x" } }), [run.id]);
    assert.deepEqual(await list(store, { labels: { last: "one" } }), []);
    const values = Array.from({ length: 17 }, (_, k) => `v${k}`);
    const filters = [{ ...many(max + 1) }, { key: long }, { [long]: "x" }, { key: values }];
    for (const filter of filters) {
      await refused("TAPE_TOO_LARGE", store.read.runs(tenant, { labels: filter }));
    }
    await refused("TAPE_BAD_INPUT", store.read.runs(tenant, { labels: { key: [] } }));
    await refused("TAPE_BAD_INPUT", store.read.runs(tenant, { labels: { key: 1 as never } }));
  });

  it("a holder whose term is over changes no label [INV-2]", async () => {
    const { store } = fresh();
    const stale = await begin(store, { labels: { stage: "open" } });
    const { id } = stale;
    await stale.release();
    const holder = await hold(store, id);
    await refused("TAPE_FENCED", stale.write(labels(0, { stage: "stolen" })));
    const theft = { after: holder.head, records: [labels(0, { stage: "stolen" })] };
    await refused("TAPE_FENCED", store.fenced.append(forged(holder.term, { nonce: 1n }), theft));
    assert.deepEqual(await list(store, { labels: { stage: "stolen" } }), []);
    assert.deepEqual(await list(store, { labels: { stage: "open" } }), [id]);
    assert.deepEqual((await viewOf(store, id)).labels, { stage: "open" });
  });

  it("labels are deleted with their run, and belong to their tenant", async () => {
    const { store } = fresh();
    const run = await begin(store, { labels: { customer: "acme" } });
    assert.deepEqual(await list(store, { labels: { customer: "acme" } }, "globex"), []);
    await run.write(ended("COMPLETED", { outcome: 1 }));
    await store.intake.prune(tenant, (await store.read.now()) + 1, 10);
    assert.deepEqual(await list(store, { labels: { customer: "acme" } }), []);
    assert.deepEqual(await checkProjection(store, [tenant]), []);
  });
};
