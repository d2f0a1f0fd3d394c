import { systemClock } from "../../src/base/clock.ts";
import { systemRandom } from "../../src/base/random.ts";
import { openStore } from "../../src/host/open-store.ts";
import { retentionLease } from "../../src/model/retention.ts";
import { fileArchive } from "../../src/retention/file-archive.ts";
import { retentionPass } from "../../src/retention/pass.ts";

/**
 * One retention process, which may be killed at any moment. It takes the lease from its predecessor at once, so that a
 * benchmark with many kills does not wait for leases to expire. Prints how many runs it has archived and deleted.
 */
const [url = "", folder = ""] = process.argv.slice(2);
const store = await openStore(url);
const taken = await store.claim.acquire("default", {
  target: { name: retentionLease },
  claimant: { owner: `retention-${process.pid}`, label: "bench", reactor: "retention", ttlMs: 3_600_000 },
  nonce: systemRandom.bits63(),
  ...{ expect: "any", by: "bench", auditReason: "the previous process was killed" },
});
if (!taken.ok) throw taken.error;
const counts = { runs: 0, bytes: 0, files: 0, failures: 0 };
const report = (end = ""): void => void process.stdout.write(`${counts.runs} ${counts.bytes}${end}\n`);
await retentionPass(
  {
    ...{ store, ops: store.retention!, fence: taken.term.fence, clock: systemClock, counts },
    signal: new AbortController().signal,
    log: () => {},
    progress: () => report(),
  },
  {
    policy: { workflows: { past: 1 } },
    archive: fileArchive(folder, { clock: systemClock, random: systemRandom }),
  },
);
report(" done");
await store.close();
