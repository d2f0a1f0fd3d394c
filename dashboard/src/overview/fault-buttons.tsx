import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { call } from "../api.ts";
import { unwrap } from "../format.ts";
import { useIdentity, usePermissions } from "../session.tsx";
import { ErrorMessage } from "../ui/error-message.tsx";

const stageKey = "tape-dev/stage";
const deedKey = "tape-dev/deed";
const names: Readonly<Record<string, string>> = {
  kill: "Kill its worker",
  zombie: "Make it a zombie",
  lose: "Lose the bank's answer",
};
/** The treasury looks several times a second; a busy machine may need a few of them. */
const soonMs = 400;
const looks = 25;

interface Staged {
  readonly deeds: readonly string[];
  readonly workflow: string;
}

/** The value is anybody's who may write values: what it says is shown only if it is one of our own deeds. */
function stagedOf(value: unknown): Staged | null {
  const { deeds, workflow } = (typeof value === "object" && value !== null ? value : {}) as Partial<Staged>;
  if (!Array.isArray(deeds) || typeof workflow !== "string") return null;
  return { deeds: deeds.filter((deed) => typeof deed === "string" && Object.hasOwn(names, deed)), workflow };
}

/** Where `durable-tape dev` plays its payment: its keys, as buttons. A server that is not dev's has none. */
export function FaultButtons() {
  return useIdentity().dev === true ? <Staging /> : null;
}

function Staging() {
  const go = useNavigate();
  const { start } = usePermissions();
  const stage = useQuery({
    queryKey: ["play"],
    queryFn: async () => {
      const { value } = await call("values.get", { params: { key: stageKey } });
      return value === undefined || value.deleted ? null : stagedOf(unwrap(value.value));
    },
  });
  const press = useMutation({
    mutationFn: async ({ deed, workflow }: { readonly deed: string; readonly workflow: string }) => {
      const newest = async () => (await call("runs.list", { query: { workflow, limit: 1 } })).runs[0];
      const before = await newest();
      const body = { value: { deed }, when: "unconditional" };
      await call("values.put", { params: { key: deedKey }, body });
      for (let look = 1; look <= looks; look++) {
        await new Promise((done) => setTimeout(done, soonMs));
        const run = await newest();
        // A new payment; or the one under way, if there is still none by the second look.
        const isMeant = run?.journal !== before?.journal || (look > 1 && run?.endedAt === null);
        if (isMeant) return run;
      }
      return undefined;
    },
    onSuccess: (run) => run !== undefined && go({ to: "/runs/$id", params: { id: run.id } }),
  });
  if (stage.data === undefined || stage.data === null || !start) return null;
  const { deeds, workflow } = stage.data;
  return (
    <section className="card play" aria-labelledby="play">
      <h2 id="play">A payment, while the bank is being asked</h2>
      <p className="muted">
        Do something to the process that pays, and watch who takes over. The money moves once, whatever you press.
      </p>
      <div className="actions">
        {deeds.map((deed) => (
          <button key={deed} type="button" disabled={press.isPending} onClick={() => press.mutate({ deed, workflow })}>
            {names[deed]}
          </button>
        ))}
      </div>
      {press.error !== null && <ErrorMessage error={press.error} />}
    </section>
  );
}
