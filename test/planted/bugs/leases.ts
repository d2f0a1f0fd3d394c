import type { Bug, Patch } from "../bug.ts";

/** Compares neither token nor head: the record is appended after the current head. */
const noFence: readonly Patch[] = [
  {
    file: "store/sqlite/backend.ts",
    find: "if (entry.plain)\n",
    replace: "if (fence === undefined)\n",
  },
  {
    file: "store/sql/plans/append.ts",
    find: '  const { after, records } = entry;\n  const sql = context.locksRelease && entry.releases ? "fence.release" : "fence";\n  const row = yield* queryRow(sql, { tenant, journal, token, nonce, after });\n',
    replace:
      '  const { records } = entry;\n  const after = Number((yield* queryRow("journal.head", { journal }))?.head);\n  const row = yield* queryRow("lease.read", { journal });\n',
  },
  {
    file: "store/sql/plans/append.ts",
    find: "const { tenant, journal, token, nonce } = fence;\n  const { records } = entry;",
    replace: "const { journal, token } = fence;\n  const { records } = entry;",
  },
];

/** Reads the lease in a call of its own, before the call that writes. */
const readFirst = (store: string, tenant: string, fence: string): string =>
  `if ((await ${store}.read.lease(${tenant}, { journal: ${fence}.journal }))?.token !== ${fence}.token) throw Object.assign(new Error("replaced"), { code: "TAPE_FENCED" });`;

export const leaseBugs: readonly Bug[] = [
  {
    name: "no fence",
    planted: "an append compares neither token nor head, so a replaced owner still writes",
    why: "Most job queues accept a completion from an owner that was replaced long ago: the row has no token to compare.",
    patches: noFence,
    detectedBy: ["tokensIncrease", "projectionMatches", "oneVerdict", "oneResult", "oneStartOneEnd"],
    kind: "with a long pause",
    within: 200,
  },
  {
    name: "fence outside the transaction",
    planted: "the holder reads its lease, finds its own token, and then writes in a second call",
    why: "Check, then act: between the two, the process may be paused long enough to be replaced.",
    patches: [
      ...noFence,
      {
        file: "engine/drive/drive.ts",
        find: "      appender: store.fenced,\n",
        replace: `      appender: {
        append: async (fence, entry) => {
          ${readFirst("store", "tenant", "fence")}
          return store.fenced.append(fence, entry);
        },
      },\n`,
      },
      {
        file: "lease/release-journal.ts",
        find: "      await store.fenced.append(",
        replace: `      ${readFirst("store", "tenant", "lease.fence")}
      await store.fenced.append(`,
      },
      {
        file: "engine/item/item.ts",
        find: "    const { head } = await this.#deps.store.fenced.append(",
        replace: `    ${readFirst("this.#deps.store", "this.#deps.tenant", "this.lease.fence")}
    const { head } = await this.#deps.store.fenced.append(`,
      },
    ],
    detectedBy: ["tokensIncrease", "projectionMatches", "oneVerdict", "oneResult", "oneStartOneEnd"],
    kind: "with a long pause",
    within: 500,
  },
  {
    name: "owner instead of token",
    planted: "a process that takes over from itself continues under its old token",
    why: "A lock that identifies its owner by name admits two threads, or two incarnations, of one owner at the same time.",
    patches: [
      {
        file: "store/sqlite/sql/leases.sql",
        find: "token = max(token, (select token_floor from meta)) + 1",
        replace: "token = max(token, (select token_floor from meta)) + (owner is null or owner <> :owner)",
      },
    ],
    detectedBy: ["tokensIncrease"],
    within: 50,
  },
  {
    name: "release deletes the lease row",
    planted: "releasing a lease restarts its tokens",
    why: "A lock row that is deleted on release starts again at version 1, so old tokens become valid again.",
    patches: [
      {
        file: "store/sqlite/sql/leases.sql",
        find: "update leases set token = token + 1,",
        replace: "update leases set token = 0,",
      },
    ],
    detectedBy: ["tokensIncrease"],
    within: 50,
  },
  {
    name: "takeover before expiry",
    planted: "a lease may be taken over after two thirds of its TTL, while its holder trusts all of it",
    why: "Two programs with two constants for one promise: the new holder and the old one count differently.",
    patches: [
      {
        file: "store/sqlite/sql/leases.sql",
        find: "(l.expires_at <= :now or l.doomed = 1)",
        replace: "(l.expires_at - l.ttl_ms / 3 <= :now or l.doomed = 1)",
      },
      {
        file: "store/lease-rules.ts",
        find: "const expired = owner !== null && (lease.expiresAt <= now || lease.doomed);",
        replace: "const expired = owner !== null && (lease.expiresAt - lease.ttlMs / 3 <= now || lease.doomed);",
      },
    ],
    detectedBy: ["takeoversHaveReasons", "takeoversWaitForExpiry", "fencedOwnersStayQuiet"],
    within: 200,
  },
  {
    name: "stale owner's heartbeat extends the lease",
    planted: "a renewal names the lease and not the term, so a former holder keeps it alive",
    why: "A heartbeat that compared only the name let two leaders renew each other's lease for 19 days.",
    patches: [
      {
        file: "store/sqlite/sql/leases.sql",
        find: "and token = :token and nonce = :nonce and doomed = 0",
        replace: "and (:token = :token) and (:nonce = :nonce) and doomed = 0",
      },
    ],
    detectedBy: ["onlyCurrentTermRenews"],
    within: 50,
  },
  {
    name: "wall clock in the lease",
    planted: "the holder's wall clock sets the expiry, and every other process compares it with its own",
    why: "The expiry is a date in a row, and every host has its own clock: a fast one takes a lease that is still held.",
    patches: [
      {
        file: "store/sqlite/open.ts",
        find: "now: Math.floor(clock.mono()),",
        replace: "now: Math.floor(clock.wall()),",
      },
      {
        file: "store/sqlite/sql/leases.sql",
        find: "(l.expires_at <= :now or l.doomed = 1)",
        replace: "(:now = :now)",
      },
      {
        file: "store/sqlite/sql/leases.sql",
        find: "expires_at = :now + :ttl_ms,",
        replace: "expires_at = coalesce(:wall_ms, :now) + :ttl_ms,",
      },
      {
        file: "store/sqlite/sql/leases.sql",
        find: "  :ttl_ms, :now + :ttl_ms, :now, :now,",
        replace: "  :ttl_ms, coalesce(:wall_ms, :now) + :ttl_ms, :now, :now,",
      },
      {
        file: "store/sqlite/sql/leases.sql",
        find: "update leases set expires_at = :now + ttl_ms,",
        replace: "update leases set expires_at = expires_at + :now - renewed_at,",
      },
      {
        file: "engine/run-driver.ts",
        find: '{ ...keeper.claimant("agent"),',
        replace: '{ ...keeper.claimant("agent"), wallMs: clock.wall(),',
      },
      {
        file: "engine/run-driver.ts",
        find: 'claimant: keeper.claimant("recovery"),',
        replace: 'claimant: { ...keeper.claimant("recovery"), wallMs: clock.wall() },',
      },
      {
        file: "reactor/item-reactor.ts",
        find: "const claimant = { ...keeper.claimant(name),",
        replace: "const claimant = { ...keeper.claimant(name), wallMs: deps.clock.wall(),",
      },
      {
        file: "store/sql/plans/claim.ts",
        find: "  const now = Number(row.now);\n  const { claimant, nonce } = request;",
        replace:
          "  const { claimant, nonce } = request;\n  const { wallMs } = claimant as { readonly wallMs?: number };\n  const now = wallMs ?? Number(row.now);",
      },
    ],
    detectedBy: ["takeoversWaitForExpiry", "fencedOwnersStayQuiet"],
    kind: "with wrong clocks",
    within: 200,
  },
  {
    name: "holder without its own deadline",
    planted: "a holder trusts its lease until the store rejects it, and checks no clock before an effect",
    why: "A process that was paused for a minute continues where it was: no message has reached it that it was replaced.",
    patches: [
      {
        file: "lease/lease.ts",
        find: 'if (this.#belief === "lost" || this.#elapsedMs() < this.timings.trustMs) return;',
        replace: "if (this.#belief !== undefined) return;",
      },
      {
        file: "engine/effects/send-window.ts",
        find: "if (elapsedSince(authorised, clock) <= startWindowMs(lease)) return;",
        replace: "if (elapsedSince(authorised, clock) >= 0) return;",
      },
    ],
    detectedBy: ["fencedOwnersStayQuiet", "heldMeansHeld", "nonIdempotentOnce", "verdictMatchesWorld"],
    kind: "with a long pause",
    within: 200,
  },
];
