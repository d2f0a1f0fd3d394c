import { everyTenant, type Quota } from "../../model/quota.ts";
import type { AdminReadOps, ApiToken, AuditEntry, ListOps, Page, ReadOps } from "../contract/store.ts";
import { pageOf } from "../page.ts";
import type { Answers, Router } from "./router.ts";
import type { Shard } from "./shard.ts";
import { openVector, sealVector } from "./vector.ts";

/** Pages of lists when the caller names no size. */
const usualPage = 100;

/** The shard that has an API token; undefined: none has it. Fails while a shard that may have it cannot be reached. */
export async function tokenPlace(
  router: Router,
  id: string,
): Promise<{ readonly shard: Shard; readonly token: ApiToken } | undefined> {
  const { found, missing } = await router.all((store) => store.read.token(id));
  for (const { shard, value } of found) if (value !== undefined) return { shard, token: value };
  if (missing.length > 0) throw router.unreachable(missing);
  return undefined;
}

type MergedReads = Pick<AdminReadOps, "token" | "tokens" | "quotas" | "settings"> &
  Pick<ListOps, "audit"> &
  Pick<ReadOps, "now" | "streamAccess">;

/** Reads that concern all tenants: the shards' own lists, merged into one page. */
export function mergedAdminReads(router: Router): MergedReads {
  return {
    token: async (id) => (await tokenPlace(router, id))?.token,
    async tokens(tenant, page = {}) {
      if (tenant !== undefined) return router.read(tenant, (store) => store.read.tokens(tenant, page));
      return mergedTokens(router, page);
    },
    async quotas(page = {}) {
      const { limit = usualPage } = page;
      const answers = await router.all((store) => store.read.quotas(page));
      const rows = rowsOf(answers).toSorted((a, b) => (a.tenant < b.tenant ? -1 : 1));
      return cut(withOneDefault(rows), limit, answers);
    },
    async settings() {
      const { found, missing } = await router.all((store) => store.read.settings());
      const [first] = found;
      return {
        schema: Math.min(...found.map(({ value }) => value.schema)),
        epoch: Math.max(...found.map(({ value }) => value.epoch)),
        durable: found.every(({ value }) => value.durable),
        facts: {
          ...first!.value.facts,
          shards: router.shards.map(({ name }) => name).join(", "),
          ...(missing.length > 0 && { "shards missing": missing.join(", ") }),
        },
      };
    },
    async audit(tenant, page = {}) {
      if (tenant !== undefined) return router.read(tenant, (store) => store.read.audit(tenant, page));
      return mergedAudit(router, page);
    },
    now: () => router.any((store) => store.read.now()),
    async streamAccess(token) {
      const { found, missing } = await router.all((store) => store.read.streamAccess(token));
      const access = found.find(({ value }) => value !== undefined)?.value;
      if (access === undefined && missing.length > 0) throw router.unreachable(missing);
      return access;
    },
  };
}

/** Every shard has a row for the default; the page has one. */
function withOneDefault(rows: readonly Quota[]): Quota[] {
  const first = rows.find(({ tenant }) => tenant === everyTenant);
  return rows.filter((row) => row.tenant !== everyTenant || row === first);
}

async function mergedTokens(
  router: Router,
  { above, limit = usualPage }: { above?: string; limit?: number },
): Promise<Page<ApiToken>> {
  const last = above === undefined ? undefined : await tokenPlace(router, above);
  if (above !== undefined && last === undefined) return pageOf<ApiToken>([], false);
  // A shard without the last token has its own place in the list: its first tokens after that one.
  const answers = await router.all(async (store, shard) => {
    if (last === undefined || shard === last.shard)
      return store.read.tokens(undefined, { ...(above && { above }), limit });
    let from: string | undefined;
    for (;;) {
      const page = await store.read.tokens(undefined, { ...(from !== undefined && { above: from }), limit });
      const later = page.filter((token) => isAfter(token, last.token));
      if (later.length > 0 || page.more !== true) return pageOf(later, page.more === true);
      from = page.at(-1)!.id;
    }
  });
  const rows = rowsOf(answers).toSorted((a, b) => (isAfter(a, b) ? 1 : -1));
  return cut(rows, limit, answers);
}

const isAfter = (a: ApiToken, b: ApiToken): boolean =>
  a.createdAt === b.createdAt ? a.id > b.id : a.createdAt > b.createdAt;

async function mergedAudit(
  router: Router,
  { before, limit = usualPage }: { before?: string; limit?: number },
): Promise<AuditEntry[]> {
  const place = openVector(before, router, 0);
  const { found } = await router.all((store, shard) => {
    const own = place[shard.number];
    return store.read.audit(undefined, { limit, ...(own !== undefined && { before: own }) });
  });
  const rows = found
    .flatMap(({ shard, value }) => value.map((entry) => ({ shard, entry })))
    .toSorted(
      (a, b) => b.entry.at - a.entry.at || (a.shard === b.shard ? Number(b.entry.cursor) - Number(a.entry.cursor) : 0),
    );
  const passed = [...place];
  return rows.slice(0, limit).map(({ shard, entry }) => {
    passed[shard.number] = entry.cursor;
    return { ...entry, cursor: sealVector(passed, router, 0) };
  });
}

const rowsOf = <T>({ found }: Answers<readonly T[]>): T[] => found.flatMap(({ value }) => value);

function cut<T>(rows: readonly T[], limit: number, { found, missing }: Answers<Page<T>>): Page<T> {
  const more = rows.length > limit || found.some(({ value }) => value.more === true);
  return withMissing(pageOf(rows.slice(0, limit), more), missing);
}

/** Names the shards whose rows the page lacks. Not enumerable, like `more`. */
export function withMissing<T>(page: Page<T>, missing: readonly string[]): Page<T> {
  if (missing.length > 0) Object.defineProperty(page, "missing", { value: missing });
  return page;
}
