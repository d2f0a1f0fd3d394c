import { createHash } from "node:crypto";
import type { run_v1 } from "@googleapis/run";
import type { Plan } from "../plan.ts";

/** Cloud Run sends requests and probes to this port, and names it to the process in PORT. */
export const port = 8080;

/** Cloud Run kills a process 10 s after SIGTERM, whatever the file says. */
const drainS = 8;

/** The id of a service account has 6 to 30 characters. A longer name keeps its start and a part of its hash. */
export function accountId(object: string): string {
  if (object.length <= 30) return object;
  return `${object.slice(0, 21)}-${createHash("sha256").update(object).digest("hex").slice(0, 8)}`;
}

export const accountOf = (project: string, object: string): string =>
  `${accountId(object)}@${project}.iam.gserviceaccount.com`;

/** A container with its variables: the plain ones, those of its role, and the secrets by reference. */
export function container(
  plan: Plan,
  part: {
    readonly args: readonly string[];
    readonly cpu: string;
    readonly memory: string;
    readonly env: Readonly<Record<string, string>>;
  },
) {
  const own = { ...plan.env, ...part.env, TAPE_DRAIN_S: String(Math.min(drainS, plan.drainS)) };
  const plain = Object.entries(own).map(([name, value]) => ({ name, value }));
  const secret = Object.entries(plan.secrets).map(([name, secretName]) => ({
    name,
    valueFrom: { secretKeyRef: { name: secretName, key: "latest" } },
  }));
  return {
    name: "tape",
    image: plan.image,
    command: ["node"],
    args: [...part.args],
    env: [...plain, ...secret],
    resources: { limits: { cpu: part.cpu, memory: part.memory } },
  } satisfies run_v1.Schema$Container;
}

/** How a revision reaches the database. */
export function networkAnnotations({ deploy }: Plan): Record<string, string> {
  const { sql, network, subnet } = deploy.gcp;
  const interfaces = [
    { ...(network !== undefined && { network }), ...(subnet !== undefined && { subnetwork: subnet }) },
  ];
  return {
    ...(sql !== undefined && { "run.googleapis.com/cloudsql-instances": sql }),
    ...((network ?? subnet) !== undefined && {
      "run.googleapis.com/network-interfaces": JSON.stringify(interfaces),
      "run.googleapis.com/vpc-access-egress": "private-ranges-only",
    }),
  };
}
