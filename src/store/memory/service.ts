import { changed, none, page, passes, present, row, rows, type Statements } from "./statement.ts";
import { keyOf } from "./table.ts";
import type { AuditRow, ProcessRow } from "./tables.ts";

type Repeat = { readonly tenant: string; readonly key: string };
type Token = { readonly id: string; readonly tenant: string; readonly name: string; readonly role: string };

/** What a server needs besides: answers to repeated calls, credentials, the audit, and who is at work. */
export const service = {
  "idempotency.claim"(t, p: Repeat & { hash: string }, { at }) {
    const { tenant, key, hash } = p;
    if (t.repeats.get(keyOf(tenant, key)) !== undefined) return none;
    t.repeats.insert({ tenant, key, hash, answer: "", at });
    return changed(1);
  },

  "idempotency.answer"(t, p: Repeat & { answer: string }) {
    const { answer } = p;
    t.repeats.update(t.repeats.get(keyOf(p.tenant, p.key))!, { answer });
    return changed(1);
  },

  "idempotency.drop": (t, p: Repeat) => changed(t.repeats.deleteAll(present(t.repeats.get(keyOf(p.tenant, p.key))))),

  "idempotency.find": (t, p: Repeat) => row(t.repeats.get(keyOf(p.tenant, p.key))),

  "idempotency.purge"(t, p: { olderMs: number; limit: number }, { at }) {
    const old = t.repeats.all().filter((repeat) => repeat.at < at - p.olderMs);
    return changed(t.repeats.deleteAll(page(old, p.limit + 1, (repeat) => repeat.at)));
  },

  "token.put"(t, p: Token & { hash: string; inMs: number | null }, { at }) {
    const { id, tenant, name, role, hash, inMs } = p;
    if (t.tokens.get(id) !== undefined) return none;
    const expires_at = inMs === null ? null : at + inMs;
    const blank = { revoked_at: null, used_at: null };
    return row(t.tokens.insert({ id, tenant, name, role, hash, created_at: at, expires_at, ...blank }));
  },

  "token.get": (t, p: { id: string }) => row(t.tokens.get(p.id)),

  "token.list"(t, p: { tenant: string | null; above: string; limit: number }) {
    const ours = t.tokens.all().filter(({ tenant }) => passes(p.tenant, tenant));
    const sorted = page(
      ours,
      Number.POSITIVE_INFINITY,
      ({ created_at }) => created_at,
      ({ id }) => id,
    );
    const after = p.above === "" ? -1 : sorted.findIndex(({ id }) => id === p.above);
    return after < 0 && p.above !== "" ? none : rows(sorted.slice(after + 1, after + 1 + p.limit));
  },

  "token.revoke"(t, p: { id: string; tenant: string | null }, { at }) {
    const token = t.tokens.get(p.id);
    if (token === undefined || !passes(p.tenant, token.tenant) || token.revoked_at !== null) return none;
    return row(t.tokens.update(token, { revoked_at: at }));
  },

  "token.touch"(t, p: { id: string }, { at }) {
    const token = t.tokens.get(p.id);
    if (token === undefined || (token.used_at !== null && token.used_at >= at - 60_000)) return none;
    t.tokens.update(token, { used_at: at });
    return changed(1);
  },

  "process.put"(t, p: Omit<ProcessRow, "at">, { at }) {
    const { tenant, owner, label, body } = p;
    const known = t.processes.get(keyOf(tenant, owner));
    if (known === undefined) t.processes.insert({ tenant, owner, label, at, body });
    else t.processes.update(known, { label, at, body });
    return changed(1);
  },

  "process.drop": (t, p: { tenant: string; owner: string }) =>
    changed(t.processes.deleteAll(present(t.processes.get(keyOf(p.tenant, p.owner))))),

  "process.purge": (t, p: { olderMs: number }, { at }) =>
    changed(t.processes.deleteAll(t.processes.all().filter((one) => one.at < at - p.olderMs))),

  "process.list"(t, p: { tenant: string; olderMs: number; limit: number }, { at }) {
    const lately = t.processes.by.tenant(p.tenant).filter((one) => one.at >= at - p.olderMs);
    const found = page(
      lately,
      p.limit,
      ({ label }) => label,
      ({ owner }) => owner,
    );
    return rows(found.map((one) => ({ ...one, ago_ms: at - one.at })));
  },

  "audit.page"(t, p: { before: number; tenant: string; limit: number }) {
    const found = t.audit.by.tenant(p.tenant).filter(({ n }) => n < p.before);
    return rows(page(found, p.limit, ({ n }) => -n).map((one) => ({ ...one, id: one.n })));
  },

  "audit.all": (t, p: { before: number; limit: number }) =>
    rows(
      page(
        t.audit.all().filter(({ id }) => id < p.before),
        p.limit,
        ({ id }) => -id,
      ),
    ),

  "audit.head"(t, p: { tenant: string }, { at }) {
    const before = t.auditHeads.get(p.tenant) ?? t.auditHeads.insert({ tenant: p.tenant, n: 0, hash: "" });
    const { n, hash } = t.auditHeads.update(before, { n: before.n + 1 });
    return row({ n, hash, at });
  },

  "audit.add"(t, p: Omit<AuditRow, "id" | "at"> & { moment: number }) {
    const { tenant, n, moment: at, journal, subject, body, hash } = p;
    t.audit.insert({ id: t.audit.all().length + 1, tenant, n, at, journal, subject, body, hash });
    return changed(1);
  },

  "audit.seal"(t, p: { tenant: string; hash: string }) {
    t.auditHeads.update(t.auditHeads.get(p.tenant)!, { hash: p.hash });
    return changed(1);
  },

  "audit.subject"(t, p: { journal: number }) {
    const lease = t.leases.get(p.journal);
    if (lease === undefined) return none;
    const [name] = t.names.by.journal(p.journal);
    return row({ subject: t.runs.get(lease.run)?.id ?? name?.name ?? null });
  },
} satisfies Statements;
