import { erasedBody, erasedLabels } from "../model/erasure.ts";
import type { DueTree, RetentionOps, TreeJournal } from "../store/contract/retention.ts";

/** The version of the format, in the first line of every file. */
export const archiveVersion = 1;

/** What an archive's file begins with: the store, its epoch, and the tenant. */
export interface ArchiveHeader {
  readonly store: string;
  readonly epoch: number;
  readonly tenant: string;
}

/** Records of one query: its result stays small, whatever the tree. */
const recordsAtOnce = 1_000;
/** Characters that are passed on together. */
const blockChars = 64 * 1024;

/**
 * The lines of a file: a header, the runs, then their records, chunks and blobs. One JSON object a line. A record's body
 * is the text that the store has, so that it can be compared byte by byte, and so that what is sealed stays sealed. Of a
 * run whose erasure has started, nothing but the erased text is written. Reads a bounded part at a time.
 */
export async function* linesOf(
  ops: RetentionOps,
  header: ArchiveHeader,
  trees: readonly DueTree[],
): AsyncGenerator<string> {
  const { tenant } = header;
  const runs = trees.flatMap(({ runs }) => runs);
  let block = `${JSON.stringify({ type: "archive", version: archiveVersion, ...header, trees: trees.length, runs: runs.length })}\n`;
  const idOf = new Map<number, string>();
  for (const tree of trees) {
    const treeId = tree.runs.find(({ journal }) => journal === tree.root)!.id;
    for (const { labels: stored, ...run } of tree.runs) {
      const labels = run.erased && stored !== null ? JSON.stringify(erasedLabels(JSON.parse(stored))) : stored;
      idOf.set(run.journal, JSON.stringify(run.id));
      const { id, journal, ...rest } = run;
      const line = JSON.stringify({ type: "run", run: id, tree: treeId, journal, ...rest }).slice(0, -1);
      block += `${line},"labels":${labels ?? "null"}}\n`;
      if (block.length >= blockChars) {
        yield block;
        block = "";
      }
    }
  }
  const runOf = new Map<number, string>();
  const journals = trees.flatMap(({ journals }) => journals);
  const erasedRuns = new Set(runs.filter(({ erased }) => erased).map(({ journal }) => journal));
  const erased = new Set<number>();
  for (const { run, journal } of journals) {
    runOf.set(journal, idOf.get(run)!);
    if (erasedRuns.has(run)) erased.add(journal);
  }
  for (const { numbers, after, through } of slicesOf(journals)) {
    let place = after;
    for (;;) {
      const page = await ops.records(tenant, numbers, { ...(place && { after: place }), through });
      for (const { journal, seq, token, at, kind, body } of page) {
        const where = journal < 0 ? `"journal":${-journal},"inbox":true` : `"journal":${journal}`;
        block += `{"type":"record","run":${runOf.get(journal)},${where},"seq":${seq},"token":"${token}","at":${at},"kind":"${kind}","data":${erased.has(journal) ? erasedBody(kind, body) : body}}\n`;
        if (block.length >= blockChars) {
          yield block;
          block = "";
        }
      }
      const last = page.at(-1);
      if (last === undefined || page.more !== true) break;
      place = { journal: last.journal, seq: last.seq };
    }
  }
  if (block !== "") yield block;
  const members = runs.flatMap(({ journal, erased }) => (erased ? [] : [journal]));
  yield* chunkLines(ops, tenant, members, idOf);
  yield* blobLines(ops, tenant, members, idOf);
}

interface Slice {
  readonly numbers: readonly number[];
  readonly after: { readonly journal: number; readonly seq: number } | undefined;
  readonly through: number;
}

/** Groups of small journals, and ranges of a large one, in the order of their numbers. */
function* slicesOf(journals: readonly TreeJournal[]): Generator<Slice> {
  const sorted = [...journals].sort((a, b) => a.journal - b.journal);
  let numbers: number[] = [];
  let records = 0;
  const all = Number.MAX_SAFE_INTEGER;
  for (const { journal, seq } of sorted) {
    if (numbers.length > 0 && records + seq > recordsAtOnce) {
      yield { numbers, after: undefined, through: all };
      numbers = [];
      records = 0;
    }
    if (seq > recordsAtOnce) {
      for (let from = 0; from < seq; from += recordsAtOnce)
        yield { numbers: [journal], after: { journal, seq: from }, through: Math.min(seq, from + recordsAtOnce) };
      continue;
    }
    numbers.push(journal);
    records += seq;
  }
  if (numbers.length > 0) yield { numbers, after: undefined, through: all };
}

type Ids = ReadonlyMap<number, string>;

async function* chunkLines(
  ops: RetentionOps,
  tenant: string,
  runs: readonly number[],
  ids: Ids,
): AsyncGenerator<string> {
  for (let after: Parameters<RetentionOps["chunks"]>[2]; ; ) {
    const page = await ops.chunks(tenant, runs, after);
    const last = page.at(-1);
    if (last === undefined) return;
    yield page
      .map(({ run, stream, offset, part, token, at, body }) => {
        const about = JSON.stringify({ stream, offset, part, token, at }).slice(1, -1);
        return `{"type":"chunk","run":${ids.get(run)},${about},"value":${body}}\n`;
      })
      .join("");
    if (page.more !== true) return;
    after = { run: last.run, name: last.stream, n: last.offset };
  }
}

async function* blobLines(
  ops: RetentionOps,
  tenant: string,
  runs: readonly number[],
  ids: Ids,
): AsyncGenerator<string> {
  for (let after: Parameters<RetentionOps["blobs"]>[2]; ; ) {
    const page = await ops.blobs(tenant, runs, after);
    const last = page.at(-1);
    if (last === undefined) return;
    for (const { run, body, ...blob } of page) {
      yield `{"type":"blob","run":${ids.get(run)},${JSON.stringify({ ...blob, text: body }).slice(1)}\n`;
    }
    if (page.more !== true) return;
    after = { run: last.run, name: last.blob, n: last.n };
  }
}
