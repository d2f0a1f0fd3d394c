import { createRunner, isTapeError, object, Tape } from "../src/exports/index.ts";

/** The object of bench/objects.ts, and a process that increments it: `objects-process.ts URL NAME CALLS TTL_MS`. */
export const counter = object("counter", {
  initial: () => 0,
  handlers: {
    increment: async (tape, self) => {
      const next = await tape.step("add", () => self.state + 1);
      await self.set(next);
      return next;
    },
  },
});

if (import.meta.main) {
  const [url = "", name = "", calls = "0", ttlMs = "0"] = process.argv.slice(2);
  const runner = createRunner({ workflows: [], objects: [counter] });
  const app = await Tape.open({ store: url, runner, leaseTtl: Number(ttlMs), log: "silent" });
  for (let n = 0; n < Number(calls); n++) {
    // The id names the increment: a process that was killed repeats its calls, and each of them counts once.
    for (let done = false; !done; ) {
      try {
        await app.object(counter, "hits", { id: `${name}-${n}` }).increment();
        done = true;
      } catch (error) {
        if (!isTapeError(error) || error.retry === "no") throw error;
      }
    }
    process.send?.(n);
  }
  await app.close();
  process.disconnect?.();
}
