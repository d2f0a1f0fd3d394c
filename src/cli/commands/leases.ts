import { TapeError } from "../../model/errors.ts";
import type { LeaseView } from "../../model/lease.ts";
import type { Store } from "../../store/contract/store.ts";
import { operatorOf, operatorOptions, outputOption, storeOptions, wholeOf, withApp } from "../app.ts";
import type { Command, Invocation } from "../command.ts";
import { type Column, lasting, printJson, printRows, wantsJson } from "../output.ts";
import { termColumns } from "./inspect.ts";

const nameArgument = { name: "lease", help: "a run's id, or the name of a lease" } as const;

const columns: readonly Column<LeaseView>[] = [
  { title: "LEASE", of: ({ name, journal }) => name ?? `item ${journal}` },
  { title: "KIND", of: ({ kind }) => kind },
  { title: "STATE", of: ({ state, paused }) => (paused ? `${state}, paused` : state) },
  { title: "TOKEN", right: true, of: ({ token }) => String(token) },
  { title: "HOLDER", of: ({ label }) => label ?? "" },
  { title: "REACTOR", of: ({ reactor }) => reactor ?? "" },
  { title: "HELD", right: true, of: ({ heldMs, owner }) => (owner === null ? "" : lasting(heldMs)) },
  { title: "LEFT", right: true, of: ({ remainingMs, owner }) => (owner === null ? "" : lasting(remainingMs)) },
  { title: "PROGRESS", right: true, of: (row) => (row.owner === null ? "" : `${lasting(row.progressAgoMs)} ago`) },
  { title: "NOTE", of: ({ progressNote }) => progressNote ?? "" },
];

const ls: Command = {
  name: "lease ls",
  summary: "lists leases: who holds what, for how long, and when it last moved on",
  options: {
    all: { help: "those too that nobody holds" },
    limit: { value: "N", help: "at most so many" },
    ...storeOptions,
    ...outputOption,
  },
  run: (invocation) =>
    withApp(invocation, async ({ app }) => {
      const limit = wholeOf("--limit", invocation.text("limit"));
      const found = await app.leases.list({
        ...(invocation.given("all") ? {} : { held: true }),
        ...(limit === undefined ? {} : { limit }),
      });
      printRows(invocation, found, columns, invocation.given("all") ? "there are no leases" : "nobody holds a lease");
      return 0;
    }),
};

const explain: Command = {
  name: "lease explain",
  summary: "says in words who holds a lease, since when, why, and what may happen next",
  arguments: [nameArgument],
  options: { ...storeOptions, ...outputOption },
  run: (invocation) =>
    withApp(invocation, async ({ app, store, tenant }) => {
      const target = await targetOf(store, tenant, invocation);
      const view = await app.leases.explain(target);
      if (view === undefined) throw unknown(invocation);
      if (wantsJson(invocation)) printJson(invocation, view);
      else invocation.screen.line(view.text);
      return 0;
    }),
};

const history: Command = {
  name: "lease history",
  summary: "the ledger of a lease: every term, with why it began and ended",
  arguments: [nameArgument],
  options: { ...storeOptions, ...outputOption },
  run: (invocation) =>
    withApp(invocation, async ({ store, tenant }) => {
      const terms = await store.read.terms(tenant, await targetOf(store, tenant, invocation));
      printRows(invocation, terms, termColumns, "it was never held");
      return 0;
    }),
};

function taking(name: "takeover" | "release", summary: string): Command {
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
        invocation.screen.line(`${invocation.arguments.lease}: its holder is fenced, and the lease is free`);
        return 0;
      });
    },
  };
}

/** Runs and names do not share their leases: a run of that id comes first. */
async function targetOf(
  store: Store,
  tenant: string,
  invocation: Invocation,
): Promise<{ run: string } | { name: string }> {
  const said = invocation.arguments.lease!;
  if ((await store.read.lease(tenant, { run: said })) !== undefined) return { run: said };
  if ((await store.read.lease(tenant, { name: said })) !== undefined) return { name: said };
  throw unknown(invocation);
}

function unknown(invocation: Invocation): TapeError {
  const { lease } = invocation.arguments;
  return new TapeError("TAPE_LEASE_NOT_FOUND", `there is no run and no lease called ${lease}`, { name: lease });
}

export const leaseCommands: readonly Command[] = [
  ls,
  explain,
  history,
  taking("takeover", "fences whoever holds a lease, alive or not, and sets it free"),
  taking("release", "sets a lease free whose holder's time has run out"),
];
