import { describeOrigin, flatten, type LoadedConfig } from "./load.ts";
import { maskUrl, namesSecret } from "./mask.ts";

export interface DescribedSetting {
  readonly path: string;
  readonly value: unknown;
  /** `default`, `tape.yaml:4:7`, the variable, or the flag. */
  readonly origin: string;
  /** Variables that `${…}` inserted into the value. */
  readonly variables: readonly string[];
}

/** Every setting with its origin, for printing: passwords, tokens and secrets are masked. */
export function describeConfig({ settings, origins }: LoadedConfig): DescribedSetting[] {
  return flatten(settings).map(([path, value]) => {
    const origin = origins.get(path) ?? { from: "default" };
    return {
      path,
      value: masked(path, value),
      origin: describeOrigin(origin),
      variables: origin.from === "file" ? origin.variables : [],
    };
  });
}

function masked(path: string, value: unknown): unknown {
  if (path === "tape.store.url") return maskUrl(String(value));
  if (path.startsWith("tape.deploy.env.") && namesSecret(path.slice("tape.deploy.env.".length))) return "***";
  const [, credential] = /^tape\.(?:push\.(?:waker|alarms)|events\.sinks\.[^.]+)\.(\w+)$/.exec(path) ?? [];
  if (credential === "secrets") return (value as unknown[]).map(() => "***");
  if (credential === "token" || credential === "password") return "***";
  if (credential === "url") return maskUrl(String(value));
  if (credential === "servers") return (value as unknown[]).map((server) => maskUrl(String(server)));
  return path === "tape.server.bootstrap_token" ? "***" : value;
}
