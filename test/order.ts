import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * The longest files. They start first: a late one would run alone at the end, while the other cores are idle. Files that
 * keep a core busy alternate with files that wait for other processes.
 */
export const longest: readonly string[] = [
  "test/cli/reactors.test.ts",
  "test/browser/flows.test.ts",
  "test/simulation/seeds-1.test.ts",
  "test/chaos/reactors.test.ts",
  "test/package/first-minute.test.ts",
  "test/simulation/seeds-2.test.ts",
  "test/chaos/server.test.ts",
  "test/cli/dev.test.ts",
  "test/simulation/seeds-3.test.ts",
  "test/browser/dashboard.test.ts",
  "test/client/engine.test.ts",
  "test/planted/planted.test.ts",
  "test/cli/dev-project.test.ts",
  "test/store/postgres-18.test.ts",
  "test/processes/engine-crash.test.ts",
  "test/client/sockets.test.ts",
  "test/store/sqlite.test.ts",
  "test/host/gateway/replicas.test.ts",
  "test/fuzz/fuzz.test.ts",
  "test/docs/examples.test.ts",
  "test/golden/golden.test.ts",
  "test/kit/crash.test.ts",
  "test/examples/crash-postgres.test.ts",
  "test/cli/demo.test.ts",
  "test/kit/postgres.test.ts",
  "test/store/postgres-14.test.ts",
  "test/engine/parked.test.ts",
  "test/examples/crash.test.ts",
  "test/client/conformance.test.ts",
  "test/guard/postgres.test.ts",
  "test/examples/examples.test.ts",
  "test/store/migrations/postgres.test.ts",
];

/**
 * Files that share their sources come together, after those that do not, because vitest keeps a worker only while the next
 * file may share it. Within each group the longest come first.
 */
export class Order extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const shares = ({ project }: TestSpecification): boolean => project.config.isolate === false;
    const place = ({ moduleId }: TestSpecification): number => {
      const at = longest.findIndex((file) => moduleId.endsWith(`/${file}`));
      return at < 0 ? longest.length : at;
    };
    return sorted.sort((a, b) => Number(shares(a)) - Number(shares(b)) || place(a) - place(b));
  }
}
