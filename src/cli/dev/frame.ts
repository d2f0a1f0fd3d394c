import { brief } from "../output.ts";
import { drawBand, markMeanings, type Paint, plain } from "./ownership-band.ts";
import type { Payment } from "./treasury.ts";

export interface FrameInput {
  readonly head: readonly string[];
  readonly payments: readonly Payment[];
  readonly workers: readonly string[];
  /** Recent events, oldest first. */
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
/** Lines reserved for recent events. */
const minLogLines = 3;

/** All lines of the terminal, cut to its height and width. */
export function drawFrame(input: FrameInput, paint: FramePaint): string[] {
  const { head, payments, workers, log, keys, columns, rows } = input;
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
  const recent = last(log, free - before.length).map((line) => `  ${brief(line, width)}`);
  return last([...top, ...before, ...middle, "", ...recent, ...bottom], rows - 1);
}

const last = <T>(list: readonly T[], max: number): T[] => (max <= 0 ? [] : list.slice(-max));

/** One payment: its state, and the band of its owners. */
export function paymentLines(payment: Payment, now: number, width: number, paint: FramePaint): string[] {
  const { run, status, wire, terms, records, endedAt, lease } = payment;
  const held =
    lease?.state === "HELD" && lease.label !== null
      ? `held by ${lease.label}, expires in ${(lease.remainingMs / 1_000).toFixed(1)} s`
      : endedAt === undefined
        ? "not held"
        : "";
  const state = [status, wire === undefined ? "" : `bank.wire ${wire}`, held].filter((part) => part !== "").join(" · ");
  const band = drawBand({ terms, records, now: endedAt ?? now, width }, paint);
  return [`  ${paint.bold(run)}  ${brief(state, width - run.length - 2)}`, ...band.map((line) => `  ${line}`)];
}

/** "world: 1 wire": the wires that the bank has made. */
export function worldLine({ wires, endedAt }: Payment, paint: FramePaint): string {
  const text = `world: ${wires} ${wires === 1 ? "wire" : "wires"}`;
  if (wires > 1) return paint.bad(text);
  return endedAt === undefined ? text : wires === 1 ? paint.good(text) : paint.bad(text);
}

export function endOf(payment: Payment): string {
  const { status, endedAt } = payment;
  return `${endedAt === undefined ? `${status}, unfinished` : status} · ${worldLine(payment, plainPaint)}`;
}
