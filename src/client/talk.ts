import { defined } from "../base/defined.ts";
import type { TalkReadOps, TalkWriteOps } from "../store/contract/store.ts";
import { pageOf } from "../store/page.ts";
import { unknownCallback } from "../store/validate/arguments.ts";
import { isOwn, type RemoteContext } from "./context.ts";

export function remoteTalkReads(deps: RemoteContext): TalkReadOps {
  const { caller } = deps;
  return {
    async published(tenant, id, { name, above, limit } = {}) {
      if (!isOwn(deps, tenant)) return [];
      const query = defined({ name, above, limit });
      const { published, more = false } = await caller.call("runs.published", { params: { id }, query });
      return pageOf(published, more);
    },
    async reply(tenant, id, n) {
      if (!isOwn(deps, tenant)) return undefined;
      return (await caller.call("runs.reply", { params: { id, n } })).reply;
    },
  };
}

export function remoteTalkWrites(deps: RemoteContext, key: string | undefined): TalkWriteOps {
  return {
    async deliver(tenant, token, { value, raw }) {
      if (!isOwn(deps, tenant)) throw unknownCallback();
      const headers = Object.entries(raw?.headers ?? {}).map(([name, held]) => ({ name, value: held }));
      const body = { ...defined({ value }), ...(raw && { raw: { body: raw.body, headers } }) };
      return deps.caller.call("store.deliver", { body: { token, body } }, { key });
    },
  };
}
