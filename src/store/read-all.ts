import { TapeError } from "../model/errors.ts";
import type { Page } from "./contract/store.ts";

interface Numbered {
  readonly journal: number;
  readonly seq: number;
}

/** Page after page, until one is not full. Along a journal `seq` is dense from 1: a gap is noticed here, for nothing. */
export async function readAll<R extends Numbered>(page: (from: number) => Promise<Page<R>>): Promise<R[]> {
  const all: R[] = [];
  for (;;) {
    const from = all.length + 1;
    const some = await page(from);
    const gap = some.findIndex(({ seq }, k) => seq !== from + k);
    if (gap >= 0) throw damaged(from + gap, some[gap]!);
    all.push(...some);
    if (some.more !== true) return all;
  }
}

function damaged(missing: number, { journal, seq }: Numbered): TapeError {
  const message = `record ${missing} of journal ${Math.abs(journal)} is missing: after ${missing - 1} comes ${seq}`;
  return new TapeError("TAPE_JOURNAL_DAMAGED", message, { journal, missing, found: seq });
}
