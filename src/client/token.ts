import { TapeError } from "../model/errors.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The environment's token, for a server that the program or its user has named. A configuration file that happens to be
 * in a folder is neither: with `fromFile`, the token goes only to hosts that TAPE_TOKEN_HOST names. Once that variable
 * is set, this holds for all servers.
 */
export function environmentToken(
  urls: string | readonly string[],
  env: Environment,
  { fromFile }: { readonly fromFile?: string } = {},
): string | undefined {
  const token = env.TAPE_TOKEN;
  const allowed = env.TAPE_TOKEN_HOST;
  if (token === undefined || token === "") return undefined;
  const hosts = (typeof urls === "string" ? urls.split(",") : urls).map(hostOf);
  const named = (allowed ?? "").split(",").map((host) => host.trim().toLowerCase());
  const strangers = hosts.filter((host) => host !== undefined && !named.includes(host));
  const stranger = allowed === undefined && fromFile === undefined ? undefined : strangers[0];
  if (stranger === undefined) return token;
  const why = fromFile === undefined ? "TAPE_TOKEN_HOST names others" : `only ${fromFile} names it`;
  const message = `TAPE_TOKEN is not sent to ${stranger}: ${why}; set TAPE_TOKEN_HOST=${stranger}, or name the store with --store or TAPE_STORE_URL`;
  throw new TapeError("TAPE_BAD_CONFIG", message, { host: stranger });
}

/** undefined: not an address, which opening it will refuse. */
function hostOf(url: string): string | undefined {
  try {
    return new URL(url.trim()).hostname.toLowerCase();
  } catch {
    return undefined;
  }
}
