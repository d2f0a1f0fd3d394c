/** More names than a workflow has steps. One that makes up names for each run pays for an async context each time. */
const maxNames = 1_000;

/**
 * The bodies of one workflow that return a value, never a promise. Such a body is over when it returns: a variable says
 * whose it is, at a fraction of the cost of an async context. A body whose timers or promises ask for an operation later
 * is found out in the async context of its first call, and counts as immediate no more.
 */
export class ImmediateBodies {
  readonly #names = new Map<string, boolean>();

  has(name: string): boolean {
    return this.#names.get(name) === true;
  }

  /** It returned a value. */
  add(name: string): void {
    if (this.#names.size < maxNames && !this.#names.has(name)) this.#names.set(name, true);
  }

  /** It returned a promise, or left something behind that asked for an operation. */
  exclude(name: string): void {
    if (this.#names.size < maxNames || this.#names.has(name)) this.#names.set(name, false);
  }
}

/** The immediate bodies of all workflows of a worker. */
export class ImmediateSteps {
  readonly #workflows = new Map<string, ImmediateBodies>();

  of(workflow: string): ImmediateBodies {
    const known = this.#workflows.get(workflow);
    if (known !== undefined) return known;
    const bodies = new ImmediateBodies();
    this.#workflows.set(workflow, bodies);
    return bodies;
  }
}
