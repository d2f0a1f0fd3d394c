import type { run_v1 } from "@googleapis/run";
import type { Plan } from "../plan.ts";
import { accountOf, container, networkAnnotations } from "./container.ts";

/** The job that creates or upgrades the schema. */
export function migrateJob(plan: Plan, args: readonly string[], project: string) {
  return {
    apiVersion: "run.googleapis.com/v1",
    kind: "Job",
    metadata: { name: "tape-migrate" },
    spec: {
      template: {
        metadata: { annotations: networkAnnotations(plan) },
        spec: {
          taskCount: 1,
          template: {
            spec: {
              maxRetries: 3,
              timeoutSeconds: "900",
              serviceAccountName: accountOf(project, "tape-migrate"),
              containers: [container(plan, { args, cpu: "1", memory: "512Mi", env: {} })],
            },
          },
        },
      },
    },
  } satisfies run_v1.Schema$Job;
}
