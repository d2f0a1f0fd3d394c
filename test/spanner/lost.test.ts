import { expect, it, onTestFinished } from "vitest";
import type { Store } from "../../src/store/contract/store.ts";
import type { Connections } from "../../src/store/spanner/connections.ts";
import { openSpanner } from "../../src/store/spanner/open.ts";
import { acquired, heldRun, refused, request, step, tenant } from "../../testkit/conformance/frame.ts";
import { ownEmulator } from "./fixture.ts";

const admin = ownEmulator();

/** What a commit meets on its way: it is called with the real one, and with the rollback. */
type Commit = (commit: () => Promise<unknown>, rollback: () => Promise<unknown>) => Promise<unknown>;

/** A store whose next commits go through these. */
async function brokenStore(): Promise<{ store: Store; url: string; next: Commit[] }> {
  const url = await admin().create();
  const next: Commit[] = [];
  const onOpen = ({ database }: Connections): void => {
    const getTransaction = database.getTransaction.bind(database);
    database.getTransaction = async () => {
      const [transaction] = await getTransaction();
      const commit = transaction.commit.bind(transaction);
      transaction.commit = () => {
        const broken = next.shift();
        return broken === undefined ? commit() : broken(commit, () => transaction.rollback());
      };
      return [transaction];
    };
  };
  const store = await openSpanner({ url: `${url}?wait_ms=600000`, onOpen });
  onTestFinished(() => store.close());
  return { store, url, next };
}

const fails = (code: number, text: string): Error => Object.assign(new Error(`${code} ${text}`), { code });
const aborted: Commit = async (_commit, rollback) => {
  await rollback();
  throw fails(10, "ABORTED: another transaction was in the way");
};
const unanswered: Commit = async (commit) => {
  await commit();
  throw fails(14, "UNAVAILABLE: the connection broke");
};
const lost: Commit = async (_commit, rollback) => {
  await rollback();
  throw fails(14, "UNAVAILABLE: the connection broke");
};

const contents = async (store: Store, run: string) => ({
  inbox: (await store.read.journal(tenant, { run }, { inbox: true })).map(({ seq, kind }) => [seq, kind]),
  journal: (await store.read.journal(tenant, { run })).map(({ seq, kind }) => [seq, kind]),
});

it.each<[string, Commit[]]>([
  ["aborted twice", [aborted, aborted]],
  ["committed, and its response lost", [unanswered]],
  ["lost before it was committed", [lost]],
  ["aborted, then committed with its response lost", [aborted, unanswered]],
])("a transaction that is %s takes effect once", async (_title, commits) => {
  const { store, url, next } = await brokenStore();
  const { id, fence } = await heldRun(store);
  next.push(...commits);
  expect(await store.intake.signal(tenant, id, { name: "paid", value: 1 })).toMatchObject({ n: 1 });
  next.push(...commits);
  await store.fenced.append(fence, { after: 1, records: [step(0)] });
  expect(next).toEqual([]);
  expect(await contents(store, id)).toEqual({
    inbox: [[1, "signal.sent"]],
    journal: [
      [1, "run.created"],
      [2, "step.done"],
    ],
  });
  const rows = await admin().query(url, "select 1 as one from witness where void");
  expect(rows).toHaveLength(commits.includes(lost) ? 2 : 0);
});

it("a plan that was aborted leaves one run and one wake hint", async () => {
  const { store, next } = await brokenStore();
  const woken: string[] = [];
  onTestFinished(store.onWake((hint) => void woken.push(hint.of)));
  next.push(aborted);
  const [created] = await store.intake.createRuns(tenant, [{ id: "order", workflow: "w", input: 1 }]);
  expect(created).toMatchObject({ ok: true, fresh: true });
  expect(woken.filter((of) => of === "reactor")).toHaveLength(1);
  expect(await store.read.runs(tenant)).toHaveLength(1);
});

it("an append that is aborted by a takeover is refused when it is repeated", async () => {
  const { store, next } = await brokenStore();
  const { id, fence } = await heldRun(store);
  next.push(async (_commit, rollback) => {
    await rollback();
    await acquired(store, request({ run: id }, { expect: "any", by: "ann", auditReason: "drill" }));
    throw fails(10, "ABORTED: the takeover was older");
  });
  await refused("TAPE_FENCED", store.fenced.append(fence, { after: 1, records: [step(0)] }));
  expect((await contents(store, id)).journal.map(([, kind]) => kind)).toEqual(["run.created", "term.started"]);
});
