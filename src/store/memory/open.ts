import { type Clock, systemClock } from "../../base/clock.ts";
import { type Log, silentLog } from "../../base/log.ts";
import { type Random, systemRandom } from "../../base/random.ts";
import { errorFields } from "../../base/reason.ts";
import { type Limits, limitsOf } from "../../model/limits.ts";
import { encodeBody } from "../../model/projection.ts";
import type { RecordData } from "../../model/records.ts";
import type { Store } from "../contract/store.ts";
import { assembleStore } from "../sql/assemble.ts";
import { WakeHub } from "../wake-hub.ts";
import { MemoryDriver } from "./driver.ts";
import { storeJournal } from "./journals.ts";
import { blank } from "./leases.ts";
import { Tables } from "./tables.ts";

export interface MemoryOptions {
  readonly clock?: Clock;
  readonly random?: Random;
  readonly limits?: Partial<Limits>;
  readonly log?: Log;
}

/** A store that lives as long as its process: the shortest true reading of the contract, for tests and first steps. */
export async function openMemory(options: MemoryOptions = {}): Promise<Store> {
  const { clock = systemClock, random = systemRandom, log = silentLog } = options;
  const limits = limitsOf(options.limits);
  const wakes = new WakeHub((error) => log("error", "wake.listener_failed", { ...errorFields(error) }));
  const tables = layGround(Buffer.from(random.bytes(16)).toString("hex"));
  let key: string | undefined;
  tables.cursorKey = () => {
    key ??= Buffer.from(random.bytes(32)).toString("hex");
    return key;
  };
  return assembleStore(new MemoryDriver({ tables, clock, limits, wakes }), random);
}

/** What the first migration of the SQL stores inserts: the one row of meta, and the store's own journal. */
function layGround(store_id: string): Tables {
  const tables = new Tables();
  const created: RecordData<"store.restored"> = { epoch: 0, reason: "created", ended: 0 };
  const journal = storeJournal;
  tables.undo.transaction(() => {
    tables.meta.insert({ store_id, epoch: 0, token_floor: 0n, next_journal: journal + 1, last_id: 1 });
    tables.leases.insert({ ...blank(0), journal, kind: "store", tenant: "", run: journal, workflow: "", token: 0n });
    const record = { journal, seq: 1, token: 0n, at: 0, kind: "store.restored", body: encodeBody(created) };
    tables.records.insert({ id: 1, ...record });
  });
  return tables;
}
