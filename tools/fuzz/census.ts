import { type RouteName, routes } from "../../src/protocol/contract.ts";
import type { JudgedReply, Outcome } from "./judge.ts";
import type { Shot } from "./shot.ts";

/** Counts of requests and their outcomes: a fuzz run that reached nothing has shown nothing. */
export class Census {
  readonly #routes = new Map<RouteName, Map<Outcome, number>>();
  readonly #codes = new Map<string, number>();
  requests = 0;
  raw = 0;
  cut = 0;
  broken = 0;
  /** Checks of a tenant's tables, and those of them at which nothing may have changed. */
  tableChecks = 0;
  judgedTableChecks = 0;

  countTableCheck(judged: boolean): void {
    this.tableChecks++;
    if (judged) this.judgedTableChecks++;
  }

  count(shot: Shot, { outcome, code }: JudgedReply): void {
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

  /** Routes of which every call was rejected. */
  get neverReached(): RouteName[] {
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

  /** For each route: calls carried out or read, of all. */
  get table(): readonly string[] {
    return [...this.#routes].map(([name, counts]) => {
      const done = (counts.get("accepted") ?? 0) + (counts.get("read") ?? 0);
      return `${name} ${done}/${[...counts.values()].reduce((sum, count) => sum + count, 0)}`;
    });
  }

  get codes(): readonly (readonly [string, number])[] {
    return [...this.#codes].toSorted((a, b) => b[1] - a[1]);
  }
}
