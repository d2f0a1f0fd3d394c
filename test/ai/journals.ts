import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import manifest7 from "ai/package.json" with { type: "json" };
import manifest6 from "ai-6/package.json" with { type: "json" };
import { decode, encode } from "../../src/base/codec.ts";
import type { NewRecord } from "../../src/model/records.ts";
import { VirtualTape } from "../../testkit/kit/virtual-tape.ts";
import { treasury, type Version, versions } from "./treasury.ts";

/*
 * Journals of agents that wait for an approval, one file for each version of the SDK and each way to call it. Every later
 * version must replay them: runs in progress outlive an upgrade. `node test/ai/journals.ts` adds those of the installed
 * versions; a file is never changed.
 */

export const folder = join(import.meta.dirname, "journals");
export const prompt = "Pay invoice 2026-117";
export const modes = ["generate", "stream"] as const;
type Mode = (typeof modes)[number];

export interface KeptJournal {
  readonly file: string;
  readonly mode: Mode;
  readonly version: Version;
}

export const keptJournals: readonly KeptJournal[] = readdirSync(folder).map((file) => {
  const [, major, mode] = /^ai-(\d+)\.\d+\.\d+-(generate|stream)\.jsonl$/.exec(file)!;
  return { file, mode: mode as Mode, version: versions.find(({ sdk }) => sdk === Number(major))! };
});

export const recordsIn = ({ file }: KeptJournal): NewRecord[] =>
  readFileSync(join(folder, file), "utf8")
    .trim()
    .split("\n")
    .map((line) => decode(line) as NewRecord);

/** What the drives of a run write about themselves is not part of its history. */
const ofTerms = new Set(["run.created", "term.started", "term.ended", "notes.taken"]);

async function write(version: Version, mode: Mode): Promise<void> {
  const { chat, runner } = treasury(version, mode, { strict: true, approve: true });
  await using tape = await VirtualTape.open({ runner, log: "silent" });
  await tape.start(chat, prompt, { id: "run" });
  await tape.settle();
  const records = await tape.store.read.journal(tape.tape.tenant, { run: "run" });
  const lines = records.flatMap(({ kind, data }) => (ofTerms.has(kind) ? [] : [encode({ kind, data })]));
  const { version: installed } = version.sdk === 7 ? manifest7 : manifest6;
  const file = `ai-${installed}-${mode}.jsonl`;
  if (!keptJournals.some((kept) => kept.file === file)) writeFileSync(join(folder, file), `${lines.join("\n")}\n`);
}

if (process.argv[1] === import.meta.filename) {
  for (const version of versions) for (const mode of modes) await write(version, mode);
}
