import type { RemoteOptions, RemoteStore } from "./remote.ts";

/**
 * Connects to a server, or to several replicas of it, and reads what its credential may do.
 *
 * @example
 * const store = await openRemote("https://tape.example", { token: process.env.TAPE_TOKEN });
 */
export async function openRemote(urls: string | readonly string[], options: RemoteOptions = {}): Promise<RemoteStore> {
  // Loads the client and the whole contract here, because an embedded program needs neither.
  const store = await import("./store.ts");
  return store.openRemote(urls, options);
}
