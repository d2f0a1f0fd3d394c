import type { IDeployment } from "kubernetes-models/apps/v1/Deployment";
import type { IContainer } from "kubernetes-models/v1/Container";
import type { IService } from "kubernetes-models/v1/Service";
import type { Plan, Service } from "../plan.ts";
import { container, envOf, labelsOf, metadata, podDefaults, portOf } from "./container.ts";

/** A process that is stopping may use all of `drain_s`; the rest is for closing connections. */
const marginS = 10;

/** The Deployment of one service. Its replicas are left to the autoscaler where there is one. */
export function deployment(plan: Plan, service: Service) {
  const { object, min, max } = service;
  const port = portOf(service);
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: metadata(plan, object),
    spec: {
      ...(min === max && { replicas: min }),
      revisionHistoryLimit: 5,
      selector: { matchLabels: labelsOf(object) },
      strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
      template: {
        metadata: { labels: labelsOf(object) },
        spec: {
          ...podDefaults,
          terminationGracePeriodSeconds: Math.ceil(plan.drainS) + marginS,
          topologySpreadConstraints: [
            {
              maxSkew: 1,
              topologyKey: "kubernetes.io/hostname",
              whenUnsatisfiable: "ScheduleAnyway",
              labelSelector: { matchLabels: labelsOf(object) },
            },
          ],
          containers: [
            {
              ...container(plan, { ...service, name: "tape", env: envOf(plan, service) }),
              ports: [{ name: "http", containerPort: port }],
              ...probes(plan, service),
            },
          ],
        },
      },
    },
  } satisfies IDeployment;
}

/** `/livez` restarts a process that is wedged; `/readyz` only keeps calls away from it. */
function probes({ tls }: Plan, { role }: Service) {
  const server = role === "server";
  const scheme: "HTTP" | "HTTPS" = server && tls.enabled ? "HTTPS" : "HTTP";
  // A server that demands certificates of its clients would refuse the probe, which has none.
  const check = (path: string) =>
    server && tls.clients ? { tcpSocket: { port: "http" } } : { httpGet: { path, port: "http", scheme } };
  return {
    startupProbe: { ...check("/readyz"), periodSeconds: 2, failureThreshold: 60 },
    livenessProbe: { ...check("/livez"), periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 3 },
    readinessProbe: { ...check("/readyz"), periodSeconds: 5, timeoutSeconds: 5, failureThreshold: 2 },
  } satisfies Partial<IContainer>;
}

/** The address of the server within the cluster. An Ingress is the cluster's own affair. */
export function clusterService(plan: Plan, { object }: Service) {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: metadata(plan, object),
    spec: { type: "ClusterIP", selector: labelsOf(object), ports: [{ name: "http", port: 80, targetPort: "http" }] },
  } satisfies IService;
}
