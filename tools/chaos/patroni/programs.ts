import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, globSync, mkdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { alone, unpacked, withLibraries } from "../../../test/brokers/servers/apt.ts";
import { makeReadable } from "../tools.ts";

/** What a cluster consists of. */
export interface ClusterPrograms {
  readonly python: string;
  readonly patroni: string;
  readonly etcd: string;
  /** The folder of PostgreSQL's programs. */
  readonly postgres: string;
  readonly env: Readonly<Record<string, string>>;
  /** Which versions these are. */
  readonly versions: string;
}

const python = "/usr/bin/python3";

/**
 * Finds Patroni, etcd and PostgreSQL where they are installed, or unpacks Debian's packages: nothing is installed. The
 * server's user must be able to read them, so they are copied below `folder`. Throws why they cannot be had.
 */
export function findPatroni(folder: string): ClusterPrograms {
  if (process.platform !== "linux") throw new Error("Patroni's cluster needs Linux");
  if (!existsSync(python)) throw new Error(`there is no ${python}`);
  const packages = [unpackedOf("patroni"), unpackedOf("etcd-server"), ...postgresPackages()];
  const root = join(folder, "programs");
  mkdirSync(root);
  for (const from of packages) if (from !== undefined) execFileSync("cp", ["-a", `${from}/.`, root]);
  makeReadable(root);
  const place = (path: string): string => [join(root, path), join("/", path)].find((file) => existsSync(file)) ?? "";
  const [postgres] = [`${root}/usr/lib/postgresql/*/bin`, installed].flatMap((pattern) => globSync(pattern).toSorted());
  const libraries = globSync(join(root, "usr", "lib", "*-linux-*")).join(delimiter);
  const programs = {
    python,
    patroni: place("usr/bin/patroni"),
    etcd: place("usr/bin/etcd"),
    postgres: postgres ?? "",
    env: {
      PYTHONPATH: join(root, "usr/lib/python3/dist-packages"),
      ...(libraries === "" ? {} : { LD_LIBRARY_PATH: libraries }),
    },
  };
  const versions = [
    versionOf(python, [programs.patroni, "--version"], programs.env),
    versionOf(programs.etcd, ["--version"], programs.env),
    versionOf(join(programs.postgres, "postgres"), ["--version"], programs.env),
  ];
  return { ...programs, versions: versions.join(", ") };
}

const installed = "/usr/lib/postgresql/*/bin";

function unpackedOf(name: "patroni" | "etcd-server"): string | undefined {
  if (existsSync(name === "patroni" ? "/usr/bin/patroni" : "/usr/bin/etcd")) return undefined;
  return unpacked(name, withLibraries(name), ["usr/bin/*", "usr/lib/python3/*", "usr/lib/*.so*"]);
}

/** Patroni needs pg_rewind and pg_basebackup, which PostgreSQL from npm lacks. */
function postgresPackages(): string[] {
  if (globSync(`${installed}/pg_rewind`).length > 0) return [];
  const depends = execFileSync("apt-cache", ["depends", "postgresql"], { encoding: "utf8" });
  const name = /Depends: (postgresql-\d+)/.exec(depends)?.[1];
  if (name === undefined) throw new Error("apt knows no package postgresql");
  const client = name.replace("postgresql", "postgresql-client");
  return [name, client, "libpq5"].map((one) => unpacked(one, alone(one), ["usr/lib/*", "usr/share/postgresql/*"]));
}

function versionOf(program: string, args: readonly string[], env: Readonly<Record<string, string>>): string {
  const { status, stdout, stderr } = spawnSync(program, [...args], {
    encoding: "utf8",
    env: { ...process.env, ...env },
  });
  if (status !== 0) throw new Error(`${program} does not run: ${stderr ?? "it is not there"}`.trim());
  return stdout
    .split("\n")[0]!
    .replace(/ Version:|postgres \(|\)|\(.*/g, "")
    .trim();
}
