import type { Tape } from "../../host/tape.ts";
import type { Screen } from "../screen.ts";
import { termLines } from "./term-lines.ts";
import type { Ledger } from "./treasury/ledger.ts";

/** The number of wires that the bank has made: "1 wire". */
export function wires(world: Ledger): string {
  const count = world.entries().filter(({ kind }) => kind === "wire").length;
  return `${count} wire${count === 1 ? "" : "s"}`;
}

/** Prints the journals, the term history and the world of a run whose first effect is a wire. Returns the exit code. */
export async function wireVerdict(screen: Screen, app: Tape, run: string, world: Ledger): Promise<number> {
  const wire = (await app.effects.list({ run }))[0];
  screen.step("The records of the wire", "from the run's journal, and from the item that settled it");
  const { records } = await app.store.read.feed(undefined, 1_000, app.tenant);
  for (const { journal, in: inside, token, kind, data } of records) {
    const pos = inside === "journal" && kind !== "item.opened" && "pos" in data ? data.pos : undefined;
    if (wire === undefined || pos !== wire.pos) continue;
    const { to, status, observation, reason } = data as Readonly<Record<string, unknown>>;
    const details = [to ?? status ?? observation, reason].filter((detail) => detail !== undefined).join(", ");
    const owner = journal === wire.journal ? "run " : "item";
    screen.line(`   ${owner}  token ${token}  ${kind.padEnd(18)} ${screen.dim(details)}`.trimEnd());
  }
  screen.step("The term history", "who owned the run, from when to when, and why");
  for (const line of termLines(await app.store.read.terms(app.tenant, { run }))) screen.line(`   ${line}`);

  const correct = wire?.status === "CONFIRMED" && wires(world) === "1 wire";
  screen.line();
  screen.line(`run: ${(await app.runs.get(run))?.status ?? "gone"}`);
  screen.line(correct ? screen.good(`world: ${wires(world)}`) : screen.bad(`world: ${wires(world)}`));
  return correct ? 0 : 1;
}
