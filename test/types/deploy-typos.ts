// What the renderers of src/deploy write is typed, because the schemas at run time accept unknown fields. None of these
// objects may compile; `npm run check` fails if one does.
import type { run_v1 } from "@googleapis/run";
import type { IScaledObject } from "@kubernetes-models/keda/keda.sh/v1alpha1";
import type { IDeployment } from "kubernetes-models/apps/v1/Deployment";
import type { IHorizontalPodAutoscaler } from "kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler";
import type { IJob } from "kubernetes-models/batch/v1/Job";
import type { INetworkPolicy } from "kubernetes-models/networking.k8s.io/v1/NetworkPolicy";
import type { IContainer } from "kubernetes-models/v1/Container";

type Spec<T extends { spec?: unknown }> = NonNullable<T["spec"]>;

export const typos = [
  // @ts-expect-error replica
  { replica: 1, selector: {}, template: {} } satisfies Spec<IDeployment>,
  // @ts-expect-error apps/v2
  { apiVersion: "apps/v2", kind: "Deployment" } satisfies IDeployment,
  // @ts-expect-error livenesProbe
  { name: "tape", livenesProbe: { httpGet: { path: "/livez", port: "http" } } } satisfies IContainer,
  // @ts-expect-error secretRef
  { name: "tape", env: [{ name: "A", valueFrom: { secretRef: { name: "a" } } }] } satisfies IContainer,
  // @ts-expect-error backOffLimit
  { backOffLimit: 3, template: {} } satisfies Spec<IJob>,
  // @ts-expect-error policyType
  { podSelector: {}, policyType: ["Egress"] } satisfies Spec<INetworkPolicy>,
  // @ts-expect-error scaleTarget
  { scaleTarget: {}, maxReplicas: 3 } satisfies Spec<IHorizontalPodAutoscaler>,
  // @ts-expect-error minReplicas is the autoscaler's word, not KEDA's
  { scaleTargetRef: { name: "a" }, triggers: [], minReplicas: 1 } satisfies Spec<IScaledObject>,
  // @ts-expect-error timeoutSecond
  { template: { spec: { timeoutSecond: 300 } } } satisfies run_v1.Schema$ServiceSpec,
  // @ts-expect-error instances
  { instances: 3 } satisfies run_v1.Schema$WorkerPoolSpec,
];
