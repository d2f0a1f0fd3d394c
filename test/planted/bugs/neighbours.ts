import type { Bug } from "../bug.ts";

export const neighbourBugs: readonly Bug[] = [
  {
    name: "room that is not taken",
    planted: "who is let in under a quota is not added to what is used; the next one finds the same room",
    why: "Count, compare, insert: the count is kept for a second, and all who come within it are compared with the same one.",
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
    name: "room that never comes back",
    planted: "runs are counted once, and from then on only those that begin are",
    why: "A counter that is raised where things begin, and that nobody lowers where they end.",
    patches: [
      {
        file: "store/sql/plans/quotas.ts",
        find: "const old = countedAt === 0 || Math.abs(Number(row.at) - countedAt) >= livesMs;",
        replace: "const old = countedAt === 0 && livesMs > 0;",
      },
    ],
    detectedBy: ["quotasLeaveRoom", "quotasHold"],
    kind: "with neighbours",
    within: 200,
  },
  {
    name: "children for nothing",
    planted: "runs count under a quota, and their children do not",
    why: "The limit stands where runs are started, and children are started elsewhere: one root may fill the store.",
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
    name: "pruned and still counted",
    planted: "the bytes of runs that are pruned stay in their tenant's sum",
    why: "Usage is added up as it is written; whoever writes the deletion has forgotten the sum.",
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
    name: "cursor that stands on its row",
    planted: "a page of the audit begins with the last row of the page before it",
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
    name: "cursor in pages",
    planted: "who reads values page by page goes on one key too far",
    why: "The cursor names the first row of the next page, and the query asks for what is behind it.",
    patches: [
      {
        file: "store/sqlite/sql/values.sql",
        find: "and key > :above\norder by key limit :limit",
        replace: "and key > :above\norder by key limit :limit offset (:above <> '')",
      },
    ],
    detectedBy: ["walksAreWhole"],
    kind: "with neighbours",
    within: 500,
  },
  {
    name: "feed that forgets its tenant",
    planted: "who follows the feed of a tenant is told of all of them",
    why: "The feed is one list for the whole store, and a tenant is a filter on it that somebody has to remember.",
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
    name: "deleted and still in the past",
    planted: "a value that was deleted can be read from its history",
    why: "The row is gone, the request to forget is answered, and the log has everything.",
    patches: [
      {
        file: "model/projection.ts",
        find: "const kept = value.value === null ? 1 : keepVersions;",
        replace: "const kept = keepVersions;",
      },
    ],
    detectedBy: ["deletionsErase"],
    kind: "with neighbours",
    within: 200,
  },
  {
    name: "erased next door",
    planted: "what is erased with a value is looked up by its key alone, and another tenant has the same key",
    why: "Keys are unique where there is one tenant.",
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
    name: "new work beside the old",
    planted: "a service lets a newer token in while the work of an older one still goes on",
    why: "The token is compared when the request comes; what that request still writes is compared with nothing.",
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
    name: "door with a short memory",
    planted: "a service remembers the highest token for as long as somebody is inside",
    why: "The map has an entry for each name that is in use, and is kept small by deleting it after the last one.",
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
