import { type RouteName, routes } from "../../src/protocol/contract.ts";
import type { Judged, Outcome } from "./judge.ts";
import type { Shot } from "./shot.ts";

/** What was sent and what came of it: a run that reached nothing has shown nothing. */
export class Census {
  readonly #routes = new Map<RouteName, Map<Outcome, number>>();
  readonly #codes = new Map<string, number>();
  requests = 0;
  raw = 0;
  cut = 0;
  broken = 0;
  /** Looks at a tenant's tables, and those where nothing may have changed. */
  looks = 0;
  judgedLooks = 0;

  looked(judged: boolean): void {
    this.looks++;
    if (judged) this.judgedLooks++;
  }

  count(shot: Shot, { outcome, code }: Judged): void {
    this.requests++;
    if (shot.raw !== undefined) this.raw++;
    if (shot.cutMs !== undefined) this.cut++;
    if (shot.broken !== undefined) this.broken++;
    if (code !== undefined) this.#codes.set(code, (this.#codes.get(code) ?? 0) + 1);
    if (shot.route === undefined || shot.raw !== undefined) return;
    const counts = this.#routes.get(shot.route) ?? new Map<Outcome, number>();
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    this.#routes.set(shot.route, counts);
  }

  /** Routes of which no call was ever answered but with a refusal. */
  get neverDone(): RouteName[] {
    return routes
      .map(({ name }) => name)
      .filter((name) => {
        const counts = this.#routes.get(name);
        return counts === undefined || (counts.get("accepted") ?? 0) + (counts.get("read") ?? 0) === 0;
      });
  }

  of(outcome: Outcome): number {
    return [...this.#routes.values()].reduce((sum, counts) => sum + (counts.get(outcome) ?? 0), 0);
  }

  /** Of each route: carried out or read, of all. */
  get table(): readonly string[] {
    return [...this.#routes].map(([name, counts]) => {
      const done = (counts.get("accepted") ?? 0) + (counts.get("read") ?? 0);
      return `${name} ${done}/${[...counts.values()].reduce((sum, one) => sum + one, 0)}`;
    });
  }

  get codes(): readonly (readonly [string, number])[] {
    return [...this.#codes].toSorted((a, b) => b[1] - a[1]);
  }
}
