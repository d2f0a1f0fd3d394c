import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";

/** An emulator that tests may use. */
export interface Emulator {
  /** host:port */
  readonly host: string;
  stop(): Promise<void>;
}

const howToGet =
  "Set SPANNER_EMULATOR_HOST to the host and port of a running one, or install the Google Cloud SDK and then " +
  "`gcloud components install cloud-spanner-emulator` (Debian: the package google-cloud-cli-spanner-emulator).";

/** Roots of installed Google Cloud SDKs. */
function sdkRoots(): string[] {
  const found = spawnSync("sh", ["-c", "command -v gcloud"], { encoding: "utf8" }).stdout.trim();
  const ofPath = found === "" ? [] : [dirname(dirname(realpathSync(found)))];
  const given = process.env.CLOUDSDK_ROOT_DIR;
  return [...(given === undefined ? [] : [given]), ...ofPath];
}

/** The program of the emulator; throws with instructions where there is none. */
export function findEmulator(): string {
  const places = sdkRoots().map((root) => join(root, "bin", "cloud_spanner_emulator", "emulator_main"));
  const program = places.find((place) => existsSync(place));
  if (program !== undefined) return program;
  const searched = places.length === 0 ? "there is no gcloud on the PATH" : `${places.join(", ")} does not exist`;
  throw new Error(`Google's emulator of Spanner is not installed: ${searched}. ${howToGet}`);
}

/** The emulator of SPANNER_EMULATOR_HOST, or one that is started here. */
export async function startEmulator(): Promise<Emulator> {
  const given = process.env.SPANNER_EMULATOR_HOST;
  if (given !== undefined) return { host: given, stop: async () => {} };
  const child = spawn(findEmulator(), ["--host_port=127.0.0.1:0"], { stdio: ["ignore", "pipe", "pipe"] });
  const host = await addressOf(child);
  return {
    host,
    async stop() {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await ended;
    },
  };
}

/** It prints its address once it serves, and is read to the end: a full pipe would block it. */
function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let printed = "";
    child.once("error", reject);
    child.once("exit", () => reject(new Error(`the emulator did not start: ${printed}`)));
    child.stdout!.resume();
    child.stderr!.on("data", (part) => {
      printed = `${printed}${part}`.slice(-10_000);
      const found = /Server address: (127\.0\.0\.1:\d+)/.exec(printed);
      if (found !== null) resolve(found[1]!);
    });
  });
}
