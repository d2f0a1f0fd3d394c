import pg from "pg";
import { beforeEach, describe, expect, inject, it, onTestFinished } from "vitest";
import { createGuardTable, guardExternalPostgres, guardPostgres } from "../../src/guard/postgres.ts";
import { Tape } from "../../src/host/tape.ts";
import { makeFence } from "../../src/model/fence.ts";
import { effect } from "../../src/sdk/effect.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { noRunner } from "../host/stage.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";

const name = "day-end";
let url = "";
let first: Tape;
let second: Tape;

const connect = async (): Promise<pg.Client> => {
  const client = new pg.Client(url);
  client.on("error", () => {}); // one test lets the server end it
  await client.connect();
  onTestFinished(() => client.end());
  return client;
};

describe.each(["postgres14", "postgres18"] as const)("%s", (server) => {
  beforeEach(async () => {
    url = await freshDatabase(inject(server));
    [first, second] = [
      await Tape.open({ store: url, runner: noRunner, work: false }),
      await Tape.open({ store: url, runner: noRunner, work: false }),
    ];
    const client = new pg.Client(url);
    await client.connect();
    await client.query("create table totals(total int not null); insert into totals values (0)");
    await client.end();
    return async () => {
      await Promise.all([first.close(), second.close()]);
      await dropDatabase(url);
    };
  });

  const totalOf = async (client: pg.Client) => (await client.query("select total from totals")).rows[0].total;

  it("makes a takeover wait for the guarded transaction", async () => {
    const lease = await first.leases.acquire(name);
    const client = await connect();
    await client.query("begin");
    await guardPostgres(client, lease);
    await client.query("update totals set total = 1");
    let taken = false;
    const taking = second.leases.takeover(name, { reason: "test" }).then((got) => {
      taken = true;
      return got;
    });
    expect(await lease.renew()).toBe("held"); // its own heartbeat passes beside it
    expect(taken).toBe(false);
    await client.query("commit");
    expect((await taking).token).toBe(2n);
    expect(await totalOf(client)).toBe(1);
  });

  it.each(["inline", "outbox"] as const)(
    "inside an %s effect, fx is the holder; its run's successor refuses it",
    async (dispatch) => {
      const client = await connect();
      const stolen: string[] = [];
      const add = effect(
        "add",
        async (n: number, fx) => {
          await client.query("begin");
          try {
            await guardPostgres(client, fx);
            await client.query("update totals set total = total + $1", [n]);
            await client.query("commit");
          } catch (error) {
            await client.query("rollback");
            throw error;
          }
          // A fence of an earlier term is refused where the store's own is asked for.
          const stale = {
            ...fx,
            fence: makeFence(fx.fence.tenant, fx.fence.journal, fx.fence.token - 1n, fx.fence.nonce),
          };
          await client.query("begin");
          await guardPostgres(client, stale).catch((error: { code: string }) => stolen.push(error.code));
          await client.query("rollback");
        },
        { semantics: "idempotent", dispatch },
      );
      const book = workflow("book", (_tape, n: number) => add(n));
      await using app = await Tape.open({ store: url, runner: createRunner({ workflows: [book], effects: [add] }) });
      await (await app.start(book, 7)).result();
      expect(await totalOf(client)).toBe(7);
      expect(stolen).toEqual(["TAPE_FENCED"]);
    },
  );

  it("refuses a stale holder that waited for the takeover to commit", async () => {
    const lease = await first.leases.acquire(name);
    const [blocker, client] = [await connect(), await connect()];
    // The takeover, held open in the middle: its row is changed, its commit is still to come.
    await blocker.query("begin");
    await blocker.query("update tape.leases set token = token + 1 where journal = $1", [lease.fence.journal]);
    await client.query("begin");
    const guarding = guardPostgres(client, lease).then(
      () => "let through",
      (error: { code: string }) => error.code,
    );
    await expect.poll(() => waiting(blocker), { timeout: 10_000 }).toBe(1);
    await blocker.query("commit");
    expect(await guarding).toBe("TAPE_FENCED");
  });

  it("throws outside a transaction", async () => {
    const lease = await first.leases.acquire(name);
    const client = await connect();
    await expect(guardPostgres(client, lease)).rejects.toThrow(
      "TAPE_BAD_INPUT: a guard must run inside the transaction",
    );
    await client.query("begin");
    await guardPostgres(client, lease);
    await client.query("commit");
    await expect(guardPostgres(client, lease)).rejects.toThrow("TAPE_BAD_INPUT"); // an earlier mark does not help
    await createGuardTable(client);
    await expect(guardExternalPostgres(client, lease)).rejects.toThrow("TAPE_BAD_INPUT");
  });

  it("ends the transaction of a paused holder within the bound", async () => {
    const lease = await first.leases.acquire(name);
    const client = await connect();
    await client.query("begin");
    await guardPostgres(client, lease, { boundMs: 300 });
    await client.query("update totals set total = 1");
    const taken = await second.leases.takeover(name, { reason: "it hangs" });
    expect(taken.token).toBe(2n);
    await expect(client.query("commit")).rejects.toThrow();
    expect(await totalOf(await connect())).toBe(0);
  });

  it("keeps the user's shorter bound, and resets it with the transaction", async () => {
    const lease = await first.leases.acquire(name);
    const client = await connect();
    const bound = async () => (await client.query("show idle_in_transaction_session_timeout")).rows[0];
    await client.query("begin");
    await guardPostgres(client, lease);
    expect(await bound()).toEqual({ idle_in_transaction_session_timeout: "5s" });
    await client.query("commit");
    expect(await bound()).toEqual({ idle_in_transaction_session_timeout: "0" });
    await client.query("set idle_in_transaction_session_timeout = '2s'");
    await client.query("begin");
    await guardPostgres(client, lease);
    expect(await bound()).toEqual({ idle_in_transaction_session_timeout: "2s" });
    await client.query("commit");
  });

  it("refuses a released holder and one past its own deadline", async () => {
    const lease = await first.leases.acquire(name);
    const { fence, token } = lease;
    await lease.release();
    const client = await connect();
    await client.query("begin");
    await expect(guardPostgres(client, lease)).rejects.toThrow("TAPE_LEASE_LOST"); // by its own clock
    await expect(guardPostgres(client, { name, token, fence })).rejects.toThrow("TAPE_FENCED");
    await client.query("rollback");
  });

  it("refuses lower tokens per scope in another database, up to 2^63", async () => {
    const client = await connect();
    await createGuardTable(client);
    await createGuardTable(client); // twice is once
    const bring = async (scope: string, token: bigint): Promise<string> => {
      await client.query("begin");
      try {
        await guardExternalPostgres(client, { name: scope, token });
        await client.query("commit");
        return "let through";
      } catch (error) {
        await client.query("rollback");
        return (error as { code: string }).code;
      }
    };
    expect(await bring("a", 9n)).toBe("let through");
    expect(await bring("a", 9n)).toBe("let through");
    expect(await bring("a", 10n)).toBe("let through");
    expect(await bring("a", 9n)).toBe("TAPE_FENCED");
    expect(await bring("b", 1n)).toBe("let through");
    expect(await bring("c", 2n ** 53n + 1n)).toBe("let through");
    expect(await bring("c", 2n ** 53n)).toBe("TAPE_FENCED");
    expect(await bring("c", 2n ** 63n - 1n)).toBe("let through");
  });

  it("orders transactions of two tokens in another database", async () => {
    const [old, current, late] = [await connect(), await connect(), await connect()];
    await createGuardTable(old);
    for (const client of [old, current, late]) await client.query("begin");
    await guardExternalPostgres(old, { name, token: 1n });
    const next = guardExternalPostgres(current, { name, token: 2n });
    const watch = await connect();
    await expect.poll(() => waiting(watch), { timeout: 10_000 }).toBe(1);
    await old.query("commit");
    await next;
    const stale = guardExternalPostgres(late, { name, token: 1n }).catch((error: { code: string }) => error.code);
    await expect.poll(() => waiting(watch), { timeout: 10_000 }).toBe(1);
    await current.query("commit");
    expect(await stale).toBe("TAPE_FENCED");
  });
});

const waiting = async (client: pg.Client): Promise<number> => {
  const { rows } = await client.query(
    "select count(*)::int as n from pg_locks where not granted and pid in (select pid from pg_stat_activity where datname = current_database())",
  );
  return rows[0].n;
};
