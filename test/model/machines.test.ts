import { describe, expect, it } from "vitest";
import { isTapeError } from "../../src/model/errors.ts";
import type { Machine } from "../../src/model/machine.ts";
import {
  effectMachine,
  gateMachine,
  leaseMachine,
  obligationMachine,
  runMachine,
  timerMachine,
} from "../../src/model/machines.ts";

/** A second definition, from semantics.md and leases.md: a change of a machine must change both. */
const legal: Readonly<Record<string, { machine: Machine<string, string>; steps: Readonly<Record<string, string>> }>> = {
  run: {
    machine: runMachine as Machine<string, string>,
    steps: {
      LIVE: "ENDING COMPLETED FAILED CANCELLED STUCK",
      ENDING: "COMPLETED FAILED CANCELLED COMPENSATING STUCK",
      COMPENSATING: "COMPENSATED STUCK",
      STUCK: "LIVE ENDING COMPENSATING",
      COMPLETED: "",
      FAILED: "",
      CANCELLED: "",
      COMPENSATED: "",
    },
  },
  effect: {
    machine: effectMachine as Machine<string, string>,
    steps: {
      PENDING: "DISPATCHED UNKNOWN STUCK WITHDRAWN",
      DISPATCHED: "CONFIRMED FAILED UNKNOWN PENDING",
      UNKNOWN: "CONFIRMED FAILED PENDING STUCK",
      STUCK: "CONFIRMED FAILED PENDING",
      CONFIRMED: "",
      FAILED: "",
      WITHDRAWN: "",
    },
  },
  obligation: {
    machine: obligationMachine as Machine<string, string>,
    steps: {
      ARMED: "PENDING DISCHARGED",
      PENDING: "COMMITTED STUCK",
      COMMITTED: "COMPENSATED UNKNOWN PENDING STUCK",
      UNKNOWN: "COMPENSATED PENDING STUCK",
      STUCK: "COMPENSATED PENDING",
      COMPENSATED: "",
      DISCHARGED: "",
    },
  },
  gate: {
    machine: gateMachine as Machine<string, string>,
    steps: { OPEN: "RECEIVED TIMED_OUT WITHDRAWN", RECEIVED: "", TIMED_OUT: "", WITHDRAWN: "" },
  },
  timer: {
    machine: timerMachine as Machine<string, string>,
    steps: { SET: "FIRED CANCELLED", FIRED: "", CANCELLED: "" },
  },
  lease: {
    machine: leaseMachine as Machine<string, string>,
    steps: { FREE: "HELD", HELD: "HELD EXPIRED DOOMED FREE", EXPIRED: "HELD DOOMED FREE", DOOMED: "HELD FREE" },
  },
};
const words = (text: string | undefined) => (text ?? "").split(" ").filter(Boolean);

describe.each(Object.entries(legal))("the machine of a %s", (name, { machine, steps }) => {
  it("has exactly these states", () => {
    expect([...machine.states].sort()).toEqual(Object.keys(steps).sort());
    expect(machine.name).toBe(name);
  });

  it("allows every legal transition and refuses all others", () => {
    let refused = 0;
    for (const from of machine.states) {
      for (const to of machine.states) {
        if (words(steps[from]).includes(to)) expect(() => machine.assert(from, to)).not.toThrow();
        else {
          refused++;
          expect(() => machine.assert(from, to), `${from} → ${to}`).toThrow(
            expect.objectContaining({ code: "TAPE_ILLEGAL_TRANSITION", details: { from, to } }),
          );
        }
      }
    }
    expect(refused).toBe(machine.states.length ** 2 - Object.values(steps).flatMap(words).length);
  });

  it("next and sourcesOf agree with the table", () => {
    for (const [event, { from, to }] of Object.entries(machine.events)) {
      for (const state of machine.states) {
        expect(machine.next(state, event), `${state} ${event}`).toBe(from.includes(state) ? to : undefined);
      }
    }
    for (const to of machine.states) {
      const sources = machine.states.filter((from) => words(steps[from]).includes(to));
      expect([...machine.sourcesOf(to)].sort()).toEqual(sources.sort());
    }
  });

  it("ends in its final states and reaches every state from an initial one", () => {
    for (const state of machine.final) expect(words(steps[state])).toEqual([]);
    const dead = machine.states.filter((state) => words(steps[state]).length === 0);
    expect(dead.sort()).toEqual([...machine.final].sort());
    const reached = new Set<string>(machine.initial);
    for (const state of reached) for (const next of words(steps[state])) reached.add(next);
    expect(reached).toEqual(new Set(machine.states));
  });
});

it("the error names both states", () => {
  try {
    timerMachine.assert("FIRED", "SET");
    expect.unreachable();
  } catch (error) {
    expect(isTapeError(error, "TAPE_ILLEGAL_TRANSITION")).toBe(true);
    expect(String(error)).toContain("timer: no transition from FIRED to SET");
  }
});
