import { badConfig } from "../../config/load.ts";
import type { Plan, Service } from "../plan.ts";
import { build, preamble, step } from "../script.ts";
import { type RenderedFile, scriptFile, shellWord, yamlFile } from "../text.ts";
import { clusterService, deployment } from "./deployment.ts";
import { migrateJob } from "./job.ts";
import { podMonitor } from "./monitor.ts";
import { networkPolicy } from "./policy.ts";
import { autoscaler, disruptionBudget, scaledObject } from "./scaling.ts";

/** A label's value, which the name of an object becomes, has at most 63 characters. */
const maxName = 63;

/** Manifests for kubectl, a file for each service. */
export function renderKubernetes(plan: Plan, project: string): RenderedFile[] {
  for (const { role, object } of plan.services) {
    if (object.length > maxName)
      throw invalid(`${object} is longer than ${maxName} characters; shorten the ${role}'s name`);
  }
  const files = plan.services.map((service) => yamlFile(`${service.object}.yaml`, objectsOf(plan, service)));
  if (plan.migrate !== undefined) {
    files.unshift(
      yamlFile("tape-migrate.yaml", [migrateJob(plan, plan.migrate), networkPolicy(plan, "tape-migrate", [])]),
    );
  }
  if (plan.deploy.kubernetes.monitor) files.push(yamlFile("tape-monitor.yaml", [podMonitor(plan)]));
  return [...files, scriptFile("deploy.sh", "bash", script(plan, project))];
}

const invalid = (message: string): Error => badConfig([{ where: "tape.yaml", message }]);

function objectsOf(plan: Plan, service: Service): object[] {
  const { min, max, scale } = service;
  const { prometheus } = plan.deploy.kubernetes;
  const scaling = (): object => {
    if (scale === "cpu") return autoscaler(plan, service);
    if (prometheus !== undefined) return scaledObject(plan, service, prometheus);
    throw invalid(`tape.deploy.reactors.${service.name}: scale: lag needs tape.deploy.kubernetes.prometheus`);
  };
  return [
    deployment(plan, service),
    ...(service.role === "server" ? [clusterService(plan, service)] : []),
    ...(max > min ? [scaling()] : []),
    ...(min > 1 ? [disruptionBudget(plan, service)] : []),
    networkPolicy(plan, service.object, service.egress, service),
  ];
}

function script(plan: Plan, project: string): string[] {
  const { namespace } = plan.deploy.kubernetes;
  const kubectl = namespace === undefined ? "kubectl" : `kubectl --namespace ${shellWord(namespace)}`;
  const apply = (file: string): string[] => [`fill ${file}`, `${kubectl} apply --filename "$work/${file}"`];
  const secrets = [...new Set(Object.values(plan.secrets))];
  return [
    ...preamble(plan),
    ...build(project),
    ...(secrets.length > 0 ? step("check that the secrets exist") : []),
    ...secrets.map((name) => `${kubectl} get secret ${name} >/dev/null`),
    ...(plan.migrate === undefined
      ? []
      : [
          ...step("create or upgrade the schema"),
          `${kubectl} delete job tape-migrate --ignore-not-found --wait`,
          ...apply("tape-migrate.yaml"),
          `${kubectl} wait --for=condition=complete --timeout=15m job/tape-migrate`,
        ]),
    ...plan.services.flatMap(({ object }) => [...step(`start ${object}`), ...apply(`${object}.yaml`)]),
    ...(plan.deploy.kubernetes.monitor ? [...step("monitor them"), ...apply("tape-monitor.yaml")] : []),
    ...step("wait until their probes succeed"),
    ...plan.services.map(({ object }) => `${kubectl} rollout status deployment/${object} --timeout=5m`),
  ];
}
