import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { unpacked, withLibraries } from "../../../../test/brokers/servers/apt.ts";
import type { Totals } from "../../totals.ts";
import type { Kind } from "../agents/serve.ts";

/** Python's packages that the kit needs, from this machine's own Debian mirror. Nothing is installed. */
const packages = ["python3-pytest", "python3-pytest-asyncio", "python3-httpx", "python3-jsonschema"];
/** Fewer tests than this have not compared anything. */
const minPassed = 150;

type Verdicts = ReadonlyMap<string, "passed" | "failed" | "skipped">;

/**
 * Runs the kit against an agent with the SDK's executor and stores, and against the same one with Tape's. A test that
 * passes with the SDK's and does not with Tape's is a failure. Without a folder nothing is run, and nothing counts.
 */
export async function compatibilityKit(folder: string | undefined): Promise<Totals> {
  if (folder === undefined) {
    console.log(" NOT RUN: the protocol's compatibility kit; TAPE_A2A_TCK names its folder");
    return { passed: 0, failed: 0, skipped: 0 };
  }
  const libraries = packages.map((name) => unpacked(`tck-${name}`, withLibraries(name), ["usr/lib/python3/*"]));
  const places = libraries.map((place) => join(place, "usr", "lib", "python3", "dist-packages"));
  const [sdk, tape] = [await verdicts("sdk", folder, places), await verdicts("tape", folder, places)];
  const worse = [...sdk].filter(([name, verdict]) => verdict === "passed" && tape.get(name) !== "passed");
  for (const [name] of worse) console.log(` × ${name}: passed with the SDK's store, ${tape.get(name)} with Tape's`);
  const passed = count(tape, "passed");
  for (const [name, all] of Object.entries({ SDK: sdk, Tape: tape })) {
    const sums = (["passed", "failed", "skipped"] as const).map((verdict) => `${verdict} ${count(all, verdict)}`);
    console.log(` compatibility kit, ${name}: ${sums.join(", ")}`);
  }
  return { passed, failed: worse.length + (count(sdk, "passed") < minPassed ? 1 : 0), skipped: 0 };
}

const count = (all: Verdicts, verdict: string): number => [...all.values()].filter((one) => one === verdict).length;

async function verdicts(kind: Kind, folder: string, places: readonly string[]): Promise<Verdicts> {
  const scratch = mkdtempSync(join(tmpdir(), "tape-a2a-tck-"));
  const server = spawn(process.execPath, [join(import.meta.dirname, "..", "agents", "server.ts"), kind, "memory:"], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  try {
    const url = await new Promise<string>((resolve) =>
      server.stdout.once("data", (line) => resolve(String(line).trim())),
    );
    const report = join(scratch, "report.xml");
    const own = ["-p", "without_grpc", "-c", join(import.meta.dirname, "pytest.ini"), "-p", "no:cacheprovider"];
    const args = ["-m", "pytest", ...own, `--rootdir=${folder}`, "-q", `--sut-host=${url}`, `--junitxml=${report}`];
    const env = {
      ...process.env,
      PYTHONDONTWRITEBYTECODE: "1",
      PYTHONPATH: [import.meta.dirname, ...places, folder].join(delimiter),
    };
    const kit = spawn("/usr/bin/python3", [...args, "tests/compatibility"], { cwd: folder, env, stdio: "ignore" });
    await ended(kit);
    return readReport(readFileSync(report, "utf8"));
  } finally {
    server.kill();
    rmSync(scratch, { recursive: true });
  }
}

const ended = (child: ChildProcess): Promise<unknown> =>
  new Promise((resolve, reject) => child.once("error", reject).once("close", resolve));

/** JUnit's XML: a test without a child has passed. */
function readReport(xml: string): Verdicts {
  const found = new Map<string, "passed" | "failed" | "skipped">();
  for (const [, attributes, body] of xml.matchAll(/<testcase ([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g)) {
    const [, file, name] = /classname="([^"]*)" name="([^"]*)"/.exec(attributes!)!;
    const verdict = /<(failure|error)\b/.test(body ?? "")
      ? "failed"
      : /<skipped\b/.test(body ?? "")
        ? "skipped"
        : "passed";
    found.set(`${file}::${name}`, verdict);
  }
  return found;
}
