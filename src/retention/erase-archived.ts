import { createHash } from "node:crypto";
import { erasedBody, erasedLabels } from "../model/erasure.ts";
import { TapeError } from "../model/errors.ts";
import type { Archive } from "./archive.ts";
import { type ArchiveLine, textLines } from "./read.ts";
import { gzipped, type Zip } from "./write.ts";

/**
 * Erases the payloads of a run and its tree in a file of the archive: the file is written again without them, under its
 * name, and replaces the earlier one only as a whole. Lines of other trees keep their bytes. Returns how many runs it
 * concerns; a repeat finds them erased, and writes the same bytes.
 */
export async function eraseArchived(
  archive: Archive,
  name: string,
  run: string,
  { signal, zip = gzipped }: { readonly signal: AbortSignal; readonly zip?: Zip },
): Promise<number> {
  const erased = await treeOf(archive, name, run);
  const hasher = createHash("sha256");
  async function* body(): AsyncGenerator<Uint8Array> {
    for await (const block of zip(erasedLines(archive, name, erased), signal)) {
      hasher.update(block);
      yield block;
    }
  }
  await archive.put(name, body());
  if (await archive.has(name, hasher.digest("hex"))) return erased.size;
  const message = `the archive does not confirm the new bytes of ${name}: check it, then repeat`;
  throw new TapeError("TAPE_ARCHIVE", message, { archive: name });
}

/** The runs of the same tree, as the file's first lines have them. */
async function treeOf(archive: Archive, name: string, run: string): Promise<ReadonlySet<string>> {
  const trees = new Map<string, string>();
  for await (const text of textLines(archive, name)) {
    const line = JSON.parse(text) as ArchiveLine;
    if (line.type === "run") trees.set(line.run!, String(line.tree));
    else if (line.type !== "archive") break;
  }
  const tree = trees.get(run);
  if (tree === undefined) {
    throw new TapeError("TAPE_ARCHIVE", `the file ${name} has no run ${run}`, { archive: name, run });
  }
  return new Set([...trees].flatMap(([id, of]) => (of === tree ? [id] : [])));
}

async function* erasedLines(archive: Archive, name: string, erased: ReadonlySet<string>): AsyncGenerator<string> {
  for await (const text of textLines(archive, name)) {
    const line = JSON.parse(text) as ArchiveLine;
    if (line.run === undefined || !erased.has(line.run)) yield `${text}\n`;
    else if (line.type === "run") {
      const labels = line.labels === null ? null : erasedLabels(line.labels as Record<string, string>);
      yield `${JSON.stringify({ ...line, labels, erased: true })}\n`;
    } else if (line.type === "record") {
      // The data is the last field, and stays the text that the store had.
      const at = text.indexOf('"data":') + '"data":'.length;
      yield `${text.slice(0, at)}${erasedBody(String(line.kind), text.slice(at, -1))}}\n`;
    }
  }
}
