import { decode } from "../../../base/codec.ts";
import { type Approvers, approvalRefusal } from "../../../model/approvers.ts";
import { TapeError } from "../../../model/errors.ts";
import type { RecordData } from "../../../model/records.ts";
import { type Plan, queryRows } from "../plan.ts";

interface SignalledRun {
  readonly journal: number;
  readonly root: number;
  readonly run: string;
}

/** An approval that came before its gate: it is judged as the gate would judge it by default. */
const gateToCome = { pos: undefined, gate: { approvers: undefined, bound: true } };

/**
 * The open gates with approvers, or with a bound call, that this signal may answer. If every gate that could take it
 * refuses the sender, it is rejected before anything is written. A gate with approvers that opens later takes only
 * signals sent from then on. A bound signal may come before its gate, but not from the token that started the run.
 */
export function* approvals(
  { journal, root, run }: SignalledRun,
  signal: RecordData<"signal.sent">,
): Plan<readonly number[]> {
  const gates = yield* queryRows("gate.waiting", { run: journal, name: signal.name });
  const open = gates
    .filter(({ binds }) => signal.binds === undefined || binds === signal.binds)
    .map(({ pos, binds, approvers }) => ({
      pos: Number(pos),
      gate: {
        approvers: approvers === null ? undefined : (JSON.parse(approvers as string) as Approvers),
        bound: binds !== null,
      },
    }));
  const candidates = open.length > 0 || signal.binds === undefined ? open : [gateToCome];
  const [first] = yield* queryRows("journal.page", { journal: root, from: 1, limit: 1, tenant: null });
  const { starters } = decode(first!.body) as RecordData<"run.created">;
  const judged = candidates.map(({ pos, gate }) => ({ pos, gate, refusal: approvalRefusal(gate, signal, starters) }));
  const [refused] = judged;
  if (refused?.refusal !== undefined && judged.every(({ refusal }) => refusal !== undefined)) {
    const { code, why } = refused.refusal;
    const details = { run, gate: signal.name, ...(refused.pos !== undefined && { pos: refused.pos }) };
    throw new TapeError(code, `this signal may not answer gate ${signal.name} of run ${run}: ${why}`, details);
  }
  return judged.flatMap(({ pos, gate, refusal }) => {
    const isGuarded = gate.approvers !== undefined || gate.bound;
    return pos === undefined || !isGuarded || refusal !== undefined ? [] : [pos];
  });
}
