import type { run_v1 } from "@googleapis/run";
import type { Plan, Service } from "../plan.ts";
import { accountOf, container, networkAnnotations } from "./container.ts";

/** A Cloud Run worker pool: no port, no requests, and a fixed number of instances. */
export function workerPool(plan: Plan, service: Service, project: string) {
  return {
    apiVersion: "run.googleapis.com/v1",
    kind: "WorkerPool",
    metadata: {
      name: service.object,
      annotations: {
        "run.googleapis.com/scalingMode": "manual",
        "run.googleapis.com/manualInstanceCount": String(service.min),
      },
    },
    spec: {
      template: {
        metadata: { annotations: networkAnnotations(plan) },
        spec: {
          serviceAccountName: accountOf(project, service.object),
          containers: [container(plan, { ...service, env: {} })],
        },
      },
    },
  } satisfies run_v1.Schema$WorkerPool;
}
