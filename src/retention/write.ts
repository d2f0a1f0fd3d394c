import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { hash } from "../base/late-builtins.ts";
import { network } from "../base/network.ts";
import { TapeError } from "../model/errors.ts";
import type { DueTree, RetentionOps } from "../store/contract/retention.ts";
import type { Archive } from "./archive.ts";
import { type ArchiveHeader, linesOf } from "./lines.ts";

/** Longer names of tenants are shortened: a folder's name has at most 255 bytes. */
const maxFolder = 120;

/** The folder of a tenant: one tenant's files never contain another's runs. */
export function tenantFolder(tenant: string): string {
  const safe = tenant.replace(/[^A-Za-z0-9_-]/g, (char) =>
    [...Buffer.from(char)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join(""),
  );
  return safe.length <= maxFolder ? safe : `${safe.slice(0, maxFolder - 40)}-${hash("sha256", tenant).slice(0, 32)}`;
}

/**
 * The name follows from the trees and their last records. A repeat after a crash writes the same name and bytes, and no
 * other batch of any store has this name.
 */
export function fileNameOf(
  { store, epoch, tenant }: ArchiveHeader,
  trees: readonly DueTree[],
  abandoned: number,
): string {
  const [first] = trees;
  const root = first!.runs.find(({ journal }) => journal === first!.root)!;
  const day = new Date(root.endedAt!).toISOString().slice(0, 10);
  const heads = trees.flatMap(({ journals }) => journals.map(({ journal, seq }) => `${journal}:${seq}`)).sort();
  const about = hash("sha256", heads.join(" ")).slice(0, 16);
  return `${tenantFolder(tenant)}/${day}/${store.slice(0, 8)}-${epoch}-${first!.root}-${about}${abandoned > 0 ? `-${abandoned}` : ""}.jsonl.gz`;
}

/** Compresses the text of a file. */
export type Zip = (lines: AsyncIterable<string>, signal: AbortSignal) => AsyncIterable<Uint8Array>;

export const gzipped: Zip = (lines, signal) =>
  Readable.from(lines).compose(network.zlib.createGzip({ level: 4 }), { signal }) as AsyncIterable<Uint8Array>;

/** Writes trees to the archive and asks it for the bytes. Throws unless the archive has them. */
export async function archiveTrees(
  ops: RetentionOps,
  archive: Archive,
  header: ArchiveHeader,
  trees: readonly DueTree[],
  { name, signal, zip }: { readonly name: string; readonly signal: AbortSignal; readonly zip: Zip },
): Promise<{ readonly sha256: string; readonly bytes: number }> {
  const hasher = createHash("sha256");
  let bytes = 0;
  async function* zipped(): AsyncGenerator<Uint8Array> {
    for await (const block of zip(linesOf(ops, header, trees), signal)) {
      hasher.update(block);
      bytes += block.length;
      yield block;
    }
  }
  await archive.put(name, zipped());
  const sha256 = hasher.digest("hex");
  if (!(await archive.has(name, sha256))) {
    const message = `the archive does not have ${name} as it was written: nothing was deleted`;
    throw new TapeError("TAPE_ARCHIVE", message, { archive: name });
  }
  return { sha256, bytes };
}
