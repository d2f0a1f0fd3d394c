import { suggest } from "../../base/suggest.ts";
import { TapeError } from "../../model/errors.ts";

/** The settings of a store URL besides the address of the database. */
export interface PostgresSettings {
  /** With several hosts it names the first. */
  readonly connectionString: string;
  /** Which of these accepts writes is found out; absent: the URL names one server, and nothing is asked. */
  readonly hosts?: readonly Host[];
  readonly schema: string;
  /** "transaction": behind a pooler that drops SET, LISTEN and named statements. */
  readonly pooler: "none" | "transaction";
  /** Where to LISTEN when the main URL goes through a pooler. */
  readonly listenUrl: string | undefined;
  /** Of a listenUrl with several hosts. */
  readonly listen?: PostgresSettings;
  readonly connections: number;
  /** Statement, lock and idle-in-transaction timeouts: no guarded transaction lasts longer. */
  readonly transactionBoundMs: number;
  /** The operator accepts that acknowledged writes may be lost. */
  readonly acceptLoss: boolean;
}

/** The address of one server. */
export interface Host {
  readonly host: string;
  readonly port: number;
}

/** More servers than any cluster of ours has; each is asked when the writable one is looked up. */
const maxHosts = 16;

const known = [
  "schema",
  "pooler",
  "listen_url",
  "connections",
  "transaction_bound_ms",
  "accept_loss",
  "target_session_attrs",
] as const;
/** Our own keys are removed from the URL; these belong to the driver and stay. */
const driverKeys = [
  "sslmode",
  "ssl",
  "sslrootcert",
  "sslcert",
  "sslkey",
  "application_name",
  "host",
  "port",
  "user",
  "password",
  "dbname",
];

export function parsePostgresUrl(text: string): PostgresSettings {
  const { single, list } = withOneHost(text);
  let url: URL;
  try {
    url = new URL(single.replace(/^alloydb:/, "postgres:").replace(/^postgresql:/, "postgres:"));
  } catch {
    // Its cause would have the whole text, password included.
    throw new TapeError("TAPE_BAD_STORE_URL", "not the URL of a PostgreSQL database");
  }
  const settings = new Map<string, string>();
  for (const [key, value] of [...url.searchParams]) {
    if ((known as readonly string[]).includes(key)) {
      settings.set(key, value);
      url.searchParams.delete(key);
    } else if (!driverKeys.includes(key)) {
      const near = suggest(key, [...known, ...driverKeys]);
      throw new TapeError(
        "TAPE_BAD_STORE_URL",
        `unknown parameter ${key}${near === undefined ? "" : `; did you mean ${near}?`}`,
        {
          key,
        },
      );
    }
  }
  const pooler = settings.get("pooler") ?? "none";
  if (pooler !== "none" && pooler !== "transaction") {
    throw new TapeError("TAPE_BAD_STORE_URL", `pooler must be none or transaction, not ${pooler}`, { key: "pooler" });
  }
  const acceptLoss = settings.get("accept_loss") ?? "false";
  if (acceptLoss !== "true" && acceptLoss !== "false") {
    throw new TapeError("TAPE_BAD_STORE_URL", `accept_loss must be true or false, not ${acceptLoss}`, {
      key: "accept_loss",
    });
  }
  const schema = settings.get("schema") ?? "tape";
  if (!/^[a-z_][a-z0-9_]{0,40}$/.test(schema)) {
    throw new TapeError("TAPE_BAD_STORE_URL", "schema must be a plain lower-case name", { key: "schema" });
  }
  const hosts = hostsOf(list, settings.get("target_session_attrs"), url, pooler);
  const listenUrl = settings.get("listen_url");
  if (hosts !== undefined && listenUrl !== undefined) {
    throw badHosts("several hosts need no listen_url: the writable one is listened to", "listen_url");
  }
  const listen = listenUrl === undefined ? undefined : severalToListen(listenUrl);
  return {
    connectionString: url.href,
    ...(hosts === undefined ? {} : { hosts }),
    schema,
    pooler,
    listenUrl,
    ...(listen === undefined ? {} : { listen }),
    connections: whole("connections", settings.get("connections") ?? "8", 2),
    transactionBoundMs: whole("transaction_bound_ms", settings.get("transaction_bound_ms") ?? "5000", 50),
    acceptLoss: acceptLoss === "true",
  };
}

/** The URL with the first of its hosts, and all of them: a URL has one port, so that a list with ports is none. */
function withOneHost(text: string): { readonly single: string; readonly list: readonly string[] } {
  const [whole = "", start = "", hosts = ""] = /^([a-z]+:\/\/(?:[^/?#]*@)?)([^/?#@]*)/.exec(text) ?? [];
  const list = hosts.split(",");
  return { single: list.length < 2 ? text : `${start}${list[0]}${text.slice(whole.length)}`, list };
}

function severalToListen(listenUrl: string): PostgresSettings | undefined {
  const several = withOneHost(listenUrl).list.length > 1 || listenUrl.includes("target_session_attrs=");
  return several ? parsePostgresUrl(listenUrl) : undefined;
}

const badHosts = (message: string, key: string): TapeError => new TapeError("TAPE_BAD_STORE_URL", message, { key });

function hostsOf(
  list: readonly string[],
  attributes: string | undefined,
  { searchParams, hostname, port }: URL,
  pooler: string,
): Host[] | undefined {
  const several = list.length > 1;
  if (attributes === undefined && !several) {
    if (searchParams.get("host")?.includes(",") !== true) return undefined;
    throw badHosts("write several hosts before the path: postgres://a,b/db", "host");
  }
  if (attributes !== undefined && attributes !== "read-write" && attributes !== "primary") {
    const message = `target_session_attrs must be read-write or primary, not ${attributes}: a store is read and written on the writable server`;
    throw badHosts(message, "target_session_attrs");
  }
  if (pooler !== "none") {
    const message =
      "pooler=transaction hides which server answers: name one address of the pooler, which leads to the primary";
    throw badHosts(message, "pooler");
  }
  if (several && (searchParams.has("host") || searchParams.has("port"))) {
    throw badHosts("several hosts cannot be combined with the parameters host and port", "host");
  }
  if (list.length > maxHosts) throw badHosts(`at most ${maxHosts} hosts, not ${list.length}`, "host");
  const hosts = several
    ? list.map(hostOf)
    : [
        {
          host: searchParams.get("host") ?? decodeURIComponent(hostname),
          port: whole("port", searchParams.get("port") ?? (port || "5432"), 1),
        },
      ];
  const names = hosts.map(({ host, port: number }) => `${host} ${number}`);
  if (new Set(names).size < names.length) throw badHosts("a host is named twice", "host");
  return hosts;
}

function hostOf(text: string): Host {
  const [, v6, name, port = "5432"] = /^(?:\[([0-9a-f:.%]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/i.exec(text) ?? [];
  const host = v6 ?? name;
  if (host === undefined || Number(port) < 1 || Number(port) > 65_535)
    throw badHosts("each host is a name or address with an optional port: postgres://a:5432,b:5433/db", "host");
  return { host: decodeURIComponent(host), port: Number(port) };
}

function whole(key: string, text: string, min: number): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= min) return value;
  throw new TapeError("TAPE_BAD_STORE_URL", `${key} must be a whole number of at least ${min}`, { key });
}
