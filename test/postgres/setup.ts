import type { TestProject } from "vitest/node";
import { startPostgres } from "./server.ts";

declare module "vitest" {
  interface ProvidedContext {
    postgres14: string;
    postgres18: string;
  }
}

/** One server of the oldest and the newest supported version for the whole run; every test creates its own database. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const started = await Promise.allSettled([startPostgres({ major: 14 }), startPostgres({ major: 18 })]);
  const servers = started.filter((result) => result.status === "fulfilled").map((result) => result.value);
  const stop = async () => {
    await Promise.all(servers.map((server) => server.stop()));
  };
  const failure = started.find((result) => result.status === "rejected");
  if (failure) {
    await stop();
    throw failure.reason;
  }
  const [old, recent] = servers;
  project.provide("postgres14", old!.url);
  project.provide("postgres18", recent!.url);
  return stop;
}
