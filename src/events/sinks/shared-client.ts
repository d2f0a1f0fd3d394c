/** A client that is opened on first use, shared by all lanes, and opened again after a failure or when it is closed. */
export class SharedClient<Client> {
  readonly #open: () => Promise<Client>;
  readonly #isClosed: (client: Client) => boolean;
  #client: Promise<Client> | undefined;

  constructor(open: () => Promise<Client>, isClosed: (client: Client) => boolean = () => false) {
    this.#open = open;
    this.#isClosed = isClosed;
  }

  async get(): Promise<Client> {
    const known = this.#client;
    const usable = await known?.then((client) => !this.#isClosed(client)).catch(() => false);
    // Another lane may have opened a new one meanwhile.
    if (usable !== true && this.#client === known) this.#client = this.#open();
    return this.#client!;
  }

  /** Calls `close` with the client if there is one. */
  async close(close: (client: Client) => Promise<unknown>): Promise<void> {
    const client = await this.#client?.catch(() => undefined);
    this.#client = undefined;
    if (client !== undefined) await close(client);
  }
}
