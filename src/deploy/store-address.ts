/** Where the store is, as far as the file says it. A part that is a secret or a variable is undefined. */
export type StoreAddress =
  | { readonly kind: "sqlite" }
  | { readonly kind: "server"; readonly host: string | undefined; readonly port: number }
  | {
      readonly kind: "postgres";
      readonly host: string | undefined;
      readonly port: number;
      /** Of a URL with several hosts: all but the first. */
      readonly others: readonly { readonly host: string | undefined; readonly port: number }[];
      /** Connections of one process. */
      readonly pool: number;
      readonly user: string | undefined;
      /** The variable that holds the password. */
      readonly password: string | undefined;
      readonly database: string | undefined;
    };

/** The default of `connections` in a PostgreSQL URL (docs/stores.md). */
const defaultPool = 8;

/**
 * Reads a URL that may contain `${NAME}`, which no URL parser accepts everywhere. A URL that is one variable counts as
 * PostgreSQL: its scheme is in the secret.
 */
export function storeAddress(text: string): StoreAddress {
  if (/^(sqlite|memory):/.test(text)) return { kind: "sqlite" };
  const list = /^[a-z]+:\/\/(?:[^/?#]*@)?[^/?#@,]*((?:,[^/?#@,]*)*)/.exec(text)?.[1] ?? "";
  const url = text.replace(list, "");
  const [, scheme = "", user, host, port, database, query = ""] =
    /^([a-z]+):\/\/(?:([^:@/]*)(?:[^@]*)@)?(\$\{\w+\}|\[[^\]]*\]|[^:/?#]*)(?::(\d+|\$\{\w+\}))?(?:\/([^?#]*))?(?:\?([^#]*))?/.exec(
      url,
    ) ?? [];
  if (/^https?$/.test(scheme)) {
    return { kind: "server", host: known(host), port: Number(known(port) ?? (scheme === "https" ? 443 : 80)) };
  }
  const pool = Number(known(new URLSearchParams(query).get("connections") ?? undefined) ?? defaultPool);
  return {
    ...{ kind: "postgres", host: known(host), port: Number(known(port) ?? 5432), pool },
    ...{ user: known(user), database: known(database), others: list.split(",").slice(1).map(hostOf) },
    password: /^[a-z]+:\/\/[^:@/]*:\$\{(\w+)\}@/.exec(url)?.[1],
  };
}

function hostOf(text: string): { readonly host: string | undefined; readonly port: number } {
  const [, host, port] = /^(\[[^\]]*\]|\$\{\w+\}|[^:]*)(?::(\d+|\$\{\w+\}))?$/.exec(text) ?? [];
  return { host: known(host), port: Number(known(port) ?? 5432) };
}

const known = (part: string | undefined): string | undefined =>
  part === undefined || part === "" || part.includes("${") ? undefined : part;
