import { systemRandom } from "../../base/random.ts";
import { isRemote, type RemoteStore } from "../../client/remote.ts";
import { type Role, roles } from "../../protocol/route.ts";
import { lifetimeOf, mintToken } from "../../server/credentials.ts";
import type { AuditInfo, Store } from "../../store/contract/store.ts";
import { readList } from "../../store/read-all.ts";
import { operatorOf, operatorOptions, outputOption, settingsOf, storeOptions, withApp } from "../app.ts";
import { type Command, UsageError } from "../command.ts";
import { printJson, printRows, timeOf, wantsJson } from "../output.ts";
import { lifetimesOf } from "./serve.ts";

const create: Command = {
  name: "token create",
  summary: "makes an API token; its secret is shown once and kept nowhere",
  arguments: [{ name: "name", help: "whose it is, for people: the audit shows it" }],
  options: {
    role: { value: roles.join("|"), help: "what it may do" },
    expires: {
      value: "DURATION",
      help: "how long it holds, as in 90d; default: tape.server.tokens, else until it is revoked",
    },
    ...operatorOptions,
    ...storeOptions,
    ...outputOption,
  },
  run: (invocation) => {
    const role = roles.find((one) => one === invocation.text("role"));
    if (role === undefined) throw new UsageError(`--role is one of ${roles.join(", ")}`);
    const expiresInMs = invocation.duration("expires");
    const audit = operatorOf(invocation);
    const lifetimeMs = lifetimeOf(expiresInMs, lifetimesOf(settingsOf(invocation).config.settings.tape.server.tokens));
    return withApp(
      invocation,
      async ({ store, tenant }) => {
        const name = invocation.arguments.name!;
        const made = { name, role, ...(lifetimeMs !== undefined && { expiresInMs: lifetimeMs }) };
        const token = await (isRemote(store) ? madeByServer(store, made, audit) : madeHere(store, tenant, made, audit));
        if (wantsJson(invocation)) printJson(invocation, { id: token.split(".", 1)[0], tenant, name, role, token });
        else {
          invocation.screen.line(token);
          invocation.screen.line(
            invocation.screen.dim("Keep it now: it is shown this once. Send it as Authorization: Bearer …"),
          );
        }
        return 0;
      },
      { create: true },
    );
  },
};

interface Made {
  readonly name: string;
  readonly role: Role;
  readonly expiresInMs?: number;
}

async function madeHere(store: Store, tenant: string, made: Made, audit: AuditInfo): Promise<string> {
  const { id, secret, hash } = mintToken(systemRandom);
  await store.intake.putToken({ id, tenant, hash, ...made }, audit);
  return `${id}.${secret}`;
}

/** The token's tenant, and who made it, are those of the credential that asks. */
async function madeByServer({ remote }: RemoteStore, made: Made, { reason }: AuditInfo): Promise<string> {
  return (await remote.call("tokens.create", { body: { ...made, reason } })).secret;
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
          { title: "MADE", of: ({ createdAt }) => timeOf(createdAt) },
          { title: "EXPIRES", of: ({ expiresAt }) => when(expiresAt, "never") },
          { title: "USED", of: ({ usedAt }) => when(usedAt, "not yet") },
          { title: "REVOKED", of: ({ revokedAt }) => when(revokedAt, "") },
        ],
        "there are no tokens; make one with durable-tape token create",
      );
      return 0;
    }),
};

const revoke: Command = {
  name: "token revoke",
  summary: "ends an API token, on every replica within five seconds",
  arguments: [{ name: "id", help: "the part before the dot" }],
  options: { ...operatorOptions, ...storeOptions },
  run: (invocation) => {
    const audit = operatorOf(invocation);
    return withApp(invocation, async ({ store, tenant }) => {
      const { name } = await store.intake.revokeToken(tenant, invocation.arguments.id!, audit);
      invocation.screen.line(`${invocation.arguments.id} (${name}) is revoked`);
      return 0;
    });
  },
};

export const tokenCommands: readonly Command[] = [create, ls, revoke];
