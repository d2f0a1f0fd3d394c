import { suggest } from "../base/suggest.ts";
import { builtIns, type Config, type ReactorSettings } from "./schema.ts";

/** Two settings that contradict each other: the path of the one to change, and why. */
export interface Contradiction {
  readonly path: readonly string[];
  readonly message: string;
}

const reactorName = /^[a-z][a-z0-9-]{0,63}$/;

/** What no single value can say: how settings must stand to each other. */
export function contradictions(config: Config): Contradiction[] {
  const found: Contradiction[] = [];
  const { store, server, reactors } = config.tape;
  if (store.processes === "single" && !store.url.startsWith("sqlite:")) {
    found.push({ path: ["tape", "store", "processes"], message: "single is for SQLite files only" });
  }
  if ((server.tls.cert === undefined) !== (server.tls.key === undefined)) {
    const missing = server.tls.cert === undefined ? "cert" : "key";
    found.push({
      path: ["tape", "server", "tls"],
      message: `a certificate and its key belong together: ${missing} is missing`,
    });
  }
  if (server.tls.client_ca !== undefined && server.tls.cert === undefined) {
    found.push({ path: ["tape", "server", "tls", "client_ca"], message: "needs a certificate of the server's own" });
  }
  for (const [name, settings] of Object.entries(reactors)) {
    const path = ["tape", "reactors", name];
    if (!reactorName.test(name)) {
      found.push({ path, message: `a reactor's name is made of a-z, 0-9 and -, not ${JSON.stringify(name)}` });
    }
    found.push(...ofReactor(settings).map(([knob, message]) => ({ path: [...path, ...knob.split(".")], message })));
  }
  return found;
}

function ofReactor({ lease_ttl_s: ttl, heartbeat_s: heartbeat, backoff }: ReactorSettings): [string, string][] {
  const found: [string, string][] = [];
  // The keeper would accept up to 5/6: but then one renewal that fails costs the lease.
  if (heartbeat !== undefined && heartbeat > ttl / 2) {
    found.push([
      "heartbeat_s",
      `${heartbeat} s is more than half of lease_ttl_s (${ttl} s): one failed renewal would cost the lease`,
    ]);
  }
  if (backoff.base_ms > backoff.cap_ms) {
    found.push(["backoff.base_ms", `${backoff.base_ms} ms is more than cap_ms (${backoff.cap_ms} ms)`]);
  }
  return found;
}

/** For a reactor of an unknown name without a handler: perhaps one of ours was meant. */
export function builtInNamesake(name: string): string {
  const near = suggest(name, builtIns);
  return near === undefined ? "" : `; did you mean ${near}?`;
}

/** Knobs that some reactors have no use for: to set them is no mistake, but perhaps a misunderstanding. */
const idle: Readonly<Record<string, readonly [knobs: readonly string[], why: string]>> = {
  timers: [
    ["concurrency", "per_connector", "lease_ttl_s", "heartbeat_s", "backoff", "max_attempts"],
    "a firing is one transaction, without a lease",
  ],
  recovery: [["per_connector", "backoff", "max_attempts"], "a run that crashes its process five times is stuck"],
};

/** One warning for each such knob among the paths that somebody has set. */
export function unusedSettings(paths: Iterable<string>): string[] {
  return [...paths].flatMap((path) => {
    const [top, section, reactor = "", knob = ""] = path.split(".");
    const known = top === "tape" && section === "reactors" ? idle[reactor] : undefined;
    return known?.[0].includes(knob) ? [`${path} changes nothing: ${known[1]}`] : [];
  });
}
