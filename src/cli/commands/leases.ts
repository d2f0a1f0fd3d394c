import { defined } from "../../base/defined.ts";
import type { Leases } from "../../host/leases.ts";
import { TapeError } from "../../model/errors.ts";
import type { LeaseView } from "../../model/lease.ts";
import type { Store } from "../../store/contract/store.ts";
import { withHolders } from "../../store/read-all.ts";
import { operatorOf, operatorOptions, outputOption, storeOptions, wholeOf, withApp } from "../app.ts";
import { type Command, type Invocation, UsageError } from "../command.ts";
import { type Column, lasting, printJson, printRows, wantsJson } from "../output.ts";
import { termColumns } from "./inspect.ts";

const nameArgument = { name: "lease", help: "run id or lease name" } as const;

const columns: readonly Column<LeaseView>[] = [
  { title: "LEASE", of: ({ name, journal }) => name ?? `item ${journal}` },
  { title: "KIND", of: ({ kind }) => kind },
  { title: "STATE", of: ({ state, paused }) => (paused ? `${state}, paused` : state) },
  { title: "TOKEN", right: true, of: ({ token }) => String(token) },
  { title: "HOLDER", of: ({ label }) => label ?? "" },
  { title: "REACTOR", of: ({ reactor }) => reactor ?? "" },
  { title: "HELD", right: true, of: ({ heldMs, owner }) => (owner === null ? "" : lasting(heldMs)) },
  { title: "EXPIRES IN", right: true, of: ({ remainingMs, owner }) => (owner === null ? "" : lasting(remainingMs)) },
  { title: "PROGRESS", right: true, of: (row) => (row.owner === null ? "" : `${lasting(row.progressAgoMs)} ago`) },
  { title: "NOTE", of: ({ progressNote }) => progressNote ?? "" },
];

const ls: Command = {
  name: "lease ls",
  summary: "lists leases: holder, remaining time, last progress",
  options: {
    all: { help: "include free leases" },
    named: { help: "only named leases, such as singletons, by name" },
    prefix: { value: "TEXT", help: "with --named: only names that start with this" },
    limit: { value: "N", help: "maximum number of rows" },
    ...storeOptions,
    ...outputOption,
  },
  run: (invocation) =>
    withApp(invocation, async ({ app }) => {
      const found = await leasesFor(invocation, app.leases);
      printRows(invocation, found, columns, invocation.given("all") ? "no leases" : "no leases held");
      return 0;
    }),
};

/** Named leases come first: however many runs are held, the list shows who leads. */
async function leasesFor(invocation: Invocation, leases: Leases): Promise<LeaseView[]> {
  const limit = wholeOf("--limit", invocation.text("limit"));
  const prefix = invocation.text("prefix");
  const page = { ...(!invocation.given("all") && { held: true }), ...defined({ limit }) };
  const named = await leases.list({ kind: "name", ...page, ...defined({ prefix }) });
  if (invocation.given("named") || prefix !== undefined) return named;
  return withHolders(named, await leases.list(page)).slice(0, limit);
}

const explain: Command = {
  name: "lease explain",
  summary: "explains who holds a lease and why",
  arguments: [nameArgument],
  options: { ...storeOptions, ...outputOption },
  run: (invocation) =>
    withApp(invocation, async ({ app, store, tenant }) => {
      const target = await targetOf(store, tenant, invocation);
      const view = await app.leases.explain(target);
      if (view === undefined) throw notFound(invocation);
      if (wantsJson(invocation)) printJson(invocation, view);
      else invocation.screen.line(view.text);
      return 0;
    }),
};

const history: Command = {
  name: "lease history",
  summary: "prints the term history of a lease",
  arguments: [nameArgument],
  options: { ...storeOptions, ...outputOption },
  run: (invocation) =>
    withApp(invocation, async ({ store, tenant }) => {
      const terms = await store.read.terms(tenant, await targetOf(store, tenant, invocation));
      printRows(invocation, terms, termColumns, "never held");
      return 0;
    }),
};

function preemptCommand(name: "takeover" | "release", summary: string): Command {
  return {
    name: `lease ${name}`,
    summary,
    arguments: [nameArgument],
    options: { ...operatorOptions, ...storeOptions },
    run: (invocation) => {
      const audit = operatorOf(invocation);
      return withApp(invocation, async ({ app, store, tenant }) => {
        const target = await targetOf(store, tenant, invocation);
        await app.leases.preempt(target, { ...audit, onlyStale: name === "release" });
        invocation.screen.line(`${invocation.arguments.lease}: holder fenced, lease free`);
        return 0;
      });
    },
  };
}

/** A run and a named lease may have the same name; the run comes first. */
async function targetOf(
  store: Store,
  tenant: string,
  invocation: Invocation,
): Promise<{ run: string } | { name: string }> {
  const name = invocation.arguments.lease!;
  if ((await store.read.lease(tenant, { run: name })) !== undefined) return { run: name };
  if ((await store.read.lease(tenant, { name })) !== undefined) return { name };
  throw notFound(invocation);
}

function notFound(invocation: Invocation): TapeError {
  const { lease } = invocation.arguments;
  return new TapeError("TAPE_LEASE_NOT_FOUND", `no run and no lease is named ${lease}`, { name: lease });
}

const reshard: Command = {
  name: "singleton reshard",
  summary: "changes the number of shards: fences and pauses the shards of other numbers",
  arguments: [{ name: "singleton", help: "name of the singleton" }],
  options: { to: { value: "N", help: "the new number of shards" }, ...operatorOptions, ...storeOptions },
  run: (invocation) => {
    const audit = operatorOf(invocation);
    const to = wholeOf("--to", invocation.text("to"));
    if (to === undefined) throw new UsageError("--to is required: the new number of shards");
    return withApp(invocation, async ({ app }) => {
      const name = invocation.arguments.singleton!;
      const { paused, resumed } = await app.leases.reshard(name, { to, ...audit });
      const text = `${paused.length} shards fenced and paused, ${resumed.length} resumed`;
      invocation.screen.line(`${name}: ${text}; start processes with ${to} shards`);
      return 0;
    });
  },
};

export const leaseCommands: readonly Command[] = [
  reshard,
  ls,
  explain,
  history,
  preemptCommand("takeover", "fences the current holder and frees the lease"),
  preemptCommand("release", "frees a lease whose holder has expired"),
];
