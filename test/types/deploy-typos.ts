// What the renderers of src/deploy write is typed, because the schemas at run time accept unknown fields. None of these
// objects may compile; `npm run check` fails if one does.
import type { run_v1 } from "@googleapis/run";
import type { IScaledObject } from "@kubernetes-models/keda/keda.sh/v1alpha1";
import type { IDeployment } from "kubernetes-models/apps/v1/Deployment";
import type { IHorizontalPodAutoscaler } from "kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler";
import type { IJob } from "kubernetes-models/batch/v1/Job";
import type { INetworkPolicy } from "kubernetes-models/networking.k8s.io/v1/NetworkPolicy";
import type { IContainer } from "kubernetes-models/v1/Container";

const labels = { app: "tape" };

export const typos = [
  // @ts-expect-error replica
  { apiVersion: "apps/v1", kind: "Deployment", spec: { replica: 1, selector: {}, template: {} } } satisfies IDeployment,
  // @ts-expect-error apps/v2
  { apiVersion: "apps/v2", kind: "Deployment", spec: { selector: {}, template: {} } } satisfies IDeployment,
  // @ts-expect-error livenesProbe
  { name: "tape", livenesProbe: { httpGet: { path: "/livez", port: "http" } } } satisfies IContainer,
  // @ts-expect-error secretRef
  { name: "tape", env: [{ name: "A", valueFrom: { secretRef: { name: "a", key: "b" } } }] } satisfies IContainer,
  // @ts-expect-error backOffLimit
  { apiVersion: "batch/v1", kind: "Job", spec: { backOffLimit: 3, template: {} } } satisfies IJob,
  // @ts-expect-error policyType
  {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    spec: { podSelector: {}, policyType: ["Egress"] },
  } satisfies INetworkPolicy,
  // @ts-expect-error scaleTarget
  {
    apiVersion: "autoscaling/v2",
    kind: "HorizontalPodAutoscaler",
    spec: { scaleTarget: labels, maxReplicas: 3 },
  } satisfies IHorizontalPodAutoscaler,
  // @ts-expect-error minReplicas is the autoscaler's word, not KEDA's
  {
    apiVersion: "keda.sh/v1alpha1",
    kind: "ScaledObject",
    spec: { scaleTargetRef: { name: "a" }, triggers: [], minReplicas: 1 },
  } satisfies IScaledObject,
  // @ts-expect-error timeoutSecond
  {
    apiVersion: "serving.knative.dev/v1",
    kind: "Service",
    spec: { template: { spec: { timeoutSecond: 300 } } },
  } satisfies run_v1.Schema$Service,
  // @ts-expect-error instances
  {
    apiVersion: "run.googleapis.com/v1",
    kind: "WorkerPool",
    spec: { instances: 3 },
  } satisfies run_v1.Schema$WorkerPool,
];
