import { suggest } from "../base/suggest.ts";
import { variableOf } from "./leaves.ts";
import { builtIns, type Config, type ReactorSettings } from "./schema.ts";

/** A contradiction between settings: the path of the one to change, and the reason. */
export interface Contradiction {
  readonly path: readonly string[];
  readonly message: string;
}

const reactorName = /^[a-z][a-z0-9_-]{0,63}$/;

/** Checks the relations between settings, which the schema of a single value cannot. */
export function contradictions(config: Config): Contradiction[] {
  const found: Contradiction[] = [];
  const { store, server, reactors } = config.tape;
  if (store.processes === "single" && !store.url.startsWith("sqlite:")) {
    found.push({ path: ["tape", "store", "processes"], message: "single is only for SQLite files" });
  }
  if ((server.tls.cert === undefined) !== (server.tls.key === undefined)) {
    const missing = server.tls.cert === undefined ? "cert" : "key";
    found.push({
      path: ["tape", "server", "tls"],
      message: `${missing} is missing; set both cert and key`,
    });
  }
  if (server.tls.client_ca !== undefined && server.tls.cert === undefined) {
    found.push({ path: ["tape", "server", "tls", "client_ca"], message: "needs cert and key of the server" });
  }
  const byVariable = new Map<string, string>();
  for (const [name, settings] of Object.entries(reactors)) {
    const path = ["tape", "reactors", name];
    const variable = variableOf(path.join("."));
    const namesake = byVariable.get(variable);
    if (namesake !== undefined) {
      const message = `the reactors ${namesake} and ${name} have the same variables, ${variable}_…; rename one of them`;
      found.push({ path, message });
    }
    byVariable.set(variable, name);
    if (!reactorName.test(name)) {
      found.push({ path, message: `a reactor name must consist of a-z, 0-9, - and _, not ${JSON.stringify(name)}` });
    }
    if (settings.mode === "alarms" && name !== "timers") {
      found.push({ path: [...path, "mode"], message: "alarms is only for timers; other reactors have loop or push" });
    }
    if (settings.mode === "push" && !(builtIns as readonly string[]).includes(name)) {
      found.push({
        path: [...path, "mode"],
        message: "push is only for the built-in reactors, whose work is on the agenda",
      });
    }
    found.push(
      ...reactorProblems(settings).map(([setting, message]) => ({ path: [...path, ...setting.split(".")], message })),
    );
  }
  if (reactors.timers.mode === "alarms" && config.tape.push.alarms.kind === undefined) {
    found.push({ path: ["tape", "reactors", "timers", "mode"], message: "alarms needs tape.push.alarms with a kind" });
  }
  for (const name of Object.keys(config.tape.events.sinks)) {
    if (reactorName.test(name)) continue;
    const message = `a sink name must consist of a-z, 0-9, - and _, not ${JSON.stringify(name)}`;
    found.push({ path: ["tape", "events", "sinks", name], message });
  }
  return found;
}

function reactorProblems(settings: ReactorSettings): [string, string][] {
  const { lease_ttl_s: ttl, heartbeat_s: heartbeat, max_stall_s: maxStall } = settings;
  const found: [string, string][] = [];
  // The lease keeper accepts up to 5/6, but then a single failed renewal would lose the lease.
  if (heartbeat !== undefined && heartbeat > ttl / 2) {
    found.push([
      "heartbeat_s",
      `${heartbeat} s is more than half of lease_ttl_s (${ttl} s): one failed renewal would lose the lease`,
    ]);
  }
  if (maxStall !== undefined && maxStall <= (heartbeat ?? ttl / 3)) {
    found.push(["max_stall_s", `${maxStall} s is not longer than the heartbeat, which carries the progress`]);
  }
  for (const pauses of ["backoff", "takeover"] as const) {
    const { base_ms: base, cap_ms: cap } = settings[pauses];
    if (base > cap) found.push([`${pauses}.base_ms`, `${base} ms is more than cap_ms (${cap} ms)`]);
  }
  return found;
}

/** A suggestion for a custom reactor without a handler, whose name may be a misspelt built-in. */
export function builtInNamesake(name: string): string {
  const near = suggest(name, builtIns);
  return near === undefined ? "" : `; did you mean ${near}?`;
}

/** Settings that have no effect on some reactors: setting one is not an error, but probably a misunderstanding. */
const unused: Readonly<Record<string, readonly [settings: readonly string[], reason: string]>> = {
  timers: [
    [
      "concurrency",
      "per_connector",
      "lease_ttl_s",
      "heartbeat_s",
      "backoff",
      "max_attempts",
      "takeover",
      "lease_attempts",
    ],
    "a firing is one transaction and needs no lease",
  ],
  recovery: [["per_connector", "backoff", "max_attempts"], "a run that crashes its process five times becomes STUCK"],
};

/** One warning for each such setting among the explicitly set paths. */
export function unusedSettings(paths: Iterable<string>): string[] {
  return [...paths].flatMap((path) => {
    const [top, section, reactor = "", setting = ""] = path.split(".");
    if (setting === "pending_after_s" && reactor !== "reconciler") {
      return [`${path} has no effect: only the reconciler observes effects`];
    }
    const known = top === "tape" && section === "reactors" ? unused[reactor] : undefined;
    return known?.[0].includes(setting) ? [`${path} has no effect: ${known[1]}`] : [];
  });
}
