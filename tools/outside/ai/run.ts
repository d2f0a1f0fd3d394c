// The AI SDK is a dev dependency of the project, so its suite is test/ai. `npm test` samples the boundaries; here are all.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { finish } from "../totals.ts";

const root = join(import.meta.dirname, "../../..");
const suites = ["test/ai/crash", "test/ai/parallel"];
const child = spawn(process.execPath, [join(root, "test/run.ts"), ...suites], {
  cwd: root,
  // The hooks of the other folders resolve frameworks there; these suites have theirs in the project.
  env: { ...process.env, NODE_OPTIONS: "", TAPE_TEST_EVERY_BOUNDARY: "1" },
  stdio: ["ignore", "pipe", "inherit"],
});
let output = "";
child.stdout.setEncoding("utf8").on("data", (text: string) => {
  process.stdout.write(text);
  output = (output + text).slice(-4_096);
});
const code = await new Promise<number | null>((resolve, reject) => child.once("error", reject).once("close", resolve));
const [, passed = "0", failed = "0"] = /(\d+) passed, (\d+) failed\s*$/.exec(output) ?? [];
const failures = Number(failed) > 0 || code === 0 ? Number(failed) : 1;
finish({ passed: Number(passed), failed: failures, skipped: 0 });
