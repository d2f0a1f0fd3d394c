import { type GateDefinition, gate } from "../src/sdk/gate.ts";

/** A gate that one approver may answer, with a number only. */
export const guardedName = "guarded";
export const approver = "ada";

export const guardedGate: GateDefinition<number> = gate(guardedName, {
  approvers: { by: [approver] },
  schema: {
    "~standard": {
      version: 1,
      vendor: "simulation",
      validate: (value) => (typeof value === "number" ? { value } : { issues: [{ message: "not a number" }] }),
    },
  },
});
