/** More names than a workflow has steps. One that generates names for each run pays for an async context each time. */
const maxNames = 1_000;

/**
 * The bodies of one workflow that return a value, never a promise. Such a body has finished when it returns, so a
 * variable can name it at a fraction of the cost of an async context. The first call of each body has an async context:
 * it detects bodies whose timers or promises request an operation later, which no longer count as immediate.
 */
export class ImmediateBodies {
  readonly #names = new Map<string, boolean>();

  has(name: string): boolean {
    return this.#names.get(name) === true;
  }

  /** The body returned a value. */
  add(name: string): void {
    if (this.#names.size < maxNames && !this.#names.has(name)) this.#names.set(name, true);
  }

  /** The body returned a promise, or left a timer or promise behind that requested an operation. */
  exclude(name: string): void {
    if (this.#names.size < maxNames || this.#names.has(name)) this.#names.set(name, false);
  }
}

/** The immediate bodies of all workflows of a process. */
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
