import type { run_v1 } from "@googleapis/run";
import type { Plan, Service } from "../plan.ts";
import { accountOf, container, networkAnnotations, port } from "./container.ts";

/**
 * A Cloud Run service. A reactor polls between requests, so its CPU is never throttled and one instance always runs:
 * otherwise its heartbeats would stop, and it would lose its leases.
 */
export function cloudRunService(plan: Plan, service: Service, project: string) {
  const { object, min, max, role } = service;
  const server = role === "server";
  const env = server
    ? { TAPE_SERVER_LISTEN: `0.0.0.0:${port}`, TAPE_SERVER_CREDENTIALS: "required", TAPE_SERVER_PLAIN: "accepted" }
    : { TAPE_METRICS_LISTEN: `0.0.0.0:${port}` };
  return {
    apiVersion: "serving.knative.dev/v1",
    kind: "Service",
    metadata: {
      name: object,
      annotations: {
        "run.googleapis.com/ingress": server ? "internal-and-cloud-load-balancing" : "internal",
        // The server checks tokens of its own, which are in the header that IAM would read.
        ...(server && { "run.googleapis.com/invoker-iam-disabled": "true" }),
      },
    },
    spec: {
      template: {
        metadata: {
          annotations: {
            "autoscaling.knative.dev/minScale": String(min),
            "autoscaling.knative.dev/maxScale": String(max),
            "run.googleapis.com/cpu-throttling": "false",
            ...networkAnnotations(plan),
          },
        },
        spec: {
          serviceAccountName: accountOf(project, object),
          timeoutSeconds: 300,
          containers: [
            {
              ...container(plan, { ...service, env }),
              ports: [{ name: "http1", containerPort: port }],
              startupProbe: { httpGet: { path: "/readyz", port }, periodSeconds: 2, failureThreshold: 60 },
              livenessProbe: {
                httpGet: { path: "/livez", port },
                ...{ periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 3 },
              },
            },
          ],
        },
      },
      traffic: [{ latestRevision: true, percent: 100 }],
    },
  } satisfies run_v1.Schema$Service;
}
