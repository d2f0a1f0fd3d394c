import type { BuildRow } from "../../model/build.ts";
import type { AuditInfo } from "./admin.ts";
import type { Page } from "./list.ts";

/** Builds of processes, called as `store.intake.x`. */
export interface BuildWriteOps {
  /**
   * A process reports its build and the workflows that it pins. Returns those of them whose new runs it leaves to the
   * build that is current.
   */
  reportBuild(tenant: string, build: string, workflows: readonly string[]): Promise<{ readonly leaves: string[] }>;
  /**
   * Processes of other builds take no new runs of this build's pinned workflows from now on. A hint, not a fence: they
   * learn of it within seconds. TAPE_NOT_FOUND if no process has reported the build.
   */
  setCurrentBuild(tenant: string, build: string, audit: AuditInfo): Promise<BuildView>;
}

/** Builds for operators, called as `store.read.x`. */
export interface BuildReadOps {
  /** The newest first; `build`: only this one. */
  builds(tenant: string, filter?: { build?: string; limit?: number }): Promise<Page<BuildView>>;
  /** Live runs that are pinned to the build, in the order of their journals after `above`. */
  buildRuns(tenant: string, build: string, page?: { above?: number; limit?: number }): Promise<Page<PinnedRun>>;
  /** No run that has not ended is pinned to the build: now, not eventually. */
  isDrained(tenant: string, build: string): Promise<boolean>;
}

/** A build as operators see it. */
export interface BuildView extends BuildRow {
  /** Runs that are pinned to it and have not ended. Exact. */
  readonly live: number;
  /** Milliseconds since 1970: when a process of it first reported, and last, within a minute. */
  readonly firstAt: number;
  /** When a process last reported it. */
  readonly seenAt: number;
}

/** A live run that is pinned to a build. */
export interface PinnedRun {
  readonly journal: number;
  /** The id of the run. */
  readonly id: string;
  readonly workflow: string;
}
