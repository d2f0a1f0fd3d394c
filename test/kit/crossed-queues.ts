import type { Store } from "../../src/store/contract/store.ts";

const claimant = { owner: "worker/1", label: "worker", reactor: "recovery", ttlMs: 3_600_000 };

/** Two queues with one slot each. The runs load and lift hold them, and each waits for a child in the queue of the other. */
export async function crossQueues({ intake, claim, fenced }: Store, tenant: string): Promise<void> {
  for (const [queue, run] of [
    ["docks", "load"],
    ["cranes", "lift"],
  ] as const) {
    await intake.putQueue(tenant, queue, { concurrency: 1, counts: "started" });
    await intake.createRuns(tenant, [{ id: run, workflow: "ask", input: 1, queue }]);
  }
  const request = { tenant, claimant, nextReactor: "none", staleOf: [], limit: 10, nonce: 77n, workflows: ["ask"] };
  const queues = ["docks", "cranes"].map((name) => ({ name, room: 10 }));
  for (const { fence, head, name } of await claim.find({ ...request, queues })) {
    const queue = { name: name === "load" ? "cranes" : "docks", key: "", priority: 5 };
    await fenced.append(fence, {
      after: head,
      records: [
        {
          kind: "child.started",
          data: { pos: 0, id: `${name}.0`, workflow: "ask", input: 1, inputHash: "h", queue },
        },
        { kind: "term.ended", data: { reason: "released", notesTaken: 0 } },
      ],
    });
  }
}

export const crossedSteps = [
  { run: "load.0", queue: "cranes", key: "", holder: "lift" },
  { run: "lift.0", queue: "docks", key: "", holder: "load" },
];
