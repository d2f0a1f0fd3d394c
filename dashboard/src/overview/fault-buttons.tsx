import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { call } from "../api.ts";
import { devStage } from "../queries.ts";
import { useIdentity, usePermissions } from "../session.tsx";
import { ErrorMessage } from "../ui/error-message.tsx";

/** Shared with src/cli/dev/buttons.ts. */
const stageKey = "tape-dev/stage";
const faultKey = "tape-dev/fault";
const labels: Readonly<Record<string, string>> = {
  kill: "Kill the worker",
  zombie: "Pause it past its lease",
  lose: "Drop the bank's response",
};
/** The demo polls several times a second; a busy machine may need several polls. */
const pollMs = 400;
const maxPolls = 25;

interface Stage {
  readonly faults: readonly string[];
  readonly workflow: string;
}

/** Every client that may write values can write this one: only the faults that this page knows are shown. */
function stageOf(value: unknown): Stage | null {
  const { faults, workflow } = (typeof value === "object" && value !== null ? value : {}) as Partial<Stage>;
  if (!Array.isArray(faults) || typeof workflow !== "string") return null;
  return { faults: faults.filter((fault) => typeof fault === "string" && Object.hasOwn(labels, fault)), workflow };
}

/** The faults of the payment demo, as buttons. Only `durable-tape dev` has them. */
export function FaultButtons() {
  return useIdentity().dev === true ? <Demo /> : null;
}

function Demo() {
  const navigate = useNavigate();
  const { start } = usePermissions();
  const stage = useQuery({ ...devStage(stageKey), select: stageOf }).data ?? null;
  const inject = useMutation({
    mutationFn: async ({ fault, workflow }: { readonly fault: string; readonly workflow: string }) => {
      const newest = async () => (await call("runs.list", { query: { workflow, limit: 1 } })).runs[0];
      const before = await newest();
      await call("values.put", { params: { key: faultKey }, body: { value: { fault }, when: "unconditional" } });
      for (let poll = 1; poll <= maxPolls; poll++) {
        await new Promise((resolve) => setTimeout(resolve, pollMs));
        const run = await newest();
        // The fault starts a payment, or hits the open one if no new one appeared by the second poll.
        const isHit = run?.journal !== before?.journal || (poll > 1 && run?.endedAt === null);
        if (isHit) return run;
      }
      return undefined;
    },
    onSuccess: (run) => run !== undefined && navigate({ to: "/runs/$id", params: { id: run.id } }),
  });
  if (stage === null || !start) return null;
  const { faults, workflow } = stage;
  return (
    <section className="card demo" aria-labelledby="demo">
      <h2 id="demo">Payment demo</h2>
      <p className="muted">
        Inject a fault while the payment waits for the bank, and watch the takeover. The bank pays once, whatever you
        press.
      </p>
      <div className="actions">
        {faults.map((fault) => (
          <button
            key={fault}
            type="button"
            disabled={inject.isPending}
            onClick={() => inject.mutate({ fault, workflow })}
          >
            {labels[fault]}
          </button>
        ))}
      </div>
      {inject.error !== null && <ErrorMessage error={inject.error} />}
    </section>
  );
}
