import { defined } from "../../base/defined.ts";
import { systemRandom } from "../../base/random.ts";
import { isRemote, type RemoteStore } from "../../client/remote.ts";
import { type Role, roles } from "../../protocol/route.ts";
import { lifetimeOf, mintToken } from "../../server/token-auth.ts";
import type { AuditInfo, Store } from "../../store/contract/store.ts";
import { readList } from "../../store/read-all.ts";
import { operatorOf, operatorOptions, outputOption, settingsOf, storeOptions, withApp } from "../app.ts";
import { type Command, UsageError } from "../command.ts";
import { printJson, printRows, timeOf, wantsJson } from "../output.ts";
import { lifetimesOf } from "./serve.ts";

const create: Command = {
  name: "token create",
  summary: "creates an API token (its secret is shown once)",
  arguments: [{ name: "name", help: "name of its owner, shown in the audit log" }],
  options: {
    role: { value: roles.join("|"), help: "role of the token" },
    expires: {
      value: "DURATION",
      help: "lifetime, such as 90d (default: tape.server.tokens, otherwise until revoked)",
    },
    ...operatorOptions,
    ...storeOptions,
    ...outputOption,
  },
  run: (invocation) => {
    const role = roles.find((known) => known === invocation.text("role"));
    if (role === undefined) throw new UsageError(`--role must be one of ${roles.join(", ")}`);
    const expiresInMs = invocation.duration("expires");
    const audit = operatorOf(invocation);
    const lifetimeMs = lifetimeOf(expiresInMs, lifetimesOf(settingsOf(invocation).config.settings.tape.server.tokens));
    return withApp(
      invocation,
      async ({ store, tenant }) => {
        const name = invocation.arguments.name!;
        const spec = { name, role, ...defined({ expiresInMs: lifetimeMs }) };
        const token = await (isRemote(store)
          ? createOnServer(store, spec, audit)
          : createInStore(store, tenant, spec, audit));
        if (wantsJson(invocation)) printJson(invocation, { id: token.split(".", 1)[0], tenant, name, role, token });
        else {
          invocation.screen.line(token);
          invocation.screen.line(
            invocation.screen.dim("Save it now: it is shown only once. Send it as Authorization: Bearer …"),
          );
        }
        return 0;
      },
      { create: true },
    );
  },
};

interface TokenSpec {
  readonly name: string;
  readonly role: Role;
  readonly expiresInMs?: number;
}

async function createInStore(store: Store, tenant: string, spec: TokenSpec, audit: AuditInfo): Promise<string> {
  const { id, secret, hash } = mintToken(systemRandom);
  await store.intake.putToken({ id, tenant, hash, ...spec }, audit);
  return `${id}.${secret}`;
}

/** The server takes the tenant and the operator's name from the caller's credential. */
async function createOnServer({ remote }: RemoteStore, spec: TokenSpec, { reason }: AuditInfo): Promise<string> {
  return (await remote.call("tokens.create", { body: { ...spec, reason } })).secret;
}

const ls: Command = {
  name: "token ls",
  summary: "lists API tokens, without their secrets",
  options: { ...storeOptions, ...outputOption },
  run: (invocation) =>
    withApp(invocation, async ({ store, tenant }) => {
      const all = await readList(
        (above) => store.read.tokens(tenant, { above }),
        ({ id }) => id,
      );
      const found = all.map(({ hash: _, ...token }) => token);
      const when = (at: number | null, never: string): string => (at === null ? never : timeOf(at));
      printRows(
        invocation,
        found,
        [
          { title: "ID", of: ({ id }) => id },
          { title: "NAME", of: ({ name }) => name },
          { title: "ROLE", of: ({ role }) => role },
          { title: "CREATED", of: ({ createdAt }) => timeOf(createdAt) },
          { title: "EXPIRES", of: ({ expiresAt }) => when(expiresAt, "never") },
          { title: "LAST USED", of: ({ usedAt }) => when(usedAt, "never") },
          { title: "REVOKED", of: ({ revokedAt }) => when(revokedAt, "") },
        ],
        "no tokens; create one with durable-tape token create",
      );
      return 0;
    }),
};

const revoke: Command = {
  name: "token revoke",
  summary: "revokes an API token (effective everywhere within 5 s)",
  arguments: [{ name: "id", help: "token id, the part before the dot" }],
  options: { ...operatorOptions, ...storeOptions },
  run: (invocation) => {
    const audit = operatorOf(invocation);
    return withApp(invocation, async ({ store, tenant }) => {
      const { name } = await store.intake.revokeToken(tenant, invocation.arguments.id!, audit);
      invocation.screen.line(`${invocation.arguments.id} (${name}) revoked`);
      return 0;
    });
  },
};

export const tokenCommands: readonly Command[] = [create, ls, revoke];
