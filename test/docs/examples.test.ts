import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { adapters } from "../../tools/build/adapters.ts";
import { writeApiExamples } from "./api-examples.ts";
import { type Example, examplesIn } from "./examples.ts";

const run = promisify(execFile);
const root = resolve(import.meta.dirname, "../..");

/** What each example must print, line by line; a RegExp where the line holds a number that varies. */
const expected: Readonly<Record<string, readonly (string | RegExp)[]>> = {
  agents: ["Is it recorded? Yes.", "[ 'clerk local/echo 1' ]", "12 tokens in, 3 out"],
  lease: [/^1n \S+ start released$/],
  once: ["1 1"],
  map: ["[ 5, 7, 5 ]", "10"],
  scopes: ["TAPE_TIMEOUT, 0 bookings left"],
  cleanup: ["TAPE_RUN_FAILED [ 'seats' ]"],
  stores: [/ok: true/, /journal: \d+/, /fresh: true/, /durable: true/],
  restored: [/^epoch 1, 0 terms ended$/],
  fence: ["true", "TAPE_FENCED"],
  singleton: ["sweeping under token 1", "holder", "stopped in good order", "stopped"],
  loops: ["watch stopped", "sweep stopped"],
  operate: [
    /^report: held by \S+ under token 1 for \d/,
    "lost",
    "1n start manual - -",
    "2n manual released ada it writes nonsense",
    "4n manual manual ada maintenance",
  ],
  guard: ["TAPE_FENCED", "200"],
  "transaction-start": ["undefined", "order 2 is on its way"],
  "transaction-step": ["seat 12A is yours", "UNIQUE constraint failed: bookings.seat", "1"],
  "fenced-http": ["200 kept under 1", "200 kept under 2", "412 TAPE_FENCED", "b"],
  record: ["the cable was pulled", "page 1 1"],
  journal: ["COMPLETED shipped", "1 0n run.created", "2 1n step.done", "3 1n run.ended"],
  feed: [/journal run\.created/, /inbox signal\.sent/, "1"],
  metrics: ["hello Ada", "200", 'tape_runs{status="STUCK"} 0', "{ status: 'ok' }"],
  object: ["{ items: [ 'a desk', 'a lamp' ] }", "paid for a desk, a lamp", "0"],
  readme: ["paid 120"],
  quickstart: ["wrote to ada twice", "ada@example.org: Welcome, ada", "ada@example.org: Still there, ada?"],
  unknown: ["found at the bank", "1", "effect.settled UNKNOWN"],
  retries: ["refund: yes", "attempt 1 waited 50 ms"],
  outages: [/^TAPE_RUN_STUCK: .+: model unreachable since …: decision "judge" has failed \d+ times/, "refund: yes"],
  lanes: ["[ 'the best of north', 'the best of south' ]"],
  // On a busy machine the sleep may be over before the run has parked, or a lease may expire.
  replay: ["{ rolled: 1, both: 'ab' }", /^executed [123] times, rolled 1 time$/],
  compensation: ["TAPE_RUN_FAILED COMPENSATED", "book flight, book hotel, cancel hotel, cancel flight"],
  gate: ["a day off: yes"],
  ask: ["60 60 60", "TAPE_ASK_REJECTED a price is not negative", "100 100"],
  upsert: ["true []", "[ 'cron' ]"],
  labels: ['order-7 {"customer":"acme","stage":"sent"}'],
  endless: [
    "{ turns: 5, last: 'you wrote e' }",
    "2 { turns: 2, last: 'you wrote b' }",
    "3 { turns: 4, last: 'you wrote d' }",
  ],
  "start-signals": ["ada: hello, bye", "bob: a, b"],
  callback: ["{ duplicate: false } { duplicate: true }", "40 paid, receipt r-1"],
  inbox: ["bought a desk, not bought"],
  budget: ["2 answers for a dollar"],
  builds: ["119 by v1", "true", "false"],
  patched: ["old shipped", "new shipped, insured"],
  fanout: [/^dev\.tape\.run\.created greet-ada$/, /^dev\.tape\.run\.ended greet-ada$/, "stopped"],
  queue: ["[ 'who!', 'why!', 'when!' ]", "models started 3 waiting 0", "4 records of a child"],
  "queue-keys": ["4 of 6"],
  "queue-start": ["WAITING", "true", "indexed final text"],
  "queue-operate": ["QUEUED", "[ { why: 'paused', by: 'ada', reason: 'the upstream is down' } ]", "20"],
  ai: ["Paid: r-117"],
  "ai-routes": ["text/event-stream true", "204"],
  stream: ["to be or not to be", "true", "to be"],
  encryption: ["dear ada", 'r-1 COMPLETED {"encrypted":"2026-11"}', "TAPE_NO_CODEC"],
  "codec-handler": ['403 {"payloads":[{"value":"dear ada"}]}'],
  redaction: ["{ card: '************1111', total: 40 }"],
  shredding: ["dear customer 8", "TAPE_KEY_UNKNOWN", "dear customer 7"],
  "follow-run": ["turn-started ", "reasoning thinking", "text forty", "text two", "turn-ended ", "ended "],
  "stream-token": ["text/event-stream", "id: 0", "event: end"],
  schedule: ["0 3 * * MON true", "true"],
  deploy: ["RUNNABLE"],
  "push-program": ["401"],
  "in-a-program": ["hello Ada outbox,timers"],
  "guard-object": ["TAPE_FENCED", '{"total":200}'],
  shards: ["16 100"],
  reap: ["0 are owed for a day"],
  serverless: ["armed before the commit: true", "hello Ada 0 null"],
  values: ["2 10 20", "3 20 25"],
  connector: ["receipt for i-1 pay-1:0"],
  http: ["bank true idempotent"],
  connect: ["Hello Ada", "COMPLETED default"],
  serve: ["200 { status: 'ok' }"],
  mcp: ["true", "triage { text: 'I paid twice' } true", "I paid twice: billing"],
  "mcp-tools": ["paid 7 with 120"],
  retention: ["kept for 2555 days"],
  erasure: ["erased 3 records", "2 step.done true"],
  push: ["204 hello Ada", "401"],
  react: ["2 2 true"],
  receive: ["204 204", "shipped 7 1"],
};

/** The examples of brokers need servers: `npm run test:brokers` runs them. Those of frameworks need them: `npm run outside`. */
const elsewhere = ["brokers.md", ...adapters.map((name) => `${name}.md`)];

const pages = [
  "README.md",
  ...(await readdir(join(root, "docs")))
    .filter((f) => f.endsWith(".md") && !elsewhere.includes(f))
    .map((f) => `docs/${f}`),
];
const found = pages.map((page) => examplesIn(join(root, page)));
const examples = found.flatMap(({ named }) => named);

describe("examples in the docs", () => {
  let folder = "";
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "tape-docs-"));
    // As for a user: a package named durable-tape, here with its exports pointing at the sources.
    await mkdir(join(folder, "node_modules"), { recursive: true });
    await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
    await symlink(join(root, "node_modules"), join(folder, "node_modules", ".shared"));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it("every ts block has a name, and every name is expected here", () => {
    expect(found.flatMap(({ unnamed }) => unnamed)).toEqual([]);
    expect(examples.map(({ name }) => name).sort()).toEqual(Object.keys(expected).sort());
  });

  it.each(examples.map((example) => [example.name, example] as const))(
    "%s runs and prints what it says",
    { timeout: 70_000 },
    async (_, example) => {
      const lines = (await execute(folder, example)).split("\n");
      for (const line of expected[example.name]!) {
        const seen = lines.some((text) => (typeof line === "string" ? text === line : line.test(text)));
        expect(seen, `${example.name} should print ${line}; it printed:\n${lines.join("\n")}`).toBe(true);
      }
    },
  );

  it("they compile in strict mode, and so do those of the API reference", { timeout: 60_000 }, async () => {
    const types = await mkdtemp(join(root, "test/docs/.types-"));
    try {
      await cp(join(root, "tsconfig.json"), join(types, "base.json"));
      await writeFile(
        join(types, "tsconfig.json"),
        JSON.stringify({
          extends: "../../../tsconfig.json",
          compilerOptions: { noUnusedLocals: false, noUnusedParameters: false, verbatimModuleSyntax: false },
          include: ["**/*.ts", "../../../tools/peers/*.d.ts"],
        }),
      );
      for (const example of examples) {
        const place = join(types, example.name);
        await mkdir(place);
        await placeExample(place, example, "../../../../");
      }
      expect(await writeApiExamples(types)).toBeGreaterThan(150);
      const { stdout } = await run(join(root, "node_modules/.bin/tsc"), [
        "--noEmit",
        "--singleThreaded",
        "-p",
        types,
      ]).catch((error: { stdout: string }) => error);
      expect(stdout).toBe("");
    } finally {
      await rm(types, { recursive: true, force: true });
    }
  });
});

/** Several of them one after the other in one process, each in a folder of its own: loading the sources costs the most. */
const together = 8;
const player = `
for (const [name, place] of JSON.parse(process.argv[2])) {
  process.chdir(place);
  console.log("== " + name);
  await import(place + "/example.ts");
}`;

const printed = new Map<string, Promise<Map<string, string>>>();

/** The output of an example. Its process must exit without help: a handle that one example leaves open fails its whole group. */
async function execute(folder: string, example: Example): Promise<string> {
  const first = examples.indexOf(example) - (examples.indexOf(example) % together);
  const key = examples[first]!.name;
  if (!printed.has(key)) printed.set(key, play(folder, examples.slice(first, first + together)));
  return (await printed.get(key)!).get(example.name) ?? "";
}

async function play(folder: string, company: readonly Example[]): Promise<Map<string, string>> {
  const places: [string, string][] = [];
  for (const example of company) {
    const place = join(folder, example.name);
    await mkdir(place);
    await placeExample(place, example, `${root}/`);
    places.push([example.name, place]);
  }
  const script = join(folder, `${company[0]!.name}.player.mjs`);
  await writeFile(script, player);
  const { stdout } = await run(process.execPath, [script, JSON.stringify(places)], { timeout: 60_000 });
  return new Map(
    stdout.split(/^== /m).map((part) => [part.slice(0, part.indexOf("\n")), part.slice(part.indexOf("\n") + 1)]),
  );
}

/** Files that an example imports from its own folder: what a reader has, and the example does not show. */
const beside = join(root, "test/docs/beside");
const besideNames = await readdir(beside);

async function placeExample(place: string, { name, source }: Example, to: string): Promise<void> {
  await writeFile(join(place, "example.ts"), toSources(source, to));
  if (!besideNames.includes(name)) return;
  for (const file of await readdir(join(beside, name))) {
    await writeFile(join(place, file), toSources(await readFile(join(beside, name, file), "utf8"), to));
  }
}

/** Subpaths of the package, and packages that its users install, as files here. */
const imported: Readonly<Record<string, string>> = {
  "durable-tape": "src/exports/index.ts",
  "durable-tape/ai": "src/exports/ai.ts",
  "durable-tape/mcp": "src/exports/mcp.ts",
  "durable-tape/push": "src/exports/push.ts",
  ai: "node_modules/ai/dist/index.js",
  "ai/test": "node_modules/ai/dist/test/index.js",
  zod: "node_modules/zod/index.js",
};

const toSources = (source: string, to: string): string =>
  source.replace(/(?<= from )"([\w/-]+)"/g, (text, name: string) =>
    Object.hasOwn(imported, name) ? JSON.stringify(`${to}${imported[name]}`) : text,
  );
