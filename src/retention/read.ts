import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { network } from "../base/network.ts";
import { TapeError } from "../model/errors.ts";
import type { Archive } from "./archive.ts";

/** A line of an archive's file, see `linesOf`. */
export type ArchiveLine = Readonly<Record<string, unknown>> & { readonly type: string; readonly run?: string };

/** The lines of a file as text, one at a time. */
export async function* textLines(archive: Archive, name: string): AsyncGenerator<string> {
  const body = await archive.get(name);
  if (body === undefined) throw new TapeError("TAPE_ARCHIVE", `the archive has no file ${name}`, { archive: name });
  const unzipped = Readable.from(body).compose(network.zlib.createGunzip());
  for await (const line of createInterface({
    input: unzipped as unknown as NodeJS.ReadableStream,
    crlfDelay: Infinity,
  }))
    yield line;
}

/** Everything that a file has about one run: the run, then its records, chunks and blobs. */
export async function* archivedRun(archive: Archive, name: string, run: string): AsyncGenerator<ArchiveLine> {
  const mark = `,"run":${JSON.stringify(run)},`;
  for await (const text of textLines(archive, name)) {
    // The run comes right behind the type: a line of another run is not parsed.
    if (text.startsWith(mark, text.indexOf(","))) yield JSON.parse(text) as ArchiveLine;
  }
}
