import type { run_v1 } from "@googleapis/run";
import type { Plan, Service } from "../plan.ts";
import { accountOf, container, networkAnnotations, port } from "./container.ts";
import { audienceOf, caller, timeoutOf } from "./push.ts";

/**
 * A Cloud Run service that runs only during requests: no instance while nothing is due, and a CPU that is throttled after
 * the answer. Its program is the user's, and learns from variables which reactors it has and whose tokens it accepts.
 */
export function handlerService(plan: Plan, service: Service, project: string) {
  const { object, name, min, max } = service;
  const audience = audienceOf(object);
  const env = {
    TAPE_PUSH_REACTORS: name,
    TAPE_PUSH_AUDIENCE: audience,
    TAPE_PUSH_EMAIL: accountOf(project, caller),
  };
  return {
    apiVersion: "serving.knative.dev/v1",
    kind: "Service",
    metadata: {
      name: object,
      annotations: {
        // Pub/Sub, Cloud Tasks and Cloud Scheduler of the same project count as internal.
        "run.googleapis.com/ingress": "internal",
        "run.googleapis.com/custom-audiences": JSON.stringify([audience]),
      },
    },
    spec: {
      template: {
        metadata: {
          annotations: {
            "autoscaling.knative.dev/minScale": String(min),
            "autoscaling.knative.dev/maxScale": String(max),
            "run.googleapis.com/cpu-throttling": "true",
            ...networkAnnotations(plan),
          },
        },
        spec: {
          serviceAccountName: accountOf(project, object),
          timeoutSeconds: timeoutOf(plan),
          containers: [{ ...container(plan, { ...service, env }), ports: [{ name: "http1", containerPort: port }] }],
        },
      },
      traffic: [{ latestRevision: true, percent: 100 }],
    },
  } satisfies run_v1.Schema$Service;
}
