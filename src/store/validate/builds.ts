import { assertBuild, type BuildClaim } from "../../model/build.ts";
import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import type { BuildReadOps, BuildWriteOps, ReadOps } from "../contract/store.ts";
import { checkAuditInfo, ifGiven, nameChecker } from "./arguments.ts";
import { checkList, checkObject, checkWhole } from "./entry.ts";
import { filterChecks } from "./filters.ts";

/** More workflows than a process pins. */
const maxPinned = 1_000;

function checkWorkflows(field: string, workflows: readonly string[], limits: Limits): void {
  checkList(field, workflows);
  if (workflows.length > maxPinned) {
    throw new TapeError("TAPE_BAD_INPUT", `a process pins at most ${maxPinned} workflows`, { field });
  }
  const names = nameChecker(limits);
  for (const workflow of workflows) names({ [field]: workflow });
}

/** The build of a find, an agenda or a check for unserved runs. */
export function checkBuildClaim(claim: BuildClaim, limits: Limits): void {
  checkObject("build", claim);
  assertBuild("the claim", claim.build);
  checkWorkflows("pinned", claim.pinned, limits);
  ifGiven(claim.leaves, (leaves) => checkWorkflows("leaves", leaves, limits));
}

export function validatedBuildWrites(intake: BuildWriteOps, limits: Limits): BuildWriteOps {
  const names = nameChecker(limits);
  return {
    async reportBuild(tenant, build, workflows) {
      names({ tenant });
      assertBuild("the report", build);
      checkWorkflows("workflows", workflows, limits);
      return intake.reportBuild(tenant, build, workflows);
    },
    async setCurrentBuild(tenant, build, audit) {
      names({ tenant });
      assertBuild("the current build", build);
      checkAuditInfo(audit, limits);
      return intake.setCurrentBuild(tenant, build, audit);
    },
  };
}

export function validatedBuildReads(read: BuildReadOps, limits: Limits): BuildReadOps {
  const { names, page } = filterChecks(limits);
  return {
    async builds(tenant, filter = {}) {
      names({ tenant });
      page(filter);
      ifGiven(filter.build, (build) => assertBuild("the filter", build));
      return read.builds(tenant, filter);
    },
    async buildRuns(tenant, build, at = {}) {
      names({ tenant });
      assertBuild("the list", build);
      page(at);
      ifGiven(at.above, (above) => checkWhole("above", above));
      return read.buildRuns(tenant, build, at);
    },
    async isDrained(tenant, build) {
      names({ tenant });
      assertBuild("the check", build);
      return read.isDrained(tenant, build);
    },
  };
}

export function validatedAgenda(read: ReadOps, limits: Limits): Pick<ReadOps, "agenda" | "unserved"> {
  const { names, nameList } = filterChecks(limits);
  return {
    async agenda(tenant, workflows, queues, build) {
      ifGiven(tenant, (of) => names({ tenant: of }));
      nameList("workflows", workflows);
      nameList("queues", queues);
      ifGiven(build, (claim) => checkBuildClaim(claim, limits));
      return read.agenda(tenant, workflows, queues, build);
    },
    async unserved(workflows, minLagMs, tenant, build) {
      checkList("workflows", workflows);
      nameList("workflows", workflows);
      checkWhole("minLagMs", minLagMs);
      ifGiven(tenant, (of) => names({ tenant: of }));
      ifGiven(build, (claim) => checkBuildClaim(claim, limits));
      return read.unserved(workflows, minLagMs, tenant, build);
    },
  };
}
