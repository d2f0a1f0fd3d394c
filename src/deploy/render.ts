import { relative, sep } from "node:path";
import { alertFiles } from "./alerts.ts";
import { boardFile } from "./board.ts";
import { renderCompose } from "./compose.ts";
import { dockerFiles } from "./dockerfile.ts";
import { renderGcp } from "./gcp/index.ts";
import { renderKubernetes } from "./kubernetes/index.ts";
import type { Plan, Target } from "./plan.ts";
import { readme } from "./readme.ts";
import { renderSystemd } from "./systemd.ts";
import type { RenderedFile } from "./text.ts";

/** Where the files go, and where the project is from which the image is built. */
export interface Folders {
  readonly out: string;
  readonly project: string;
}

/** All files of one target. The same plan and folders give the same bytes. */
export function render(target: Target, plan: Plan, folders: Folders): RenderedFile[] {
  const between = (from: string, to: string): string => relative(from, to).split(sep).join("/") || ".";
  const [project, folder] = [between(folders.out, folders.project), between(folders.project, folders.out)];
  const image = dockerFiles(folder);
  const shared = [...alertFiles(), boardFile(), readme(target, plan)];
  switch (target) {
    case "kubernetes":
      return [...renderKubernetes(plan, project), ...image, ...shared];
    case "gcp":
      return [...renderGcp(plan, project), ...image, ...shared];
    case "compose":
      return [...renderCompose(plan, project, folder), ...image, ...shared];
    case "systemd":
      return [...renderSystemd(plan, project), ...shared];
  }
}
