import { badConfig } from "../../config/load.ts";
import type { Plan, Service } from "../plan.ts";
import { build, preamble, step } from "../script.ts";
import { type RenderedFile, scriptFile, shellWord, yamlFile } from "../text.ts";
import { accountId, accountOf } from "./container.ts";
import { handlerService } from "./handler.ts";
import { migrateJob } from "./job.ts";
import { workerPool } from "./pool.ts";
import { caller, pushLines } from "./push.ts";
import { cloudRunService } from "./service.ts";

const maxName = 49;
/** What Cloud Run requires of an instance whose CPU is not throttled. */
const minMemoryMi = 512;

/** Manifests for `gcloud run`, a file for each service. */
export function renderGcp(plan: Plan, folder: string): RenderedFile[] {
  const { project, region } = plan.deploy.gcp;
  if (project === undefined || region === undefined) throw invalid("tape.deploy.gcp: needs project and region");
  for (const service of plan.services) checkLimits(service);
  const files = plan.services.map((service) => yamlFile(`${service.object}.yaml`, [manifest(plan, service, project)]));
  if (plan.migrate !== undefined) {
    files.unshift(yamlFile("tape-migrate.yaml", [migrateJob(plan, plan.migrate, project)]));
  }
  return [...files, scriptFile("deploy.sh", "bash", script(plan, { folder, project, region }))];
}

/** A service that answers requests cannot be a worker pool, which has no port. */
const isPool = ({ deploy }: Plan, { role }: Service): boolean =>
  (role === "reactor" || role === "sink") && deploy.gcp.workers === "pool";

function manifest(plan: Plan, service: Service, project: string): object {
  if (service.role === "handler") return handlerService(plan, service, project);
  return isPool(plan, service) ? workerPool(plan, service, project) : cloudRunService(plan, service, project);
}

const invalid = (message: string): Error => badConfig([{ where: "tape.yaml", message }]);

function checkLimits({ role, object, cpu, memory }: Service): void {
  if (object.length > maxName)
    throw invalid(`${object} is longer than ${maxName} characters; shorten the ${role}'s name`);
  if (role === "handler") return;
  const cpus = cpu.endsWith("m") ? Number(cpu.slice(0, -1)) / 1_000 : Number(cpu);
  if (cpus < 1)
    throw invalid(`${object}: Cloud Run gives at least 1 CPU to an instance that is not throttled, not ${cpu}`);
  const mebibytes = Number(memory.slice(0, -2)) * (memory.endsWith("Gi") ? 1_024 : 1);
  if (mebibytes < minMemoryMi)
    throw invalid(`${object}: such an instance needs at least ${minMemoryMi}Mi, not ${memory}`);
}

interface Place {
  readonly folder: string;
  readonly project: string;
  readonly region: string;
}

function script(plan: Plan, { folder, project, region }: Place): string[] {
  const where = `--project ${shellWord(project)} --region ${shellWord(region)}`;
  const objects = [
    ...(plan.migrate === undefined ? [] : ["tape-migrate"]),
    ...plan.services.map(({ object }) => object),
    ...(plan.services.some(({ role }) => role === "handler") ? [caller] : []),
  ];
  const command = (service: Service): string => (isPool(plan, service) ? "worker-pools" : "services");
  return [
    ...preamble(plan),
    ...build(folder),
    ...step("service accounts that may read the secrets"),
    ...objects.flatMap((object) => accountLines(plan, object, project, object !== caller)),
    ...(plan.migrate === undefined
      ? []
      : [
          ...step("create or upgrade the schema"),
          "fill tape-migrate.yaml",
          `gcloud run jobs replace "$work/tape-migrate.yaml" ${where}`,
          `gcloud run jobs execute tape-migrate --wait ${where}`,
        ]),
    ...plan.services.flatMap((service) => [
      ...step(`start ${service.object}`),
      `fill ${service.object}.yaml`,
      `gcloud run ${command(service)} replace "$work/${service.object}.yaml" ${where}`,
    ]),
    ...pushLines(plan, { project, region }),
    ...step("their state"),
    ...plan.services.map(
      (service) =>
        `gcloud run ${command(service)} describe ${service.object} ${where} --format='value(status.conditions[0].status)'`,
    ),
  ];
}

function accountLines(plan: Plan, object: string, project: string, isProcess: boolean): string[] {
  const account = accountOf(project, object);
  const inProject = `--project ${shellWord(project)}`;
  const created = [
    `gcloud iam service-accounts describe ${account} ${inProject} >/dev/null 2>&1 ||`,
    `  gcloud iam service-accounts create ${accountId(object)} ${inProject} --display-name ${object}`,
  ];
  if (!isProcess) return created; // it only signs calls
  return [
    ...created,
    ...[...new Set(Object.values(plan.secrets))].map(
      (secret) =>
        `gcloud secrets add-iam-policy-binding ${secret} ${inProject} --member serviceAccount:${account} --role roles/secretmanager.secretAccessor >/dev/null`,
    ),
    ...(plan.deploy.gcp.sql === undefined
      ? []
      : [
          `gcloud projects add-iam-policy-binding ${shellWord(project)} --member serviceAccount:${account} --role roles/cloudsql.client --condition None >/dev/null`,
        ]),
  ];
}
