import type { IContainer } from "kubernetes-models/v1/Container";
import type { IPodSpec } from "kubernetes-models/v1/PodSpec";
import type { Plan, Service } from "../plan.ts";

/** Reactors serve their probes and metrics here; the server has its own port. */
export const metricsPort = 9464;
export const serverPort = 7878;

export const portOf = ({ role }: Service): number => (role === "server" ? serverPort : metricsPort);

export const labelsOf = (object: string): Record<string, string> => ({
  "app.kubernetes.io/name": object,
  "app.kubernetes.io/part-of": "tape",
});

/** Objects without a namespace go to that of kubectl's context. */
export function metadata(plan: Plan, name: string, object = name) {
  const { namespace } = plan.deploy.kubernetes;
  return { name, ...(namespace !== undefined && { namespace }), labels: labelsOf(object) };
}

/** Variables of a container: the plain ones, those of its role, and the secrets by reference. */
function environment(plan: Plan, own: Readonly<Record<string, string>>): IContainer["env"] {
  const plain = Object.entries({ ...plan.env, ...own }).map(([name, value]) => ({ name, value }));
  const secret = Object.entries(plan.secrets).map(([name, secretName]) => ({
    name,
    valueFrom: { secretKeyRef: { name: secretName, key: "value" } },
  }));
  const replica = { name: "TAPE_REPLICA_ID", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } };
  return [...plain, replica, ...secret];
}

/** A server in a cluster checks tokens; TLS ends at the ingress unless the server has a certificate of its own. */
const serverEnv = ({ tls }: Plan): Record<string, string> => ({
  TAPE_SERVER_LISTEN: `0.0.0.0:${serverPort}`,
  TAPE_SERVER_CREDENTIALS: "required",
  ...(!tls.enabled && { TAPE_SERVER_PLAIN: "accepted" }),
});

export const envOf = (plan: Plan, { role }: Service): Record<string, string> =>
  role === "server" ? serverEnv(plan) : { TAPE_METRICS_LISTEN: `0.0.0.0:${metricsPort}` };

/** A container that can write nothing but its memory and /tmp, and can gain no rights. */
export function container(
  plan: Plan,
  part: {
    readonly name: string;
    readonly args: readonly string[];
    readonly cpu: string;
    readonly memory: string;
    readonly env: Readonly<Record<string, string>>;
  },
) {
  return {
    name: part.name,
    image: plan.image,
    command: ["node"],
    args: [...part.args],
    env: environment(plan, part.env) ?? [],
    resources: { requests: { cpu: part.cpu, memory: part.memory }, limits: { memory: part.memory } },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    },
    volumeMounts: [{ name: "tmp", mountPath: "/tmp" }],
  } satisfies IContainer;
}

/** What every pod has: user 1000 (`node` in the image), no token of the cluster, a folder for temporary files. */
export const podDefaults = {
  automountServiceAccountToken: false,
  enableServiceLinks: false,
  securityContext: {
    runAsNonRoot: true,
    runAsUser: 1000,
    runAsGroup: 1000,
    seccompProfile: { type: "RuntimeDefault" },
  },
  volumes: [{ name: "tmp", emptyDir: { sizeLimit: "64Mi" } }],
} satisfies Partial<IPodSpec>;
