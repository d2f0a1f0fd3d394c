/** Pages of the reference: each entry point is one page, and the main one is divided by subject. */
export interface EntryPoint {
  /** What a program imports. */
  readonly specifier: string;
  /** The file that exports it, from the root of the repository. */
  readonly file: string;
  /** One sentence. */
  readonly about: string;
  /** The guide to read first, from docs/api. */
  readonly guide?: string;
}

export const entryPoints: readonly EntryPoint[] = [
  {
    specifier: "durable-tape",
    file: "src/exports/index.ts",
    about: "Workflows, effects, the app, stores, leases and events.",
  },
  {
    specifier: "durable-tape/testing",
    file: "testkit/index.ts",
    about: "Virtual time, a crash kit, a fake upstream and the conformance suite, for tests.",
  },
  {
    specifier: "durable-tape/ai",
    file: "src/exports/ai.ts",
    about: "Agents of the Vercel AI SDK as durable runs.",
    guide: "ai",
  },
  {
    specifier: "durable-tape/mcp",
    file: "src/exports/mcp.ts",
    about: "Tools of MCP servers as effects.",
    guide: "mcp",
  },
  {
    specifier: "durable-tape/push",
    file: "src/exports/push.ts",
    about: "Handlers for hosts that run only during a request, and events that start runs.",
    guide: "push",
  },
  { specifier: "durable-tape/kafka", file: "src/exports/kafka.ts", about: "Events to Kafka.", guide: "brokers" },
  { specifier: "durable-tape/nats", file: "src/exports/nats.ts", about: "Events to NATS JetStream.", guide: "brokers" },
  {
    specifier: "durable-tape/redis",
    file: "src/exports/redis.ts",
    about: "Events to Redis streams.",
    guide: "brokers",
  },
  {
    specifier: "durable-tape/a2a",
    file: "src/exports/a2a.ts",
    about: "Tasks of the Agent2Agent protocol as runs.",
    guide: "a2a",
  },
  {
    specifier: "durable-tape/adk",
    file: "src/exports/adk.ts",
    about: "Agents of Google's ADK as durable runs.",
    guide: "adk",
  },
  {
    specifier: "durable-tape/langgraph",
    file: "src/exports/langgraph.ts",
    about: "Agents of LangGraph and LangChain as durable runs.",
    guide: "langgraph",
  },
  {
    specifier: "durable-tape/mastra",
    file: "src/exports/mastra.ts",
    about: "Agents of Mastra as durable runs.",
    guide: "mastra",
  },
  {
    specifier: "durable-tape/openai-agents",
    file: "src/exports/openai-agents.ts",
    about: "Agents of OpenAI's Agents SDK as durable runs.",
    guide: "openai-agents",
  },
  {
    specifier: "durable-tape/world",
    file: "src/exports/world.ts",
    about: "A World of Vercel Workflow on a store of Tape.",
    guide: "world",
  },
];

/** A subject of the main entry point. An export belongs to the subject that names its file, or its innermost folder. */
export interface Subject {
  readonly page: string;
  readonly title: string;
  readonly about: string;
  /** What readers look for, in this order; then come the other functions and classes, then types. */
  readonly first?: readonly string[];
  /** Files or folders in which its exports are declared. */
  readonly files: readonly string[];
}

export const subjects: readonly Subject[] = [
  {
    page: "workflows",
    title: "Workflows",
    about: "What a workflow is made of: its definition, the `tape` argument, gates, objects, streams and scopes.",
    first: [
      "workflow",
      "WorkflowOptions",
      "TapeContext",
      "StepOptions",
      "StepRetryPolicy",
      "createRunner",
      "gate",
      "GateOptions",
    ],
    files: [...["sdk/", "base/duration", "model/approvers"]],
  },
  {
    page: "effects",
    title: "Effects and connectors",
    about: "Side effects on other systems: definitions, outcomes, connectors.",
    first: [
      "effect",
      "EffectOptions",
      "EffectRetryPolicy",
      "RetryPolicy",
      "EffectContext",
      "outcome",
      "httpConnector",
      "HttpConnectorOptions",
    ],
    files: ["sdk/effect", "sdk/effect-types", "sdk/outcomes", "sdk/connector", "connector/", "engine/effects/"],
  },
  {
    page: "app",
    title: "The app",
    about: "`Tape.open` and what a program does with the result: start, signal, wait, list, schedule.",
    first: ["Tape", "TapeOptions", "StartOptions", "RunHandle", "ConnectOptions"],
    files: [...["host/", "sdk/start-options", "model/run-error"]],
  },
  {
    page: "queues",
    title: "Queues",
    about: "How many runs at once, how often, whose turn is next.",
    first: ["queue", "QueueOptions"],
    files: ["sdk/queue", "sdk/queue-choice", "host/queues", "model/queue", "model/queue-cycle"],
  },
  {
    page: "operators",
    title: "Operators and builds",
    about: "What operators do by hand: resolve, redrive, fork, preempt, move runs between builds.",
    files: ["operator/", "host/builds", "model/build"],
  },
  {
    page: "agents",
    title: "Conversations",
    about: "The conversation of a run with its models.",
    files: ["agent/", "host/conversation"],
  },
  {
    page: "reactors",
    title: "Reactors, retention, serverless",
    about: "What runs beside workflows: reactors, retention, alarms for hosts that scale to zero.",
    files: [
      ...[
        "reactor/",
        "host/reactor-options",
        "host/run-reactors",
        "host/retention",
        "retention/",
        "alarm/",
        "host/serverless",
      ],
    ],
  },
  {
    page: "events",
    title: "Events",
    about: "Fan-outs, sinks and dead letters.",
    first: ["runEventFanout", "FanoutOptions"],
    files: [
      "events/",
      "host/fanouts",
      "host/run-event-fanout",
      "host/sinks",
      "model/dead-letter",
      "model/sink-checkpoint",
    ],
  },
  {
    page: "leases",
    title: "Leases, singletons, guards",
    about: "Leases by name, background jobs that one replica runs, and guards for your own tables and services.",
    first: ["Leases", "LeaseOptions", "Lease", "Singleton", "SingletonOptions", "SingletonContext"],
    files: ["host/leases", "host/singleton/", "lease/", "guard/", "model/lease", "model/fence"],
  },
  {
    page: "encryption",
    title: "Encryption and redaction",
    about: "Payloads that only your processes can read.",
    files: ["seal/", "base/codec"],
  },
  {
    page: "servers",
    title: "Servers and remote stores",
    about: "Serving a store over HTTP, and programs that connect to it.",
    files: ["host/serve", "host/serve-options", "client/"],
  },
  {
    page: "observability",
    title: "Logs, traces, metrics, errors",
    about: "Injectable clock, chance and log; OpenTelemetry; metrics; the error table.",
    first: ["TapeError", "isTapeError"],
    files: [
      "base/",
      "host/telemetry",
      "host/telemetry-metrics",
      "host/metrics-handler",
      "host/process-metrics",
      "model/errors",
    ],
  },
  {
    page: "stores",
    title: "Stores and journals",
    about: "The contract of a store, its records, rows, values and limits: for programs that use a store directly.",
    first: ["openStore", "Store", "Limits"],
    files: ["store/", "host/open-store", "model/"],
  },
];
