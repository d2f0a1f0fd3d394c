import { spawnSync } from "node:child_process";
import { existsSync, globSync } from "node:fs";
import { delimiter, join } from "node:path";
import { alone, type Pin, pinned, unpacked, withLibraries } from "./apt.ts";

/** A program that a test starts, with the environment that it needs. */
export interface Program {
  readonly path: string;
  readonly version: string;
  readonly env: Readonly<Record<string, string>>;
}

interface Recipe {
  /** Prints the version, which has to be this one or newer. */
  readonly version: readonly string[];
  readonly min: readonly [number, number];
  readonly fetch: (folder: string) => void;
  /** What to unpack. */
  readonly only: readonly string[];
}

/** Debian 12 has NATS 2.9, which cannot schedule messages, so a newer one comes from its unstable suite. */
const natsPins: Readonly<Partial<Record<NodeJS.Architecture, Pin>>> = {
  x64: {
    path: "pool/main/n/nats-server/nats-server_2.15.1-1_amd64.deb",
    sha256: "31ef4ceaa84e8248d449e508472e3770c17c3695cb5cb0ee96e03912724ea884",
  },
  arm64: {
    path: "pool/main/n/nats-server/nats-server_2.15.1-1_arm64.deb",
    sha256: "68923b614b6b5594bbd63ffdce7258c2155ec448fb4cb7efd099bf9273eca128",
  },
};

const withBinaries = ["usr/bin/*", "usr/lib/*.so*"];
const recipes = {
  "redis-server": {
    version: ["--version"],
    min: [7, 0],
    fetch: withLibraries("redis-server"),
    only: withBinaries,
  },
  "nats-server": {
    version: ["--version"],
    min: [2, 12],
    fetch: pinned("nats-server", natsPins[process.arch]),
    only: ["usr/sbin/nats-server"],
  },
  promtool: { version: ["--version"], min: [2, 42], fetch: alone("prometheus"), only: ["usr/bin/promtool"] },
  /** librdkafka's mock of a Kafka cluster, and a reader of its topics. */
  kcat: { version: ["-V"], min: [1, 7], fetch: withLibraries("kcat"), only: withBinaries },
} as const satisfies Record<string, Recipe>;

export type ProgramName = keyof typeof recipes;
export const programNames = Object.keys(recipes) as ProgramName[];

/** Finds a program on the PATH or in the cache, or brings it from this machine's package mirror. Throws the reason. */
export function findProgram(name: ProgramName): Program {
  const recipe: Recipe = recipes[name];
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    const path = join(folder, name);
    const found = existsSync(path) ? tried(path, {}, recipe) : undefined;
    if (found !== undefined) return found;
  }
  const folder = unpacked(name, recipe.fetch, recipe.only);
  const libraries = globSync(join(folder, "usr", "lib", "*-linux-*")).join(delimiter);
  const env = libraries === "" ? {} : { LD_LIBRARY_PATH: libraries };
  for (const place of ["bin", "sbin"]) {
    const path = join(folder, "usr", place, name);
    const found = existsSync(path) ? tried(path, env, recipe) : undefined;
    if (found !== undefined) return found;
  }
  throw new Error(`${name} ${recipe.min.join(".")} or newer is neither on the PATH nor in ${folder}`);
}

function tried(path: string, env: Readonly<Record<string, string>>, recipe: Recipe): Program | undefined {
  const { stdout, stderr } = spawnSync(path, [...recipe.version], {
    encoding: "utf8",
    env: { ...process.env, ...env },
  });
  const [version, major, minor] = /(\d+)\.(\d+)(\.\d+)?/.exec(`${stdout}${stderr}`) ?? [];
  if (version === undefined) return undefined;
  const [minMajor, minMinor] = recipe.min;
  const enough = Number(major) > minMajor || (Number(major) === minMajor && Number(minor) >= minMinor);
  return enough ? { path, version, env } : undefined;
}

/** Google's emulator is on no registry: it is used where the Google Cloud SDK has it. Throws why it cannot be run. */
export function findPubsubEmulator(): string {
  const homes = [process.env.CLOUDSDK_ROOT_DIR, "/usr/lib/google-cloud-sdk", "/opt/google-cloud-sdk"];
  const jars = homes.flatMap((home) =>
    home === undefined ? [] : globSync(join(home, "platform", "pubsub-emulator", "lib", "cloud-pubsub-emulator*.jar")),
  );
  const [jar] = jars;
  if (jar === undefined) throw new Error("cloud-pubsub-emulator*.jar is in no Google Cloud SDK of this machine");
  if (spawnSync("java", ["-version"]).status !== 0) throw new Error("there is no java on the PATH");
  return jar;
}
