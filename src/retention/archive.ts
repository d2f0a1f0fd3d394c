/**
 * Where ended runs go before they are deleted. A name has parts separated by `/`: the tenant, the day, the file. `put`
 * must be durable when it resolves, and a second `put` of a name replaces the first. Nothing is deleted from the store
 * unless `has` confirms the bytes, so that an archive that loses a file without noticing is found before the loss counts.
 *
 * @example
 * export const buildArchive = (): Archive => ({
 *   put: (name, body) => bucket.upload(name, body),
 *   has: async (name, sha256) => (await bucket.sha256(name)) === sha256,
 *   get: (name) => bucket.download(name),
 * });
 */
export interface Archive {
  /** Stores a file under a name, whole or not at all. */
  put(name: string, body: AsyncIterable<Uint8Array>): Promise<unknown>;
  /** Whether the archive has this name with exactly these bytes: it reads them, or compares a hash that it computed itself. */
  has(name: string, sha256: string): Promise<boolean>;
  /** The bytes, or undefined. */
  get(name: string): Promise<AsyncIterable<Uint8Array> | undefined>;
  /** Deletes a file that nothing refers to: left by a crash between writing and deleting. */
  remove?(name: string): Promise<unknown>;
  /** Shown to operators, without secrets. */
  readonly label?: string;
}
