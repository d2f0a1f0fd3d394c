import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmdirSync } from "node:fs";

/** A file system of a few megabytes in memory, so that it can be filled. */
export class SmallDisk {
  readonly folder: string;
  #mounted = true;

  constructor(folder: string, megabytes: number) {
    this.folder = folder;
    mkdirSync(folder);
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m,mode=0777`, "tape-chaos", folder], {
      stdio: "ignore",
    });
    process.once("exit", this.close);
  }

  readonly close = (): void => {
    if (!this.#mounted) return;
    this.#mounted = false;
    process.off("exit", this.close);
    // Lazily, because a process that was just killed may still have files open.
    spawnSync("umount", ["-l", this.folder], { stdio: "ignore" });
    if (existsSync(this.folder)) rmdirSync(this.folder);
  };
}
