import type { Bug } from "../bug.ts";

export const neighbourBugs: readonly Bug[] = [
  {
    name: "quota use not counted",
    planted: "a run admitted under a quota is not added to its use, so the next one finds the same room",
    why: "Count, compare, insert: the count is cached for one second, and every request within it compares with the same number.",
    patches: [
      {
        file: "store/sql/plans/quotas.ts",
        find: "{ tenant, used: room.used + 1, fresh: room.fresh }",
        replace: "{ tenant, used: room.used, fresh: room.fresh }",
      },
    ],
    detectedBy: ["quotasHold"],
    kind: "with neighbours",
    within: 500,
  },
  {
    name: "quota never freed",
    planted: "runs are counted once, and from then on only new runs change the count",
    why: "A counter that is incremented where things start and never decremented where they end.",
    patches: [
      {
        file: "store/sql/plans/quotas.ts",
        find: "const old = countedAt === 0 || Math.abs(Number(row.at) - countedAt) >= reuseMs;",
        replace: "const old = countedAt === 0 && reuseMs > 0;",
      },
    ],
    detectedBy: ["quotasLeaveRoom", "quotasHold"],
    kind: "with neighbours",
    within: 200,
  },
  {
    name: "children outside the quota",
    planted: "root runs count towards a quota, and their children do not",
    why: "The limit is checked where runs are started, and children are started elsewhere: one root may fill the store.",
    patches: [
      {
        file: "store/sqlite/sql/runs.sql",
        find: "x.root, :at, coalesce(x.counted, 0)",
        replace: "x.root, :at, coalesce(x.counted, 0) * 0",
      },
    ],
    detectedBy: ["quotasAreCounted", "quotasHold"],
    kind: "with neighbours",
    within: 200,
  },
  {
    name: "pruned but still counted",
    planted: "the bytes of pruned runs remain in their tenant's total",
    why: "Usage is added where records are written, and the deletion does not subtract it.",
    patches: [
      {
        file: "store/sqlite/sql/prune.sql",
        find: "update quotas set bytes_used = max(0, bytes_used - coalesce(",
        replace: "update quotas set bytes_used = max(bytes_used, bytes_used - coalesce(",
      },
    ],
    detectedBy: ["quotasAreCounted"],
    kind: "with neighbours",
    within: 500,
  },
  {
    name: "inclusive cursor",
    planted: "a page of the audit log starts with the last row of the previous page",
    why: "Inclusive or exclusive: the first page is right either way, and the tests have one page.",
    patches: [
      {
        file: "store/sqlite/sql/service.sql",
        find: "where a.tenant = :tenant and a.n < :before",
        replace: "where a.tenant = :tenant and a.n <= :before",
      },
    ],
    detectedBy: ["walksAreWhole"],
    kind: "with neighbours",
    within: 500,
  },
  {
    name: "cursor one row too far",
    planted: "reading values page by page skips one key between pages",
    why: "The cursor names the first row of the next page, and the query returns what comes after it.",
    patches: [
      {
        file: "store/sqlite/sql/values.sql",
        find: "and key > :above and value is not null\norder by key limit :limit;",
        replace: "and key > :above and value is not null\norder by key limit :limit offset (:above <> '');",
      },
    ],
    detectedBy: ["walksAreWhole"],
    kind: "with neighbours",
    within: 500,
  },
  {
    name: "feed that ignores the tenant",
    planted: "following the feed of one tenant returns the records of all tenants",
    why: "The feed is one list for the whole store, and the tenant is a filter that is easy to forget.",
    patches: [
      {
        file: "store/sqlite/sql/journals.sql",
        find: "and l.tenant = :tenant))",
        replace: "and (l.tenant = :tenant or true)))",
      },
    ],
    detectedBy: ["walksAreWhole"],
    kind: "with neighbours",
    within: 200,
  },
  {
    name: "frontier of a newer snapshot",
    planted:
      "a follower of the feed whose page is empty continues at the end of the feed, which it reads in a second call",
    why: "The end is always ahead of an empty page, so skipping to it looks free: what commits between the calls is lost.",
    patches: [
      {
        file: "store/follow-feed.ts",
        find: "cursor = page.cursor;",
        replace: "cursor = page.records.length > 0 ? page.cursor : await store.read.frontier(tenant);",
      },
    ],
    detectedBy: ["walksAreWhole"],
    kind: "with neighbours",
    within: 500,
  },
  {
    name: "deleted but still in the history",
    planted: "a deleted value can be read from its history",
    why: "The row is gone, the request to forget is answered, and the log still has everything.",
    patches: [
      {
        file: "model/projection.ts",
        find: "const keptVersions = value.value === null ? 1 : keepVersions;",
        replace: "const keptVersions = keepVersions;",
      },
    ],
    detectedBy: ["deletionsErase"],
    kind: "with neighbours",
    within: 200,
  },
  {
    name: "erased for another tenant",
    planted: "erasing a value finds its history by key alone, and another tenant has the same key",
    why: "Keys are unique with one tenant.",
    patches: [
      {
        file: "store/sqlite/sql/values.sql",
        find: "  and tenant = coalesce(",
        replace: "  and '' <> coalesce(",
      },
    ],
    detectedBy: ["deletionsErase", "watchersSeeAll"],
    kind: "with neighbours",
    within: 500,
  },
  {
    name: "new token admitted beside old work",
    planted: "a request fence admits a newer token while work under an older one is still running",
    why: "The token is compared when the request arrives; what that request writes later is compared with nothing.",
    patches: [
      {
        file: "guard/request-fence.ts",
        find: "Promise.allSettled([...scope.running.keys(), scope.ready])",
        replace: "Promise.allSettled([scope.ready])",
      },
    ],
    detectedBy: ["requestFencesKeepOrder"],
    kind: "with a singleton",
    within: 500,
  },
  {
    name: "request fence that forgets",
    planted: "a request fence remembers the highest token only while a request is inside",
    why: "The map has an entry for each name in use, and deletes it after the last request to stay small.",
    patches: [
      {
        file: "guard/request-fence.ts",
        find: "      if (highest > scope.current) scope.current = highest;\n",
        replace: "      if (highest < 0n) scope.current = highest;\n",
      },
    ],
    detectedBy: ["requestFencesKeepOrder"],
    kind: "with a singleton",
    within: 500,
  },
];
