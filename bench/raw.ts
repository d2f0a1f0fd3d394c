import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { journalLength, stepBody } from "./work.ts";

/**
 * The ceiling: rows straight into the records table, `w` of them in each batch, no fence, no queue. The journals exist
 * beforehand with their first record, as those of the fenced appends do, and are used in the same order: how many pages
 * of the index a commit touches decides more than anything else.
 */
export interface RawWriter {
  /** Rows a second. */
  run(w: number, ms: number): Promise<number>;
  close(): Promise<void>;
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
let nextJournal = 1_000_000_000;

/** Numbers of fresh journals, enough for `ms` at this rate; the last ones are used first. */
function journalsFor(rate: number, ms: number, w: number): number[] {
  const count = Math.ceil((rate * ms * 1.5) / 1000 / (journalLength - 1)) + 2 * w;
  const first = nextJournal;
  nextJournal += count;
  return Array.from({ length: count }, (_, k) => first + k);
}

export function rawSqlite(file: string): RawWriter {
  const db = new DatabaseSync(file);
  db.exec("pragma journal_mode = wal; pragma synchronous = 2; pragma cache_size = -65536; pragma temp_store = memory");
  db.exec("pragma wal_autocheckpoint = 1000");
  const begin = db.prepare("begin immediate");
  const commit = db.prepare("commit");
  const statement = db.prepare("insert into records(journal, seq, token, at, kind, body) values (?, ?, ?, ?, ?, ?)");
  const insert = (journal: number, seq: number) =>
    statement.run(journal, seq, 1, 1_763_236_800_000, "step.done", stepBody);
  let rate = 100_000;
  return {
    async run(w, ms) {
      const journals = journalsFor(rate, ms, w);
      for (let k = 0; k < journals.length; k += 500) {
        begin.run();
        for (const journal of journals.slice(k, k + 500)) insert(journal, 1);
        commit.run();
      }
      const started = performance.now();
      let rows = 0;
      while (performance.now() < started + ms && journals.length >= w) {
        const some = journals.splice(-w);
        for (let seq = 2; seq <= journalLength; seq++) {
          begin.run();
          for (const journal of some) insert(journal, seq);
          commit.run();
          rows += w;
          await turn();
        }
      }
      const measured = (rows * 1000) / (performance.now() - started);
      rate = Math.max(measured, 1_000);
      return measured;
    },
    close: async () => db.close(),
  };
}

/** As many connections as the store's own batcher uses, and batches split as it splits them. */
const lanes = 4;
const minShare = 64;

export async function rawPostgres(url: string, schema: string): Promise<RawWriter> {
  const options = "-c plan_cache_mode=force_generic_plan -c synchronous_commit=on";
  const clients = await Promise.all(
    Array.from({ length: lanes }, async () => {
      const client = new pg.Client({ connectionString: url, options });
      await client.connect();
      return client;
    }),
  );
  const text = `insert into "${schema}".records(journal, seq, token, stamp, at, kind, body)
    select journal, seq, 1, (select pg_current_xact_id()::text::bigint), 1763236800000, kind, body
    from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) as i(journal, seq, kind, body)`;
  const quoted = `"${stepBody.replace(/[\\"]/g, "\\$&")}"`;
  const insert = (client: pg.Client, journals: readonly number[], seq: number) => {
    const all = (value: string | number) => `{${journals.map(() => value).join(",")}}`;
    return client.query({
      name: "raw",
      text,
      values: [`{${journals.join(",")}}`, all(seq), all("step.done"), all(quoted)],
    });
  };
  let rate = 50_000;
  return {
    async run(w, ms) {
      const journals = journalsFor(rate, ms, w);
      for (let k = 0; k < journals.length; k += 500) await insert(clients[0]!, journals.slice(k, k + 500), 1);
      const started = performance.now();
      const used = Math.min(lanes, Math.ceil(w / minShare));
      const share = Math.ceil(w / used);
      let rows = 0;
      await Promise.all(
        clients.slice(0, used).map(async (client) => {
          while (performance.now() < started + ms && journals.length >= share) {
            const some = journals.splice(-share);
            for (let seq = 2; seq <= journalLength; seq++) {
              await insert(client, some, seq);
              rows += share;
            }
          }
        }),
      );
      const measured = (rows * 1000) / (performance.now() - started);
      rate = Math.max(measured, 1_000);
      return measured;
    },
    close: async () => {
      await Promise.all(clients.map((client) => client.end()));
    },
  };
}
