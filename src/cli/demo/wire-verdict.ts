import type { Tape } from "../../host/tape.ts";
import type { Screen } from "../screen.ts";
import { ledgerLines } from "./ledger.ts";
import type { Ledger } from "./treasury/ledger.ts";

/** How often the bank has wired: "1 wire". */
export function wires(world: Ledger): string {
  const count = world.entries().filter(({ act }) => act === "wire").length;
  return `${count} wire${count === 1 ? "" : "s"}`;
}

/** What the journals, the ledger of terms and the world say about a run whose first effect is a wire. 0: all is well. */
export async function wireVerdict(screen: Screen, app: Tape, run: string, world: Ledger): Promise<number> {
  const wire = (await app.effects.list({ run }))[0];
  screen.step("What the journals say about the wire", "the run's own, and the one of an act of which nobody was sure");
  const { records } = await app.store.read.feed(undefined, 1_000, app.tenant);
  for (const { journal, in: inside, token, kind, data } of records) {
    const about = inside === "journal" && kind !== "item.opened" && "pos" in data ? data.pos : undefined;
    if (wire === undefined || about !== wire.pos) continue;
    const { to, status, observation, reason } = data as Readonly<Record<string, unknown>>;
    const words = [to ?? status ?? observation, reason].filter((word) => word !== undefined).join(", ");
    const whose = journal === wire.journal ? "run" : "act";
    screen.line(`   ${whose}  token ${token}  ${kind.padEnd(18)} ${screen.dim(words)}`.trimEnd());
  }
  screen.step("The ledger of terms", "who owned the run, from when to when, and why");
  for (const line of ledgerLines(await app.store.read.terms(app.tenant, { run }))) screen.line(`   ${line}`);

  const fine = wire?.status === "CONFIRMED" && wires(world) === "1 wire";
  screen.line();
  screen.line(`run: ${(await app.runs.get(run))?.status ?? "gone"}`);
  screen.line(fine ? screen.good(`world: ${wires(world)}`) : screen.bad(`world: ${wires(world)}`));
  return fine ? 0 : 1;
}
