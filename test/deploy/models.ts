import { ScaledObject } from "@kubernetes-models/keda/keda.sh/v1alpha1";
import { Service as KnativeService } from "@kubernetes-models/knative/serving.knative.dev/v1/Service";
import { PodMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PodMonitor";
import { Deployment } from "kubernetes-models/apps/v1/Deployment";
import { HorizontalPodAutoscaler } from "kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler";
import { Job } from "kubernetes-models/batch/v1/Job";
import { NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1/NetworkPolicy";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1/PodDisruptionBudget";
import { Service } from "kubernetes-models/v1/Service";
import type { Document } from "./sample.ts";

type Model = new (data: never) => { validate(): void };

const models: Readonly<Record<string, Model>> = {
  "apps/v1 Deployment": Deployment,
  "autoscaling/v2 HorizontalPodAutoscaler": HorizontalPodAutoscaler,
  "batch/v1 Job": Job,
  "keda.sh/v1alpha1 ScaledObject": ScaledObject,
  "monitoring.coreos.com/v1 PodMonitor": PodMonitor,
  "networking.k8s.io/v1 NetworkPolicy": NetworkPolicy,
  "policy/v1 PodDisruptionBudget": PodDisruptionBudget,
  "serving.knative.dev/v1 Service": KnativeService,
  "v1 Service": Service,
};

/** The problem that the published schema of its kind has with an object; undefined if it is valid. */
export function problemWith(document: Document): string | undefined {
  const kind = `${document.apiVersion} ${document.kind}`;
  const Model = models[kind];
  if (Model === undefined) return `there is no model of ${kind}`;
  try {
    new Model(document as never).validate();
    return undefined;
  } catch (error) {
    return String(error);
  }
}
