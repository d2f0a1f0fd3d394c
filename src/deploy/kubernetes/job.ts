import type { IJob } from "kubernetes-models/batch/v1/Job";
import type { Plan } from "../plan.ts";
import { container, labelsOf, metadata, podDefaults } from "./container.ts";

/** Creates or upgrades the schema before anything else starts. A Job cannot be changed, so deploy.sh replaces it. */
export function migrateJob(plan: Plan, args: readonly string[]) {
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: metadata(plan, "tape-migrate"),
    spec: {
      backoffLimit: 3,
      ttlSecondsAfterFinished: 86_400,
      template: {
        metadata: { labels: labelsOf("tape-migrate") },
        spec: {
          ...podDefaults,
          restartPolicy: "Never",
          containers: [container(plan, { name: "tape", args, cpu: "250m", memory: "256Mi", env: {} })],
        },
      },
    },
  } satisfies IJob;
}
