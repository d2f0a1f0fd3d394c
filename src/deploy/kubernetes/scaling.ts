import type { IScaledObject } from "@kubernetes-models/keda/keda.sh/v1alpha1";
import type { IHorizontalPodAutoscaler } from "kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler";
import type { IPodDisruptionBudget } from "kubernetes-models/policy/v1/PodDisruptionBudget";
import type { Plan, Service } from "../plan.ts";
import { labelsOf, metadata } from "./container.ts";

/** A replica is added while the others use more than this share of their CPUs. */
const cpuPercent = 70;
/** Due items for each replica before another one is added: one batch of a reactor. */
const duePerReplica = 50;

const target = (name: string) => ({ apiVersion: "apps/v1", kind: "Deployment", name });

/** Scales by CPU. */
export function autoscaler(plan: Plan, { object, min, max }: Service) {
  return {
    apiVersion: "autoscaling/v2",
    kind: "HorizontalPodAutoscaler",
    metadata: metadata(plan, object),
    spec: {
      scaleTargetRef: target(object),
      minReplicas: min,
      maxReplicas: max,
      metrics: [
        {
          type: "Resource",
          resource: { name: "cpu", target: { type: "Utilization", averageUtilization: cpuPercent } },
        },
      ],
      behavior: { scaleDown: { stabilizationWindowSeconds: 300 } },
    },
  } satisfies IHorizontalPodAutoscaler;
}

/** Scales by due work. Every replica reports the same figure, so the query takes the maximum, not the sum. */
export function scaledObject(plan: Plan, { object, name, min, max }: Service, serverAddress: string) {
  return {
    apiVersion: "keda.sh/v1alpha1",
    kind: "ScaledObject",
    metadata: metadata(plan, object),
    spec: {
      scaleTargetRef: target(object),
      minReplicaCount: min,
      maxReplicaCount: max,
      cooldownPeriod: 300,
      fallback: { failureThreshold: 3, replicas: min },
      triggers: [
        {
          type: "prometheus",
          metadata: {
            serverAddress,
            query: `max(tape_reactor_due{reactor="${name}"})`,
            threshold: String(duePerReplica),
          },
        },
      ],
    },
  } satisfies IScaledObject;
}

/** Draining a node takes one replica at a time. With a single replica a budget would only block the drain. */
export function disruptionBudget(plan: Plan, { object }: Service) {
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: metadata(plan, object),
    spec: { maxUnavailable: 1, selector: { matchLabels: labelsOf(object) } },
  } satisfies IPodDisruptionBudget;
}
