import { brief } from "../output.ts";
import { drawBand, markMeanings, type Paint, plain } from "./ownership-band.ts";
import type { Payment } from "./treasury.ts";

export interface FrameInput {
  readonly head: readonly string[];
  readonly payments: readonly Payment[];
  readonly workers: readonly string[];
  /** What has happened lately, oldest first. */
  readonly log: readonly string[];
  readonly keys: string;
  readonly now: number;
  readonly columns: number;
  readonly rows: number;
}

export interface FramePaint extends Paint {
  good(text: string): string;
  bad(text: string): string;
  bold(text: string): string;
}

const colours = [36, 35, 33, 34, 32];

/** Colours for a terminal. */
export const terminalPaint: FramePaint = {
  owner: (number, text) => code(colours[number % colours.length]!, text),
  dim: (text) => code(2, text),
  good: (text) => code(32, text),
  bad: (text) => code(31, text),
  bold: (text) => code(1, text),
};

export const plainPaint: FramePaint = { ...plain, good: (text) => text, bad: (text) => text, bold: (text) => text };

const code = (number: number, text: string): string => (text === "" ? "" : `\u001b[${number}m${text}\u001b[0m`);

/** The widest line that is still easy to read. */
const maxColumns = 100;
/** Lines kept for what happened lately. */
const minLogLines = 3;

/** Everything that stands on the terminal, as lines; never more of them, and never longer ones, than fit. */
export function drawFrame(input: FrameInput, paint: FramePaint): string[] {
  const { head, payments, workers, log: told, keys, columns, rows } = input;
  const width = Math.max(20, Math.min(columns, maxColumns) - 4);
  const latest = payments.at(-1);
  const top = [...head.map((line, k) => (k === 0 ? paint.bold : String)(brief(line, width + 2))), ""];
  const bottom = [
    "",
    paint.dim(brief(`workers ${workers.join(", ")}    ${markMeanings}`, width)),
    paint.bold(brief(keys, width + 2)),
  ];
  const room = Math.max(minLogLines + 4, rows - 1 - top.length - bottom.length);
  const middle =
    latest === undefined
      ? []
      : [
          ...paymentLines(latest, input.now, width, paint).slice(0, Math.max(3, room - minLogLines - 2)),
          `  ${worldLine(latest, paint)}`,
        ];
  const earlier = payments
    .slice(0, -1)
    .map((payment) => paint.dim(`  ${brief(`${payment.run}  ${endOf(payment)}`, width)}`));
  const free = room - middle.length - 1;
  const before = last(earlier, Math.min(3, free - minLogLines));
  const lately = last(told, free - before.length).map((line) => `  ${brief(line, width)}`);
  return last([...top, ...before, ...middle, "", ...lately, ...bottom], rows - 1);
}

const last = <T>(list: readonly T[], most: number): T[] => (most <= 0 ? [] : list.slice(-most));

/** One payment: its state, and the band of its owners. */
export function paymentLines(payment: Payment, now: number, width: number, paint: FramePaint): string[] {
  const { run, status, wire, terms, records, endedAt, lease } = payment;
  const held =
    lease?.state === "HELD" && lease.label !== null
      ? `${lease.label} holds it for ${(lease.remainingMs / 1_000).toFixed(1)} s more`
      : endedAt === undefined
        ? "nobody holds it"
        : "";
  const state = [status, wire === undefined ? "" : `bank.wire ${wire}`, held].filter((word) => word !== "").join(" · ");
  const band = drawBand({ terms, records, now: endedAt ?? now, width }, paint);
  return [`  ${paint.bold(run)}  ${brief(state, width - run.length - 2)}`, ...band.map((line) => `  ${line}`)];
}

/** "world: 1 wire": what an auditor of the bank would count. */
export function worldLine({ wires, endedAt }: Payment, paint: FramePaint): string {
  const said = `world: ${wires} ${wires === 1 ? "wire" : "wires"}`;
  if (wires > 1) return paint.bad(said);
  return endedAt === undefined ? said : wires === 1 ? paint.good(said) : paint.bad(said);
}

export function endOf(payment: Payment): string {
  const { status, endedAt } = payment;
  return `${endedAt === undefined ? `${status}, unfinished` : status} · ${worldLine(payment, plainPaint)}`;
}
