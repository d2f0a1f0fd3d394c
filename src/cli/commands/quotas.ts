import { type Quota, type QuotaKind, type QuotaLimits, quotaKinds, unlimited } from "../../model/quota.ts";
import { readList } from "../../store/read-all.ts";
import { operatorOf, operatorOptions, outputOption, storeOptions, withApp } from "../app.ts";
import { type Command, type Invocation, UsageError } from "../command.ts";
import { type Column, printJson, printRows, wantsJson } from "../output.ts";

const tenantArgument = {
  name: "tenant",
  help: "tenant (default: every tenant without quotas of its own)",
  optional: true,
} as const;

const meanings: Readonly<Record<QuotaKind, string>> = {
  runs: "unfinished runs",
  bytes: "bytes in all records of its runs",
  schedules: "schedules",
  streams: "streams open on one server",
};

const quotaText = (quota: Quota, kind: QuotaKind): string => {
  const limit = quota.limits[kind];
  const used = kind === "streams" || quota.tenant === "" ? undefined : quota.used[kind];
  const limitText = limit === null ? "no limit" : String(limit);
  return used === undefined || used === null ? limitText : `${used} of ${limitText}`;
};

const columns: readonly Column<Quota>[] = [
  { title: "TENANT", of: ({ tenant }) => (tenant === "" ? "(all others)" : tenant) },
  ...quotaKinds.map((kind) => ({ title: kind.toUpperCase(), of: (quota: Quota) => quotaText(quota, kind) })),
];

const ls: Command = {
  name: "quota ls",
  summary: "lists quotas of tenants and their usage",
  options: { ...storeOptions, ...outputOption },
  run: (invocation) =>
    withApp(invocation, async ({ store }) => {
      const found = await readList(
        (above) => store.read.quotas({ above }),
        ({ tenant }) => tenant,
      );
      printRows(invocation, found, columns, "no quotas; set one with durable-tape quota set");
      return 0;
    }),
};

function limitOf(invocation: Invocation, kind: QuotaKind): Partial<QuotaLimits> {
  const text = invocation.text(kind);
  if (text === undefined) return {};
  if (text === "default") return { [kind]: null };
  if (text === "none") return { [kind]: unlimited };
  if (!/^\d{1,15}$/.test(text)) throw new UsageError(`--${kind} must be a whole number, none or default, not ${text}`);
  return { [kind]: Number(text) };
}

async function set(invocation: Invocation, change: Partial<QuotaLimits>): Promise<number> {
  const audit = operatorOf(invocation);
  return withApp(invocation, async ({ store, tenant: home }) => {
    const quota = await store.intake.setQuota(invocation.arguments.tenant, change, { ...audit, home });
    if (wantsJson(invocation)) printJson(invocation, quota);
    else printRows(invocation, [quota], columns, "");
    return 0;
  });
}

const setCommand: Command = {
  name: "quota set",
  summary: "sets quotas of a tenant; effective immediately on every replica, for streams within 5 s",
  arguments: [tenantArgument],
  options: {
    ...Object.fromEntries(
      quotaKinds.map((kind) => [
        kind,
        { value: "N", help: `maximum number of ${meanings[kind]}: a number, none or default` },
      ]),
    ),
    ...operatorOptions,
    ...storeOptions,
    ...outputOption,
  },
  run: (invocation) => {
    const change = Object.assign({}, ...quotaKinds.map((kind) => limitOf(invocation, kind))) as Partial<QuotaLimits>;
    if (Object.keys(change).length === 0) {
      throw new UsageError(`quota set: give at least one of ${quotaKinds.map((kind) => `--${kind}`).join(", ")}`);
    }
    return set(invocation, change);
  },
};

const unset: Command = {
  name: "quota unset",
  summary: "removes all quotas of a tenant, so that the defaults apply again",
  arguments: [tenantArgument],
  options: { ...operatorOptions, ...storeOptions, ...outputOption },
  run: (invocation) => set(invocation, { runs: null, bytes: null, schedules: null, streams: null }),
};

export const quotaCommands: readonly Command[] = [ls, setCommand, unset];
