import { namesSecret } from "../config/mask.ts";
import type { Config } from "../config/schema.ts";
import { TapeError } from "../model/errors.ts";

/**
 * Rejects a secret that the file spells out. The file is part of the image, and its values would be part of the
 * manifests; both are copied to registries and repositories.
 */
export function assertNoSecrets({ tape }: Config): void {
  if (hasLiteralPassword(tape.store.url)) throw spelledOut("tape.store.url contains a password");
  const token = tape.server.bootstrap_token;
  if (token !== undefined && isLiteral(token)) throw spelledOut("tape.server.bootstrap_token is a token");
  assertCredentials("tape.push.waker", tape.push.waker);
  assertCredentials("tape.push.alarms", tape.push.alarms);
  for (const [name, sink] of Object.entries(tape.events.sinks)) assertCredentials(`tape.events.sinks.${name}`, sink);
}

interface Credentials {
  readonly secrets?: readonly string[] | undefined;
  readonly token?: string | undefined;
  readonly password?: string | undefined;
  readonly url?: string | undefined;
  readonly servers?: readonly string[] | undefined;
}

/** What a sink or a waker signs in with. An address may contain a password, too. */
function assertCredentials(path: string, { secrets, token, password, url, servers }: Credentials): void {
  if (secrets?.some(isLiteral)) throw spelledOut(`${path}.secrets has a secret`);
  if (token !== undefined && isLiteral(token)) throw spelledOut(`${path}.token is a token`);
  if (password !== undefined && isLiteral(password)) throw spelledOut(`${path}.password is a password`);
  if (url !== undefined && hasLiteralPassword(url)) throw spelledOut(`${path}.url contains a password`);
  if (servers?.some(hasLiteralPassword)) throw spelledOut(`${path}.servers contain a password`);
}

const spelledOut = (what: string): TapeError =>
  new TapeError(
    "TAPE_DEPLOY_SECRET",
    `${what}; write \${NAME} in its place, and add NAME with the name of its secret to tape.deploy.secrets`,
    { setting: what.split(" ", 1)[0] },
  );

/** Whether anything is left of the text without its variables. */
const isLiteral = (text: string): boolean => text.replaceAll(/\$\{[A-Za-z_]\w*\}/g, "") !== "";

/** Parameters of the driver that are paths, not secrets. */
const paths: ReadonlySet<string> = new Set(["sslkey", "sslcert", "sslrootcert"]);

function hasLiteralPassword(url: string): boolean {
  const [, rest = ""] = /^[a-z][\w+.-]*:\/\/(.*)$/is.exec(url) ?? [];
  const [address = "", query = ""] = rest.split(/\?(.*)/s);
  const user = address.slice(0, Math.max(0, address.lastIndexOf("@")));
  const [, password = ""] = user.split(/:(.*)/s);
  if (isLiteral(password)) return true;
  return [...new URLSearchParams(query)].some(([key, value]) =>
    value.includes("://") ? hasLiteralPassword(value) : namesSecret(key) && !paths.has(key) && isLiteral(value),
  );
}

/** Variables with plain values whose names are those of secrets. */
export function secretWarnings(env: Readonly<Record<string, string>>): string[] {
  return Object.keys(env).flatMap((name) =>
    namesSecret(name) && name !== "TAPE_TOKEN_HOST"
      ? [
          `tape.deploy.env.${name} looks like a secret, and the manifests would contain it: move it to tape.deploy.secrets`,
        ]
      : [],
  );
}
