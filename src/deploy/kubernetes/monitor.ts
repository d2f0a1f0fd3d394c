import type { IPodMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PodMonitor";
import type { Plan } from "../plan.ts";
import { metadata } from "./container.ts";

/** Scrapes the metrics of every service. */
export function podMonitor(plan: Plan) {
  const values = plan.services.map(({ object }) => object);
  return {
    apiVersion: "monitoring.coreos.com/v1",
    kind: "PodMonitor",
    metadata: metadata(plan, "tape"),
    spec: {
      selector: { matchExpressions: [{ key: "app.kubernetes.io/name", operator: "In", values }] },
      podMetricsEndpoints: [{ port: "http", path: "/metrics", interval: "30s" }],
    },
  } satisfies IPodMonitor;
}
