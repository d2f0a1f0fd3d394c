import { z } from "zod";

const text = z.string().min(1).max(500);
const replicas = z.int().min(0).max(1_000);
const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, "must be the name of a variable");
/** A name that Kubernetes, Secret Manager and systemd all accept. */
const secretName = z
  .string()
  .regex(/^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/, "must be the name of a secret: lower-case letters, digits and -");
const egress = z
  .array(
    z
      .string()
      .regex(/^(\d[\d.]*\/\d+|\[[0-9a-fA-F:]+\/\d+\]):\d+$/, "must be NETWORK:PORT, such as 203.0.113.0/24:443"),
  )
  .max(100);
const cpu = z.string().regex(/^([1-9]\d{0,4}m|\d{1,2}(\.\d{1,3})?)$/, "must be a number of CPUs, such as 1 or 500m");
const memory = z.string().regex(/^[1-9]\d{0,5}(Mi|Gi)$/, "must be an amount of memory, such as 512Mi");
const scale = z.enum(["cpu", "lag"]);

const service = {
  cpu: cpu.optional().describe("CPUs of one replica"),
  memory: memory.optional().describe("Memory of one replica"),
  min: replicas.optional().describe("Minimum number of replicas"),
  max: replicas.optional().describe("Maximum number of replicas"),
  egress: egress.optional().describe("Networks and ports that it may reach, besides the database and DNS"),
};

const reactor = z.strictObject({
  ...service,
  scale: scale.optional().describe("cpu: an autoscaler by CPU; lag: KEDA by the number of due items"),
});

/** `tape.deploy`: read by `durable-tape deploy` alone. Running processes ignore it. */
export const deploySchema = z
  .strictObject({
    image: text
      .regex(/^([\w./:@-]|\$\{[A-Za-z_]\w*(:-[\w.-]*)?\})+$/, "must be the name of an image")
      .optional()
      .describe("Image of the services; a variable in it is filled in by deploy.sh"),
    secrets: z
      .record(variable, secretName.describe("Name of the secret that holds the value of variable NAME"))
      .default({})
      .describe("Variables whose values are secrets"),
    env: z
      .record(variable, z.string().max(4_096).describe("Plain value of variable NAME"))
      .default({})
      .describe("Variables with plain values"),
    database: z
      .strictObject({
        egress: egress.optional().describe("Networks and ports of the database; by default its port on any address"),
        connections: z
          .int()
          .min(1)
          .max(100_000)
          .default(100)
          .describe("Connections that the database allows; more than 80 % of them is a warning"),
      })
      .prefault({})
      .describe("The database of the store"),
    defaults: z
      .strictObject({
        cpu: cpu.default("1").describe("CPUs of one replica"),
        memory: memory.default("512Mi").describe("Memory of one replica"),
        min: replicas.default(1).describe("Minimum number of replicas"),
        max: replicas.default(3).describe("Maximum number of replicas"),
        scale: scale.default("cpu").describe("cpu: an autoscaler by CPU; lag: KEDA by the number of due items"),
      })
      .prefault({})
      .describe("Settings of every service that does not set its own"),
    server: z
      .strictObject({ enabled: z.boolean().default(true).describe("Whether the server is deployed"), ...service })
      .prefault({})
      .describe("The HTTP server"),
    reactors: z.record(z.string(), reactor).default({}).describe("Settings of the service of one reactor"),
    sinks: z
      .record(
        z.string(),
        z.strictObject({
          cpu: service.cpu,
          memory: service.memory,
          min: service.min.describe("Number of replicas, of which one sends. Default: 1"),
          egress: service.egress,
        }),
      )
      .default({})
      .describe("Settings of the service of one sink"),
    push: z
      .strictObject({
        program: text
          .regex(/^[\w./-]+$/, "must be a file of the image, such as app/push.ts")
          .optional()
          .describe(
            "Your program with the push handlers; without it, they are deployed elsewhere. Only gcp renders them",
          ),
        within_s: z.number().min(1).max(3_590).default(50).describe("within of the handlers"),
        cpu: service.cpu,
        memory: service.memory,
        min: replicas.default(0).describe("Minimum number of instances"),
        max: replicas.default(10).describe("Maximum number of instances"),
      })
      .prefault({})
      .describe("Handlers of reactors with mode: push, and of alarms"),
    kubernetes: z
      .strictObject({
        namespace: secretName.optional().describe("Namespace of all objects; by default that of kubectl's context"),
        monitor: z.boolean().default(false).describe("Whether a PodMonitor of the Prometheus operator is rendered"),
        prometheus: text
          .regex(/^https?:\/\/[^\s/]+\S*$/, "must be an address, such as http://prometheus.monitoring:9090")
          .optional()
          .describe("Address of Prometheus, from which KEDA reads; needed with scale: lag"),
      })
      .prefault({})
      .describe("Only for deploy kubernetes"),
    gcp: z
      .strictObject({
        project: text
          .regex(/^[a-z][a-z0-9-]{4,28}[a-z0-9]$/, "must be the id of a project")
          .optional()
          .describe("Id of the Google Cloud project"),
        region: text
          .regex(/^[a-z]+-[a-z]+\d+$/, "must be a region, such as europe-west1")
          .optional()
          .describe("Region of the services"),
        workers: z
          .enum(["service", "pool"])
          .default("service")
          .describe("service: a Cloud Run service for each reactor; pool: a worker pool, without a port"),
        sql: text
          .regex(/^[^:\s]+:[^:\s]+:[^:\s]+$/, "must be PROJECT:REGION:INSTANCE")
          .optional()
          .describe("Cloud SQL instance to connect, reachable below /cloudsql"),
        network: text.optional().describe("VPC network of the services, for a database with a private address"),
        subnet: text.optional().describe("Subnet of that network"),
      })
      .prefault({})
      .describe("Only for deploy gcp"),
    systemd: z
      .strictObject({
        folder: text
          .regex(/^\/[\w./-]+$/, "must be an absolute path")
          .default("/opt/tape")
          .describe("Where the program is installed"),
        user: text
          .regex(/^[a-z_][a-z0-9_-]{0,31}$/, "must be a user name")
          .default("tape")
          .describe("User of the units"),
      })
      .prefault({})
      .describe("Only for deploy systemd"),
  })
  .prefault({})
  .describe("What durable-tape deploy renders");
