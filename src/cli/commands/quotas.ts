import { type Quota, type QuotaKind, type QuotaLimits, quotaKinds, unlimited } from "../../model/quota.ts";
import { readList } from "../../store/read-all.ts";
import { operatorOf, operatorOptions, outputOption, storeOptions, withApp } from "../app.ts";
import { type Command, type Invocation, UsageError } from "../command.ts";
import { type Column, printJson, printRows, wantsJson } from "../output.ts";

const whose = {
  name: "tenant",
  help: "whose; absent: all tenants that have none of their own",
  optional: true,
} as const;

const meanings: Readonly<Record<QuotaKind, string>> = {
  runs: "runs that have not ended",
  bytes: "bytes of all records of its runs",
  schedules: "schedules",
  streams: "streams open at one server",
};

const limitText = (quota: Quota, kind: QuotaKind): string => {
  const limit = quota.limits[kind];
  const used = kind === "streams" || quota.tenant === "" ? undefined : quota.used[kind];
  const most = limit === null ? "no limit" : String(limit);
  return used === undefined || used === null ? most : `${used} of ${most}`;
};

const columns: readonly Column<Quota>[] = [
  { title: "TENANT", of: ({ tenant }) => (tenant === "" ? "(all others)" : tenant) },
  ...quotaKinds.map((kind) => ({ title: kind.toUpperCase(), of: (quota: Quota) => limitText(quota, kind) })),
];

const ls: Command = {
  name: "quota ls",
  summary: "lists what tenants may have at most, and how much of it they have",
  options: { ...storeOptions, ...outputOption },
  run: (invocation) =>
    withApp(invocation, async ({ store }) => {
      const found = await readList(
        (above) => store.read.quotas({ above }),
        ({ tenant }) => tenant,
      );
      printRows(invocation, found, columns, "there are no quotas; set some with durable-tape quota set");
      return 0;
    }),
};

function limitOf(invocation: Invocation, kind: QuotaKind): Partial<QuotaLimits> {
  const said = invocation.text(kind);
  if (said === undefined) return {};
  if (said === "default") return { [kind]: null };
  if (said === "none") return { [kind]: unlimited };
  if (!/^\d{1,15}$/.test(said)) throw new UsageError(`--${kind} is a whole number, none or default, not ${said}`);
  return { [kind]: Number(said) };
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
  summary: "sets what a tenant may have at most; it holds at once on every replica, for streams within five seconds",
  arguments: [whose],
  options: {
    ...Object.fromEntries(
      quotaKinds.map((kind) => [kind, { value: "N", help: `${meanings[kind]}: a number, none or default` }]),
    ),
    ...operatorOptions,
    ...storeOptions,
    ...outputOption,
  },
  run: (invocation) => {
    const change = Object.assign({}, ...quotaKinds.map((kind) => limitOf(invocation, kind))) as Partial<QuotaLimits>;
    if (Object.keys(change).length === 0) {
      throw new UsageError(`quota set needs at least one of ${quotaKinds.map((kind) => `--${kind}`).join(", ")}`);
    }
    return set(invocation, change);
  },
};

const unset: Command = {
  name: "quota unset",
  summary: "takes all quotas of a tenant back: the default holds for it again",
  arguments: [whose],
  options: { ...operatorOptions, ...storeOptions, ...outputOption },
  run: (invocation) => set(invocation, { runs: null, bytes: null, schedules: null, streams: null }),
};

export const quotaCommands: readonly Command[] = [ls, setCommand, unset];
