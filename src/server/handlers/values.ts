import { TapeError } from "../../model/errors.ts";
import { mayDo } from "../../protocol/route.ts";
import type { values } from "../../protocol/routes/values.ts";
import { auditInfoOf, type Caller, type HandlersOf, listed, type ServerDeps } from "../handler-types.ts";
import { follow, streamPage } from "../streams.ts";

export function valueHandlers({ store, clock }: ServerDeps): HandlersOf<typeof values> {
  const { read } = store;
  return {
    async "values.list"({ query: { prefix = "", limit, above, order } }, { tenant }) {
      return listed("values", await read.values(tenant, prefix, limit, above, order));
    },
    async "values.get"({ params: { key } }, { tenant }) {
      return { value: await read.value(tenant, key) };
    },
    async "values.put"({ params: { key }, body }, who) {
      assertMayWrite(who, key);
      return who.intake.putValue(who.tenant, key, body.value, body.when);
    },
    async "values.delete"({ params: { key }, query }, who) {
      assertMayWrite(who, key);
      return who.intake.deleteValue(who.tenant, key, query.version);
    },
    async "values.history"({ params: { key }, query: { after, limit } }, { tenant }) {
      return listed("values", await read.valueHistory(tenant, key, after, limit));
    },
    async "values.watch"({ params: { key }, query }, { tenant, signal }) {
      const at = (await read.value(tenant, key))?.version ?? 0;
      let { after } = query;
      if (after > at) {
        throw new TapeError("TAPE_BAD_INPUT", `${key} has version ${at}, not yet ${after}`, { field: "after" });
      }
      await read.valueHistory(tenant, key, after, 1); // rejects a version that is no longer kept, before the first line
      return follow({
        ...{ store, clock, signal },
        concerns: (wake) => wake.of === "any" || (wake.of === "value" && wake.tenant === tenant && wake.key === key),
        page: async () => {
          const versions = await read.valueHistory(tenant, key, after, streamPage);
          after = versions.at(-1)?.version ?? after;
          return versions;
        },
      });
    },
    async "schedules.list"({ query }, { tenant }) {
      return listed("schedules", await read.schedules(tenant, query));
    },
    "schedules.put": ({ params: { id }, body: { seen, change, ...row } }, who) => {
      const audit = change && { ...auditInfoOf(who, change), changed: change.changed };
      return who.intake.putSchedule(who.tenant, { id, ...row }, seen, audit);
    },
    async "schedules.delete"({ params: { id } }, who) {
      return { deleted: await who.intake.deleteSchedule(who.tenant, id) };
    },
  };
}

/** Keys that Tape uses itself: results of recorded calls, and the state of `durable-tape dev`. */
const reserved = ["tape.call/", "tape-dev/"];

/** A starter of runs must not forge the result of a recorded call: only a worker may write it. */
function assertMayWrite({ role }: Caller, key: string): void {
  const prefix = reserved.find((start) => key.startsWith(start));
  if (prefix === undefined || mayDo(role, "worker")) return;
  throw new TapeError(
    "TAPE_FORBIDDEN",
    `keys that start with ${prefix} are reserved for Tape: writing one needs the role worker`,
    {
      ...{ needs: "worker", prefix },
    },
  );
}
