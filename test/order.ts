import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Files that share their sources stand together, after those that do not: a worker is kept only while the next file is
 * one that it may be kept for.
 */
export class Order extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const shares = ({ project }: TestSpecification): boolean => project.config.isolate === false;
    return [...sorted.filter((file) => !shares(file)), ...sorted.filter(shares)];
  }
}
