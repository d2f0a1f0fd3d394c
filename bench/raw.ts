import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { journalLength, stepBody } from "./work.ts";

/** The ceiling: rows straight into the records table, `w` of them in each batch, no fence, no queue. */
export interface RawWriter {
  /** Rows a second. */
  run(w: number, ms: number): Promise<number>;
  close(): Promise<void>;
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
let nextJournal = 1_000_000_000;

export function rawSqlite(file: string): RawWriter {
  const db = new DatabaseSync(file);
  db.exec("pragma journal_mode = wal; pragma synchronous = 2; pragma cache_size = -65536; pragma temp_store = memory");
  db.exec("pragma wal_autocheckpoint = 4000");
  const begin = db.prepare("begin immediate");
  const commit = db.prepare("commit");
  const insert = db.prepare("insert into records(journal, seq, token, at, kind, body) values (?, ?, ?, ?, ?, ?)");
  return {
    async run(w, ms) {
      const begun = performance.now();
      let rows = 0;
      while (performance.now() < begun + ms) {
        const base = nextJournal;
        nextJournal += w;
        for (let seq = 1; seq <= journalLength; seq++) {
          begin.run();
          for (let k = 0; k < w; k++) insert.run(base + k, seq, 1, 1_763_236_800_000, "step.done", stepBody);
          commit.run();
          rows += w;
          await turn();
        }
      }
      return (rows * 1000) / (performance.now() - begun);
    },
    close: async () => db.close(),
  };
}

/** As many connections as the store's own appender uses, and batches split as it splits them. */
const lanes = 4;
const leastShare = 32;

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
  const insert = (client: pg.Client, base: number, count: number, seq: number) => {
    const all = (value: string | number) => `{${Array.from({ length: count }, () => value).join(",")}}`;
    const journals = `{${Array.from({ length: count }, (_, k) => base + k).join(",")}}`;
    return client.query({ name: "raw", text, values: [journals, all(seq), all("step.done"), all(quoted)] });
  };
  return {
    async run(w, ms) {
      const begun = performance.now();
      const used = Math.min(lanes, Math.ceil(w / leastShare));
      const share = Math.ceil(w / used);
      let rows = 0;
      await Promise.all(
        clients.slice(0, used).map(async (client) => {
          while (performance.now() < begun + ms) {
            const base = nextJournal;
            nextJournal += share;
            for (let seq = 1; seq <= journalLength; seq++) {
              await insert(client, base, share, seq);
              rows += share;
            }
          }
        }),
      );
      return (rows * 1000) / (performance.now() - begun);
    },
    close: async () => {
      await Promise.all(clients.map((client) => client.end()));
    },
  };
}
