import type { RouteName } from "../../src/protocol/contract.ts";
import type { Patch } from "../planted/bug.ts";

/** A weakness to plant in the server, and the rule that must find it. */
export interface Weakness {
  readonly name: string;
  readonly route: RouteName;
  readonly rule: string;
  readonly patch: Patch;
}

export const weaknesses: readonly Weakness[] = [
  {
    name: "a handler throws on an unexpected query",
    route: "values.list",
    rule: "server error",
    patch: {
      file: "server/handlers/values.ts",
      find: 'return listed("values", await read.values(',
      replace:
        'if (above !== undefined) throw new RangeError("planted");\n      return listed("values", await read.values(',
    },
  },
  {
    name: "a call writes before it is rejected",
    route: "runs.redrive",
    rule: "changed",
    patch: {
      file: "server/handlers/runs.ts",
      find: '    async "runs.redrive"({ params: { id }, body }, who) {\n',
      replace:
        '    async "runs.redrive"({ params: { id }, body }, who) {\n      await who.intake.putValue(who.tenant, "planted", deps.clock.wall(), "unconditional");\n',
    },
  },
  {
    name: "a body accepts unknown fields",
    route: "values.put",
    rule: "accepted",
    patch: {
      file: "protocol/routes/values.ts",
      find: "    body: z.strictObject({\n      value,\n",
      replace: "    body: z.object({\n      value,\n",
    },
  },
  {
    name: "a list shows another tenant's runs",
    route: "runs.list",
    rule: "leak",
    patch: {
      file: "server/handlers/runs.ts",
      find: "await read.runs(tenant, query as RunFilter)",
      replace: 'await read.runs(tenant.replace("acme", "globex"), query as RunFilter)',
    },
  },
  {
    name: "a lease view contains the nonce",
    route: "leases.list",
    rule: "leak",
    patch: {
      file: "store/sql/read.ts",
      find: '"lease.list", page, leaseViewOf);',
      replace: '"lease.list", page, (row) => ({ ...leaseViewOf(row), progressNote: String(row.nonce) }));',
    },
  },
  {
    name: "a route forgets its role",
    route: "audit",
    rule: "role",
    patch: {
      file: "server/server.ts",
      find: 'if (route.role !== "open" && !mayDo(',
      replace: 'if (route.role !== "open" && route.name !== "audit" && !mayDo(',
    },
  },
  {
    name: "an error response contains its stack trace",
    route: "runs.terms",
    rule: "internals",
    patch: {
      file: "model/not-found.ts",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a source file
      find: "`${kind} ${name} not found`",
      replace: 'String(new Error("planted").stack)',
    },
  },
];

/** It ends the server, so it needs a run of its own. */
export const crash: Weakness = {
  name: "an uncaught promise rejection",
  route: "timers.list",
  rule: "crash",
  patch: {
    file: "server/handlers/effects.ts",
    find: '    async "timers.list"({ query }, { tenant }) {\n',
    replace:
      '    async "timers.list"({ query }, { tenant }) {\n      if (query.run !== undefined) void Promise.reject(new Error("planted"));\n',
  },
};
