import type { Clock } from "../base/clock.ts";
import { suggest } from "../base/suggest.ts";
import type { Store } from "../store/contract.ts";

/** What processes report changes when one comes or goes: asked for at most so often. */
const freshMs = 5_000;
const mostTenants = 1_000;

interface Known {
  readonly at: number;
  /** Workflows that processes have reported; undefined: some process does not say. */
  readonly served: Promise<ReadonlySet<string> | undefined>;
}

/**
 * Which workflows have a process, as far as processes say. A run of another one waits, which is no error: its process may
 * come later. But it may be a slip of the pen, and whoever starts it should hear so at once.
 */
export class ServedWorkflows {
  readonly #store: Pick<Store, "read">;
  readonly #clock: Clock;
  readonly #known = new Map<string, Known>();

  constructor(store: Pick<Store, "read">, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** What to say of a run of this workflow; undefined: a process has it. `here`: workflows that the caller knows. */
  async hint(tenant: string, workflow: string, here: readonly string[] = []): Promise<string | undefined> {
    const served = await this.#served(tenant);
    if (served === undefined || served.has(workflow)) return undefined;
    const near = suggest(
      workflow,
      [...new Set([...here, ...served])].filter((name) => name !== workflow),
    );
    const meant = near === undefined ? "." : `; did you mean ${near}?`;
    return `no process at work has reported the workflow ${workflow}${meant} The run waits for one; or cancel it.`;
  }

  #served(tenant: string): Known["served"] {
    const now = this.#clock.mono();
    const known = this.#known.get(tenant);
    if (known !== undefined && now - known.at < freshMs) return known.served;
    if (this.#known.size >= mostTenants) this.#known.clear();
    const served = reportedWorkflows(this.#store, tenant).catch(() => undefined); // a hint is worth no error
    this.#known.set(tenant, { at: now, served });
    return served;
  }
}

/** The workflows of all processes that reported lately; undefined: one of them does not say which it has. */
export async function reportedWorkflows(
  store: Pick<Store, "read">,
  tenant: string,
): Promise<ReadonlySet<string> | undefined> {
  const found = new Set<string>();
  for (const { body } of await store.read.processes(tenant)) {
    const { workflows } = (body ?? {}) as { workflows?: unknown };
    if (!Array.isArray(workflows)) return undefined;
    for (const name of workflows) found.add(String(name));
  }
  return found;
}
